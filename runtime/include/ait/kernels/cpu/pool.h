/// @file pool.h
/// @brief The largest element or the mean of each window of the spatial dims, and the place of the largest.
#ifndef AIT_KERNELS_CPU_POOL_H_
#define AIT_KERNELS_CPU_POOL_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/pool_shape.h"
#include "ait/kernels/reduction.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// @brief f(pointer to the first channel, row-major index) for each element of a window.
template <class T, class F>
inline __attribute__((always_inline)) void each_of(const PoolShape& shape, const SpatialTensor<const T>& x, int64_t n, const PoolWindow (&w)[3], F&& f) {
  for (int64_t i = 0; i < w[0].count; ++i) {
    for (int64_t j = 0; j < w[1].count; ++j) {
      const int64_t d = w[0].first + i * w[0].step, h = w[1].first + j * w[1].step;
      const T* from = x.at(n, d, h, w[2].first);
      const int64_t index = shape.index(d, h, w[2].first);
      for (int64_t k = 0; k < w[2].count; ++k) f(from + k * w[2].step * x.strides[3], index + k * w[2].step);
    }
  }
}

template <bool kMax, class T>
inline compute_t<T> pool_start() {
  using A = compute_t<T>;
  if constexpr (kMax) return ait::detail::lowest<T, A>();
  return A(0);
}

/// @brief One window of all channels, which are contiguous in both tensors.
template <bool kMax, bool kPlaces, class T, class I>
void pool_channels(const PoolShape& shape, const SpatialTensor<const T>& x, int64_t n, const PoolWindow (&w)[3], T* to, I* places, int64_t place_step) {
  using A = compute_t<T>;
  A run[kBlock], values[kBlock];
  int64_t at[kPlaces ? kBlock : 1];
  for (int64_t c0 = 0; c0 < shape.channels; c0 += kBlock) {
    const int64_t count = shape.channels - c0 < kBlock ? shape.channels - c0 : kBlock;
    const int64_t first = shape.index(w[0].first, w[1].first, w[2].first);
    for (int64_t c = 0; c < count; ++c) values[c] = pool_start<kMax, T>();
    if constexpr (kPlaces) {
      for (int64_t c = 0; c < count; ++c) at[c] = first;
    }
    each_of(shape, x, n, w, [&](const T* from, int64_t index) {
      const A* read = run;
      if constexpr (std::is_same_v<A, T>) {
        read = from + c0;
      } else {
        widen(from + c0, count, run);
      }
#pragma omp simd
      for (int64_t c = 0; c < count; ++c) {
        Pooled<kMax, kPlaces, A> pooled{values[c], kPlaces ? at[kPlaces ? c : 0] : 0};
        pooled.join(read[c], index);
        values[c] = pooled.value;
        if constexpr (kPlaces) at[c] = pooled.place;
      }
    });
    if constexpr (!kMax) {
      const A divisor = static_cast<A>(shape.count(w));
      for (int64_t c = 0; c < count; ++c) values[c] /= divisor;
    }
    narrow(values, count, to + c0);
    if constexpr (kPlaces) {
      for (int64_t c = 0; c < count; ++c) places[(c0 + c) * place_step] = static_cast<I>(at[c]);
    }
  }
}

/// @brief One window of one channel.
template <bool kMax, bool kPlaces, class T, class I>
void pool_one(const PoolShape& shape, const SpatialTensor<const T>& x, int64_t n, int64_t c, const PoolWindow (&w)[3], T* to, I* place) {
  using A = compute_t<T>;
  Pooled<kMax, kPlaces, A> pooled{pool_start<kMax, T>(), shape.index(w[0].first, w[1].first, w[2].first)};
  each_of(shape, x, n, w, [&](const T* from, int64_t index) { pooled.join(static_cast<A>(from[c * x.strides[4]]), index); });
  if constexpr (!kMax) pooled.value /= static_cast<A>(shape.count(w));
  *to = static_cast<T>(pooled.value);
  if constexpr (kPlaces) *place = static_cast<I>(pooled.place);
}

template <bool kMax, bool kPlaces, bool kChannels, class T, class I>
int32_t pool(const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, const SpatialTensor<I>& places) {
  const int64_t outer = kChannels ? 1 : shape.channels;
  const int64_t sizes[5] = {shape.batch, outer, shape.axes[0].places, shape.axes[1].places, shape.axes[2].places};
  const int64_t tasks = sizes[0] * sizes[1] * sizes[2] * sizes[3], elements = tasks * sizes[4] * (shape.channels / (outer < 1 ? 1 : outer));
  if (elements == 0) return 0;
  parallel_for(tasks, elements >= kParallelElements / 8, [=](int64_t task) {
    int64_t at[4];
    coordinates<4>(task, sizes, at);
    const auto [n, c, d, h] = at;
    PoolWindow w[3] = {shape.axes[0].window(d), shape.axes[1].window(h), {}};
    for (int64_t i = 0; i < sizes[4]; ++i) {
      w[2] = shape.axes[2].window(i);
      I* const place = kPlaces ? places.at(n, d, h, i) : nullptr;
      if constexpr (kChannels) {
        pool_channels<kMax, kPlaces>(shape, x, n, w, y.at(n, d, h, i), place, places.strides[4]);
      } else {
        pool_one<kMax, kPlaces>(shape, x, n, c, w, y.at(n, d, h, i) + c * y.strides[4], kPlaces ? place + c * places.strides[4] : nullptr);
      }
    }
  });
  return 0;
}
}  // namespace detail

/// @brief y = the largest element (`kMax`) or the mean of each window. Any strides.
/// @tparam kChannels whether the channels are contiguous in both tensors
template <bool kMax, bool kChannels, class T>
int32_t pool(const Context&, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  return detail::pool<kMax, false, kChannels>(shape, x, y, SpatialTensor<int64_t>{});
}

/// @brief y = the largest element of each window, places = its row-major index in the spatial dims.
template <bool kMax, bool kChannels, class T, class I>
int32_t pool(const Context&, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, const SpatialTensor<I>& places) {
  return detail::pool<kMax, true, kChannels>(shape, x, y, places);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_POOL_H_
