/// @file conv_depthwise.h
/// @brief Convolution of each channel by itself: vectors along the channels, which lie side by side.
#ifndef AIT_KERNELS_CPU_CONV_DEPTHWISE_H_
#define AIT_KERNELS_CPU_CONV_DEPTHWISE_H_

#include <omp.h>
#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm.h"

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

}  // namespace detail

/// @brief d = F(conv(x, w), operands...) with as many groups as channels of `x` and of `d`. The rows of `d` are places of the window, cut into
/// batches as its strides need; `w` is [taps, channels] by its strides.
template <class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv_depthwise(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, Matrices<const T> w, Matrices<D> d,
                       Operands<E...> extra) {
  using A = compute_t<T>;
  const int64_t taps = shape.k, channels = shape.n, rows = shape.m * shape.outer * shape.inner;
  if (rows == 0 || channels == 0) return 0;
  static thread_local Scratch scratch;
  A* const weight = static_cast<A*>(scratch.get(size_t(taps * channels) * sizeof(A)));  // channels of a tap side by side
  if (weight == nullptr) return ctx.fail("conv: no memory for the weight");
  const T* const from = w.at(0, 0);
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < channels; ++c) weight[t * channels + c] = static_cast<A>(from[t * w.row + c * w.col]);
  }
  const int64_t step = x.strides[R + 1];
#pragma omp parallel for schedule(static) if (rows * channels * taps >= 65536)
  for (int64_t number = 0; number < rows; ++number) {
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
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_DEPTHWISE_H_
