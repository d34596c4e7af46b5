/// @file conv_depthwise.h
/// @brief Depthwise convolution: vectors along the channels.
///
/// A task owns some lines of the result and a block of channels. It copies the elements that they read, with the zeros around them, into its own memory
/// and keeps the sums of several neighbouring places in registers.
#ifndef AIT_KERNELS_CPU_CONV_DEPTHWISE_H_
#define AIT_KERNELS_CPU_CONV_DEPTHWISE_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// @brief acc[c] += x[c] * w[c] for `count` channels.
template <class T, class A>
inline void accumulate_tap(const T* x, int64_t step, const A* w, int64_t count, A* acc) {
  if (step != 1) {
    for (int64_t c = 0; c < count; ++c) acc[c] += static_cast<A>(x[c * step]) * w[c];
  } else if constexpr (std::is_same_v<T, A>) {
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) acc[c] += x[c] * w[c];
  } else {
    A run[kGemmColumns];
    widen<T>(x, count, run);
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) acc[c] += run[c] * w[c];
  }
}

/// Vectors of a block of channels, and neighbouring places whose sums are in registers together.
inline constexpr int kDepthwiseVectors = kVectorBytes == 64 ? 2 : 1, kDepthwisePlaces = 7;

/// Places of a line that are finished together: their sums fit the first-level cache.
inline constexpr int64_t kDepthwiseRun = 8 * kDepthwisePlaces;

/// @brief The elements that a block of channels reads, in the memory of the task: [lines, across, channels of the block].
template <class A>
struct DepthwiseBlock {
  A *input, *weight;         ///< weight: [taps, channels of the block]
  int64_t across;            ///< places of a line of the input, zeros included
  int64_t taps[2], stride[2], dilation[2];
};

/// @brief out[p] = the sums of neighbouring places, of which the window of the first begins at `from`.
template <class A, int kPlaces, int kVectors>
void sum_places(const DepthwiseBlock<A>& block, const A* from, A* out) {
  using V = Vector<A>;
  constexpr int kChannels = kVectors * kLanes<A>;
  const int64_t place = block.stride[1] * kChannels, step = block.dilation[1] * kChannels;
  V acc[kPlaces][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[p][v] = V{};
  }
  const A* weight = block.weight;
  for (int64_t i = 0; i < block.taps[0]; ++i) {
    const A* at = from + i * block.dilation[0] * block.across * kChannels;
    for (int64_t j = 0; j < block.taps[1]; ++j, at += step, weight += kChannels) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const V y = *reinterpret_cast<const V*>(weight + v * kLanes<A>);
#pragma GCC unroll 8
        for (int p = 0; p < kPlaces; ++p) acc[p][v] += *reinterpret_cast<const V*>(at + p * place + v * kLanes<A>) * y;
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(out + p * kChannels + v * kLanes<A>) = acc[p][v];
  }
}

/// `sum_places` for `places`, at most kPlaces.
template <class A, int kVectors, int kPlaces = kDepthwisePlaces>
inline void sum_some(int64_t places, const DepthwiseBlock<A>& block, const A* from, A* out) {
  if constexpr (kPlaces > 1) {
    if (places < kPlaces) return sum_some<A, kVectors, kPlaces - 1>(places, block, from, out);
  }
  sum_places<A, kPlaces, kVectors>(block, from, out);
}

/// @brief Lines [h0, h1) of an image of the result, channels c0 and following, `count` of them.
/// @return whether memory could be allocated
template <int kVectors, class F, class T, int R, class D, class... E>
bool depthwise_lines(const GemmShape& shape, const ConvInput<T, R>& x, const Matrices<const T>& w, const Matrices<D>& d, const Operands<E...>& extra,
                     int64_t image, int64_t h0, int64_t h1, int64_t c0, int64_t count) {
  using A = compute_t<T>;
  constexpr int64_t kChannels = kVectors * kLanes<A>;
  static_assert(R <= 2 && kChannels <= kGemmColumns, "a line is of at most two dims, a block of channels is finished at once");
  constexpr int kLast = R - 1;
  DepthwiseBlock<A> block{nullptr, nullptr, 0, {R == 1 ? 1 : x.kernel[0], x.kernel[kLast]}, {R == 1 ? 1 : x.stride[0], x.stride[kLast]},
                          {R == 1 ? 1 : x.dilation[0], x.dilation[kLast]}};
  const int64_t places = x.places[kLast], height = R == 1 ? 1 : x.places[0], all_lines = R == 1 ? 1 : x.size[0];
  const int64_t lines = (h1 - h0 - 1) * block.stride[0] + block.dilation[0] * (block.taps[0] - 1) + 1;
  block.across = (places - 1) * block.stride[1] + block.dilation[1] * (block.taps[1] - 1) + 1;
  static thread_local Scratch scratch;
  const int64_t inputs = lines * block.across * kChannels, weights = shape.k * kChannels;
  A* const memory = static_cast<A*>(scratch.get(size_t(inputs + weights + kDepthwiseRun * kChannels) * sizeof(A)));
  if (memory == nullptr) return false;
  block.input = memory, block.weight = memory + inputs;
  A* const sums = block.weight + weights;
  pack_strip<T, A>(w.data + c0 * w.col, w.col, w.row, count, shape.k, kChannels, block.weight);
  const int64_t first = h0 * block.stride[0] - (R == 1 ? 0 : x.pad[0]);
  A* to = block.input;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t h = first + line;
    const T* const from = x.data + image * x.strides[0] + (R == 1 ? 0 : h * x.strides[1]) + c0;
    for (int64_t at = 0; at < block.across; ++at, to += kChannels) {
      const int64_t along = at - x.pad[kLast];
      if (h < 0 || h >= all_lines || along < 0 || along >= x.size[kLast]) {
        for (int64_t c = 0; c < kChannels; ++c) to[c] = A(0);
      } else if (count == kChannels) {
        widen<T>(from + along * x.strides[R], kChannels, to);
      } else {
        for (int64_t c = 0; c < kChannels; c += kLanes<A>) {
          const int64_t left = count - c;
          *reinterpret_cast<Vector<A>*>(to + c) = left < kLanes<A> ? load_some<T>(from + along * x.strides[R] + c, left > 0 ? left : 0)
                                                                  : load_vector<T>(from + along * x.strides[R] + c);
        }
      }
    }
  }
  for (int64_t h = h0; h < h1; ++h) {
    for (int64_t begin = 0; begin < places; begin += kDepthwiseRun) {
      const int64_t end = begin + kDepthwiseRun < places ? begin + kDepthwiseRun : places;
      for (int64_t p = begin; p < end; p += kDepthwisePlaces) {
        const int64_t some = end - p < kDepthwisePlaces ? end - p : kDepthwisePlaces;
        sum_some<A, kVectors>(some, block, block.input + ((h - h0) * block.stride[0] * block.across + p * block.stride[1]) * kChannels,
                              sums + (p - begin) * kChannels);
      }
      for (int64_t p = begin, run; p < end; p += run) {
        const int64_t number = (image * height + h) * places + p, batch = number / shape.m, row = number % shape.m;
        run = end - p < shape.m - row ? end - p : shape.m - row;
        finish_rows<F>(extra, d, batch / shape.inner, batch % shape.inner, row, run, c0, count, sums + (p - begin) * kChannels, kChannels);
      }
    }
  }
  return true;
}

/// Bytes of the input that a task copies at most, unless one line of the result needs more: they stay in the second-level cache.
inline constexpr int64_t kDepthwiseBytes = 256 * 1024;

template <class F, class T, int R, class D, class... E>
int32_t depthwise_blocks(const Context& ctx, const GemmShape& shape, const ConvInput<T, R>& x, const Matrices<const T>& w, const Matrices<D>& d,
                         const Operands<E...>& extra) {
  using A = compute_t<T>;
  constexpr int64_t kChannels = kDepthwiseVectors * kLanes<A>;
  const int64_t height = R == 1 ? 1 : x.places[0], images = shape.m * shape.outer * shape.inner / (height * x.places[R - 1]);
  const int64_t blocks = (shape.n + kChannels - 1) / kChannels;
  const int threads = threads_for(shape.m * shape.outer * shape.inner * shape.n * shape.k);
  // Lines are cut into pieces for the cache, and so that the threads have work; each piece copies the lines that its windows read.
  const int64_t line = x.places[R - 1] * x.stride[R - 1] * kChannels * int64_t(sizeof(A)) * (R == 1 ? 1 : x.stride[0]);
  int64_t pieces = (height * line + kDepthwiseBytes - 1) / kDepthwiseBytes;
  while (pieces * images * blocks < 2 * threads && pieces < height) ++pieces;
  const int64_t share = (height + pieces - 1) / pieces;
  pieces = (height + share - 1) / share;
  AllOf enough;
  parallel_tasks(images * pieces * blocks, threads, [&](int64_t task) {
    const int64_t c0 = task % blocks * kChannels, rest = task / blocks, h0 = rest % pieces * share;
    const int64_t h1 = h0 + share < height ? h0 + share : height, left = shape.n - c0;
    if (left <= kChannels / kDepthwiseVectors) {
      enough.note(depthwise_lines<1, F>(shape, x, w, d, extra, rest / pieces, h0, h1, c0, left));
    } else {
      enough.note(depthwise_lines<kDepthwiseVectors, F>(shape, x, w, d, extra, rest / pieces, h0, h1, c0, left < kChannels ? left : kChannels));
    }
  });
  return enough.all() ? 0 : ctx.fail("conv: no memory for the input of a block of channels");
}

}  // namespace detail

/// @brief d = F(conv(x, w), operands...) with as many groups as channels of `x` and of `d`. The rows of `d` are places of the window, cut into
/// batches as its strides need; `w` is [taps, channels] by its strides.
template <class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv_depthwise(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, Matrices<const T> w, Matrices<D> d,
                       Operands<E...> extra) {
  using A = compute_t<T>;
  const int64_t taps = shape.k, channels = shape.n, rows = shape.m * shape.outer * shape.inner;
  if (rows == 0 || channels == 0) return 0;
  if constexpr (R <= 2 && !kTransposed) {
    if (x.strides[R + 1] == 1) return detail::depthwise_blocks<F>(ctx, shape, x, w, d, extra);
  }
  static thread_local Scratch scratch;
  A* const weight = static_cast<A*>(scratch.get(size_t(taps * channels) * sizeof(A)));  // channels of a tap side by side
  if (weight == nullptr) return ctx.fail("conv: no memory for the weight");
  const T* const from = w.at(0, 0);
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < channels; ++c) weight[t * channels + c] = static_cast<A>(from[t * w.row + c * w.col]);
  }
  const int64_t step = x.strides[R + 1];
  parallel_for(rows, rows * channels * taps >= 65536, [=](int64_t number) {
    const int64_t batch = number / shape.m, row = number % shape.m;
    const auto place = x.place(number);
    A acc[kGemmColumns];
    for (int64_t c0 = 0; c0 < channels; c0 += kGemmColumns) {
      const int64_t count = channels - c0 < kGemmColumns ? channels - c0 : kGemmColumns;
      for (int64_t c = 0; c < count; ++c) acc[c] = A(0);
      for (int64_t t = 0; t < taps; ++t) {
        const T* const seen = x.at(place, int(t), 0);
        if (seen != nullptr) detail::accumulate_tap(seen + c0 * step, step, weight + t * channels + c0, count, acc);
      }
      finish_row<F>(extra, d, batch / shape.inner, batch % shape.inner, row, c0, count, acc);
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_DEPTHWISE_H_
