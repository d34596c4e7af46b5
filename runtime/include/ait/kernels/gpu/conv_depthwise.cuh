/// @file conv_depthwise.cuh
/// @brief Depthwise convolution: a thread computes `kSpan` neighbouring channels of some places of a line, or of one place.
#ifndef AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_
#define AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

inline constexpr int kDepthwiseThreads = 256;

/// @brief The input, and the product: its columns are all channels, and each channel has its own sum.
template <class X, class T, class D, class... E>
struct DepthwiseArgs : GemmArgs<T, D, E...> {
  static constexpr int kLine = X::kRank - 1;
  X x;
  int64_t spans;  ///< of all channels and places; of a kernel of lines, the lines

  /// Shared memory for the weights of a span of channels.
  int64_t weight_bytes() const { return this->k * kSpan * int64_t(sizeof(compute_t<T>)); }
};

template <class T>
__device__ __forceinline__ compute_t<T> element(const RawSpan<T>& from, int i) {
  return convert<compute_t<T>>(from.pieces[i / (kSpan / kPieces<T>)].v[i % (kSpan / kPieces<T>)]);
}

template <class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kDepthwiseThreads) conv_depthwise_kernel(const DepthwiseArgs<X, T, D, E...> args) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t step = args.x.strides[X::kRank + 1];
  const int across = (args.n + kSpan - 1) / kSpan;
  for (int64_t i = int64_t(blockIdx.x) * kDepthwiseThreads + threadIdx.x; i < args.spans; i += int64_t(gridDim.x) * kDepthwiseThreads) {
    const int64_t number = i / across, batch = number / args.m;
    const int col = int(i - number * across) * kSpan, valid = args.n - col, row = int(number - batch * args.m);
    const int64_t outer = batch / args.inner, inner = batch - outer * args.inner;
    const typename X::Place place = args.x.place(number);
    Span<A> acc;
#pragma unroll
    for (int e = 0; e < kSpan; ++e) acc.v[e] = A(0);
    for (int tap = 0; tap < args.k; ++tap) {
      const T* const from = args.x.at(place, tap, 0);
      if (from == nullptr) continue;
      RawSpan<T> seen, weight;
      load_span<T>(from + col * step, step, args.a_aligned, valid, seen);
      load_span<T>(args.b.data + tap * args.b.row + col * args.b.col, args.b.col, args.b_aligned, valid, weight);
#pragma unroll
      for (int e = 0; e < kSpan; ++e) {
        if (e < valid) acc.v[e] += element<T>(seen, e) * element<T>(weight, e);
      }
    }
    typename Operands<E...>::Raw raw;
    args.operands.fetch(outer, inner, row, col, valid, raw);
    args.template finish_some<F>(outer, inner, row, col, valid, acc, raw);
  }
}

/// Neighbouring places of a line that a thread computes, spans of channels of a block at most, and bytes of their weights.
inline constexpr int kDepthwisePlaces = 4, kDepthwiseSpans = 8, kDepthwiseWeightBytes = 48 * 1024;

/// @brief A thread for each span of channels of `kDepthwisePlaces` places of a line, for windows that are not transposed. The weights of a block
/// lie in shared memory; each element of the input that the places of a thread share is read once.
template <class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kDepthwiseThreads) conv_depthwise_lines_kernel(const DepthwiseArgs<X, T, D, E...> args, int spans) {
  using A = compute_t<T>;
  constexpr int kLast = X::kRank - 1;
  AIT_DYNAMIC_SHARED(16, depthwise_shared);
  A* const weights = reinterpret_cast<A*>(depthwise_shared);
  const int channels = spans * kSpan, tiles = (args.n + channels - 1) / channels;
  const int first = int(blockIdx.x % uint32_t(tiles)) * channels;
  wait_for_previous();
  allow_next();
  for (int i = int(threadIdx.x); i < args.k * channels; i += kDepthwiseThreads) {
    const int c = i / args.k, tap = i - c * args.k;
    weights[tap * channels + c] = first + c < args.n ? convert<A>(args.b.data[tap * args.b.row + (first + c) * args.b.col]) : A(0);
  }
  __syncthreads();
  const int span = int(threadIdx.x) % spans, col = first + span * kSpan, valid = args.n - col;
  const int64_t across = args.x.places[kLast], pieces = (across + kDepthwisePlaces - 1) / kDepthwisePlaces;
  const int64_t group = int64_t(blockIdx.x / uint32_t(tiles)) * (kDepthwiseThreads / spans) + int(threadIdx.x) / spans;
  const int64_t line = group / pieces, from_place = (group - line * pieces) * kDepthwisePlaces;
  if (valid <= 0 || line >= args.spans) return;
  typename X::Place place = args.x.place(line * across + from_place);
  const int64_t begin = place.at[kLast], step = args.x.strides[X::kRank + 1];
  place.at[kLast] = 0;
  const int taps = int(args.x.kernel[kLast]), stride = int(args.x.stride[kLast]), dilation = int(args.x.dilation[kLast]);
  const int reach = (kDepthwisePlaces - 1) * stride + (taps - 1) * dilation;
  Span<A> acc[kDepthwisePlaces];
#pragma unroll
  for (int p = 0; p < kDepthwisePlaces; ++p)
#pragma unroll
    for (int e = 0; e < kSpan; ++e) acc[p].v[e] = A(0);
  for (int outer = 0; outer < args.k; outer += taps) {
    const T* const from = args.x.at(place, outer, 0);
    if (from == nullptr) continue;
    int next[kDepthwisePlaces], tap[kDepthwisePlaces];  // the element of the input that a place needs next, and for which tap
#pragma unroll
    for (int p = 0; p < kDepthwisePlaces; ++p) next[p] = p * stride, tap[p] = 0;
    for (int q = 0; q <= reach; ++q) {
      const int64_t along = begin + q;
      const bool inside = along >= 0 && along < args.x.size[kLast];
      Span<A> seen;
      if (inside) {
        RawSpan<T> raw;
        load_span<T>(from + along * args.x.strides[X::kRank] + col * step, step, args.a_aligned, valid, raw);
#pragma unroll
        for (int e = 0; e < kSpan; ++e) seen.v[e] = element<T>(raw, e);
      }
#pragma unroll
      for (int p = 0; p < kDepthwisePlaces; ++p) {
        if (q != next[p] || tap[p] == taps) continue;
        const A* const weight = weights + (outer + tap[p]) * channels + span * kSpan;
        next[p] += dilation, ++tap[p];
        if (!inside) continue;
#pragma unroll
        for (int e = 0; e < kSpan; ++e) acc[p].v[e] += seen.v[e] * weight[e];
      }
    }
  }
#pragma unroll
  for (int p = 0; p < kDepthwisePlaces; ++p) {
    if (from_place + p >= across) break;
    const int64_t number = line * across + from_place + p, batch = number / args.m, outer = batch / args.inner, inner = batch - outer * args.inner;
    const int row = int(number - batch * args.m);
    typename Operands<E...>::Raw raw;
    args.operands.fetch(outer, inner, row, col, valid, raw);
    args.template finish_some<F>(outer, inner, row, col, valid, acc[p], raw);
  }
}

/// Threads of a multiprocessor that keep it busy with several places each; with fewer, each computes a single place.
inline constexpr int64_t kDepthwiseBusy = 256;
/// Spans of channels of a block of a kernel of windows at most.
inline constexpr int kWindowSpans = 16;

/// @brief Threads of a block of a kernel of windows: where each has one place, the card is not full, and small blocks reach more of it.
template <int kPlaces>
inline constexpr int kWindowThreads = kPlaces > 1 ? kDepthwiseThreads : kDepthwiseThreads / 2;

/// @brief The windows' weights of `channels` channels from `first` on, [tap, channel], zeros behind the last one. A thread loads those of one
/// channel, several at a time; there are at most as many channels as threads.
template <int kThreads, class A, class T>
__device__ __forceinline__ void stage_weights(const Matrices<const T>& from, int taps, int n, int first, int channels, A* to) {
  const int slot = int(threadIdx.x) / channels, c = int(threadIdx.x) - slot * channels, step = kThreads / channels;
  if (slot >= step) return;
  constexpr int kLoads = 8;
  const T* const column = from.data + (first + c) * from.col;
#pragma unroll 1
  for (int begin = slot; begin < taps; begin += kLoads * step) {
    A values[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int tap = begin + j * step;
      values[j] = tap < taps && first + c < n ? convert<A>(column[tap * from.row]) : A(0);
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int tap = begin + j * step;
      if (tap < taps) to[tap * channels + c] = values[j];
    }
  }
}

/// @brief As the kernel of lines, for windows of `kTaps` elements along a line at steps of `kStride`, without dilation, and for whole spans of
/// contiguous channels: all sums are in registers, no loop along the line remains, and the elements of the next line of the window are loaded
/// while those of this one are multiplied. There are fewer than 2^31 places.
/// @param early whether the weights are never written, so that they are read before the launch in front has ended
template <int kTaps, int kStride, int kPlaces, class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kWindowThreads<kPlaces>, 2)
    conv_depthwise_window_kernel(const DepthwiseArgs<X, T, D, E...> args, int spans, bool early) {
  using A = compute_t<T>;
  constexpr int kRank = X::kRank, kLast = kRank - 1, kReach = (kPlaces - 1) * kStride + kTaps, kThreads = kWindowThreads<kPlaces>;
  constexpr bool kAhead = kReach <= 7;  // two lines of elements fit into the registers
  AIT_DYNAMIC_SHARED(16, depthwise_shared);
  A* const weights = reinterpret_cast<A*>(depthwise_shared);
  const int channels = spans * kSpan, tiles = (args.n + channels - 1) / channels;
  const int tile = int(blockIdx.x % uint32_t(tiles)), first = tile * channels;
  if (!early) wait_for_previous();
  stage_weights<kThreads>(args.b, args.k, args.n, first, channels, weights);
  if (early) wait_for_previous();
  allow_next();
  __syncthreads();
  const uint32_t slot = threadIdx.x / uint32_t(spans), each = kThreads / uint32_t(spans);
  const int span = int(threadIdx.x - slot * spans), col = first + span * kSpan;
  const uint32_t across = uint32_t(args.x.places[kLast]), pieces = (across + kPlaces - 1) / kPlaces;
  const uint32_t group = blockIdx.x / uint32_t(tiles) * each + slot;
  const uint32_t line = group / pieces, from_place = (group - line * pieces) * kPlaces;
  if (slot >= each || col >= args.n || line >= args.spans) return;

  int at[kRank];  // where the window begins; of the last dim, that of the first place
  uint32_t image = line;
#pragma unroll
  for (int d = kLast - 1; d >= 0; --d) {
    const uint32_t rest = image / uint32_t(args.x.places[d]);
    at[d] = int(image - rest * uint32_t(args.x.places[d])) * int(args.x.stride[d]) - int(args.x.pad[d]);
    image = rest;
  }
  at[kLast] = int(from_place) * kStride - int(args.x.pad[kLast]);
  const int size = int(args.x.size[kLast]);
  const int64_t pixel = args.x.strides[kRank];
  const T* const begin = args.x.data + image * args.x.strides[0] + at[kLast] * pixel + col;

  // The elements of a line of the window; zeros outside of the input.
  const auto load_line = [&](int number, RawSpan<T>(&to)[kReach]) {
    const T* from = begin;
    bool inside = true;
    int rest = number;
#pragma unroll
    for (int d = kLast - 1; d >= 0; --d) {
      const int next = d > 0 ? rest / int(args.x.kernel[d]) : 0, along = at[d] + (rest - next * int(args.x.kernel[d])) * int(args.x.dilation[d]);
      inside = inside && uint32_t(along) < uint32_t(args.x.size[d]);
      from += along * args.x.strides[d + 1];
      rest = next;
    }
#pragma unroll
    for (int q = 0; q < kReach; ++q) {
      to[q] = RawSpan<T>{};
      if (inside && uint32_t(at[kLast] + q) < uint32_t(size)) load_span<T>(from + q * pixel, 1, true, kSpan, to[q]);
    }
  };
  A acc[kPlaces][kSpan];
#pragma unroll
  for (int p = 0; p < kPlaces; ++p)
#pragma unroll
    for (int e = 0; e < kSpan; ++e) acc[p][e] = A(0);
  const auto multiply_line = [&](int number, const RawSpan<T>(&from)[kReach]) {
    Span<A> weight[kTaps];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) weight[tap] = *reinterpret_cast<const Span<A>*>(weights + (number * kTaps + tap) * channels + span * kSpan);
#pragma unroll
    for (int q = 0; q < kReach; ++q) {
#pragma unroll
      for (int e = 0; e < kSpan; ++e) {
        const A seen = element<T>(from[q], e);
#pragma unroll
        for (int p = 0; p < kPlaces; ++p) {
          if (q >= p * kStride && q - p * kStride < kTaps) acc[p][e] += seen * weight[q - p * kStride].v[e];
        }
      }
    }
  };
  const int lines = args.k / kTaps;
  RawSpan<T> seen[kReach];
  if constexpr (kAhead) {
    load_line(0, seen);
#pragma unroll 1
    for (int i = 0; i + 1 < lines; ++i) {
      RawSpan<T> next[kReach];
      load_line(i + 1, next);
      multiply_line(i, seen);
#pragma unroll
      for (int q = 0; q < kReach; ++q) seen[q] = next[q];
    }
    multiply_line(lines - 1, seen);
  } else {
#pragma unroll 1
    for (int i = 0; i < lines; ++i) {
      load_line(i, seen);
      multiply_line(i, seen);
    }
  }

  const uint32_t number = line * across + from_place;
  uint32_t batch = number / uint32_t(args.m);
  int row = int(number - batch * uint32_t(args.m));
#pragma unroll
  for (int p = 0; p < kPlaces; ++p, ++row) {
    if (from_place + p >= across) continue;  // clang unrolls no loop with a break
    if (row == args.m) row = 0, ++batch;
    const uint32_t outer = batch / uint32_t(args.inner), inner = batch - outer * uint32_t(args.inner);
    Span<A> sums;
#pragma unroll
    for (int e = 0; e < kSpan; ++e) sums.v[e] = acc[p][e];
    typename Operands<E...>::Raw raw;
    args.operands.fetch(outer, inner, row, col, kSpan, raw);
    args.template finish_some<F>(outer, inner, row, col, kSpan, sums, raw);
  }
}

namespace detail {
/// @brief Launches a kernel that has `places` neighbouring places of a line and a span of channels a thread.
template <class Args, class... More>
int32_t launch_lines(const Context& ctx, const GemmShape& shape, Args args, int places, int spans, int threads, void (*kernel)(Args, int, More...),
                     More... more) {
  const int64_t across = args.x.places[Args::kLine], each = threads / spans;
  args.spans = shape.outer * shape.inner * shape.m / across;
  const int64_t groups = args.spans * ((across + places - 1) / places);
  LaunchConfig config;
  config.block = dim3(threads);
  config.dependent = true;
  config.grid = dim3(grid_size((groups + each - 1) / each * ((shape.n + spans * kSpan - 1) / (spans * kSpan))));
  config.shared_bytes = uint32_t(spans * args.weight_bytes());
  return launch(ctx, config, kernel, args, spans, more...);
}

/// @brief The kernel of windows, with `kPlaces` places a thread; `most` spans of channels fit into shared memory.
template <int kTaps, int kStride, int kPlaces, class F, class X, class T, class D, class... E>
int32_t launch_windows(const Context& ctx, const GemmShape& shape, const DepthwiseArgs<X, T, D, E...>& args, int64_t most, bool early) {
  const int64_t all = shape.n / kSpan, tiles = (all + most - 1) / most;  // blocks of equal width leave few threads without channels
  return launch_lines(ctx, shape, args, kPlaces, int((all + tiles - 1) / tiles), kWindowThreads<kPlaces>,
                      conv_depthwise_window_kernel<kTaps, kStride, kPlaces, F, X, T, D, E...>, early);
}
}  // namespace detail

/// @brief d = F(conv(x, w), operands...) with as many groups as channels of `x` and of `d`. The rows of `d` are places of the window, cut into
/// batches as its strides need; `w` is [taps, channels] by its strides.
/// @tparam kTaps elements of the window along the last dim if it has no dilation there, else 0; @tparam kStride its steps there
/// @param early whether `w` is never written, as weights are
template <int kTaps, int kStride, class F, class X, class T, class D, class... E>
int32_t conv_depthwise(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands,
                       bool early = false) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  constexpr int64_t kElements = 16 / sizeof(T);
  bool x_aligned = x.strides[X::kRank + 1] == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  for (int i = 0; i <= X::kRank; ++i) x_aligned = x_aligned && x.strides[i] % kElements == 0;
  DepthwiseArgs<X, T, D, E...> args;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), 0, 0, {}, w, d, x_aligned,
                                              rows_aligned(w, w.col, w.row), rows_aligned(d, d.col, d.row), operands};
  args.x = x;
  const int64_t bytes = args.weight_bytes();
  if constexpr (!X::kSpreads) {
    if (bytes <= kDepthwiseWeightBytes) {
      if constexpr (kTaps > 0) {
        if (x_aligned && shape.n % kSpan == 0) {
          const int64_t threads = shape.outer * shape.inner * shape.m * (shape.n / kSpan) / kDepthwisePlaces;
          const int64_t most = kDepthwiseWeightBytes / bytes < kWindowSpans ? kDepthwiseWeightBytes / bytes : kWindowSpans;
          if (threads >= kDepthwiseBusy * multiprocessors()) {
            return detail::launch_windows<kTaps, kStride, kDepthwisePlaces, F>(ctx, shape, args, most, early);
          }
          return detail::launch_windows<kTaps, kStride, 1, F>(ctx, shape, args, most, early);
        }
      }
      int spans = 1;
      while (spans < kDepthwiseSpans && spans * kSpan < shape.n && 2 * spans * bytes <= kDepthwiseWeightBytes) spans *= 2;
      return detail::launch_lines(ctx, shape, args, kDepthwisePlaces, spans, kDepthwiseThreads, conv_depthwise_lines_kernel<F, X, T, D, E...>);
    }
  }
  LaunchConfig config;
  config.block = dim3(kDepthwiseThreads);
  config.dependent = true;
  args.spans = shape.outer * shape.inner * shape.m * ((shape.n + kSpan - 1) / kSpan);
  const int64_t blocks = (args.spans + kDepthwiseThreads - 1) / kDepthwiseThreads;
  config.grid = dim3(grid_size(blocks < (int64_t(1) << 24) ? blocks : int64_t(1) << 24));
  return launch(ctx, config, conv_depthwise_kernel<F, X, T, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_
