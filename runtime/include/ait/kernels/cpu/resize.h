/// @file resize.h
/// @brief Resampling of the spatial dims.
#ifndef AIT_KERNELS_CPU_RESIZE_H_
#define AIT_KERNELS_CPU_RESIZE_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/resize_shape.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {
/// @brief All channels of one element; the channels are contiguous in both tensors.
template <ResizeMode kMode, int kDims, class T>
void resize_channels(const ResizeShape& shape, const SpatialTensor<const T>& x, int64_t n, const int64_t (&at)[3], T* to) {
  using A = compute_t<T>;
  const ResizeWindow<kMode, kDims, A> window(shape, at);
  if constexpr (kResizeTaps<kMode> == 1) {
    window.each(x, n, [&](const T* from, A) { memcpy(static_cast<void*>(to), from, size_t(shape.channels) * sizeof(T)); });
  } else {
    A run[kBlock], sums[kBlock];
    for (int64_t c0 = 0; c0 < shape.channels; c0 += kBlock) {
      const int64_t count = shape.channels - c0 < kBlock ? shape.channels - c0 : kBlock;
      for (int64_t c = 0; c < count; ++c) sums[c] = A(0);
      window.each(x, n, [&](const T* from, A weight) {
        const A* read = run;
        if constexpr (std::is_same_v<A, T>) {
          read = from + c0;
        } else {
          widen(from + c0, count, run);
        }
#pragma omp simd
        for (int64_t c = 0; c < count; ++c) sums[c] += weight * read[c];
      });
      narrow(sums, count, to + c0);
    }
  }
}

/// @brief One channel of one element.
template <ResizeMode kMode, int kDims, class T>
void resize_one(const ResizeShape& shape, const SpatialTensor<const T>& x, int64_t n, int64_t c, const int64_t (&at)[3], T* to) {
  using A = compute_t<T>;
  const ResizeWindow<kMode, kDims, A> window(shape, at);
  if constexpr (kResizeTaps<kMode> == 1) {
    window.each(x, n, [&](const T* from, A) { *to = from[c * x.strides[4]]; });
  } else {
    A sum = A(0);
    window.each(x, n, [&](const T* from, A weight) { sum += weight * static_cast<A>(from[c * x.strides[4]]); });
    *to = static_cast<T>(sum);
  }
}
}  // namespace detail

/// @brief y = x resampled to the sizes of `shape`, along the last `kDims` of three spatial dims. Any strides.
/// @tparam kChannels whether the channels are contiguous in both tensors
template <ResizeMode kMode, int kDims, bool kChannels, class T>
int32_t resize(const Context&, const ResizeShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  const int64_t outer = kChannels ? 1 : shape.channels;
  const int64_t sizes[4] = {shape.batch, outer, shape.axes[0].out, shape.axes[1].out}, width = shape.axes[2].out;
  const int64_t tasks = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  if (tasks * width * shape.channels == 0) return 0;
  parallel_for(tasks, tasks * width * (kChannels ? shape.channels : 1) >= kParallelElements / 4, [=](int64_t task) {
    int64_t at[4];
    coordinates<4>(task, sizes, at);
    for (int64_t i = 0; i < width; ++i) {
      const int64_t place[3] = {at[2], at[3], i};
      T* const to = y.at(at[0], at[2], at[3], i);
      if constexpr (kChannels) {
        detail::resize_channels<kMode, kDims>(shape, x, at[0], place, to);
      } else {
        detail::resize_one<kMode, kDims>(shape, x, at[0], at[1], place, to + at[1] * y.strides[4]);
      }
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_RESIZE_H_
