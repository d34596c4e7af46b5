/// @file pool.cuh
/// @brief The largest element or the mean of each window of the spatial dims, and the place of the largest.
#ifndef AIT_KERNELS_GPU_POOL_CUH_
#define AIT_KERNELS_GPU_POOL_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/pool_tile.cuh"
#include "ait/kernels/gpu/spatial.cuh"
#include "ait/kernels/pool_shape.h"
#include "ait/kernels/reduction.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes one window for `kVec` channels. The dims of `space` are batch, channels, and the windows along each dim, or, with `kChannels`,
/// the channels last: neighbouring threads access neighbouring memory. Where windows overlap, instructions take longer than memory: places have 32 bits
/// unless `kWide`, pointers step from line to line, and the larger of two floats is one instruction (72 of them in 3 x 3 places of 8 channels).
/// @tparam kLine the most elements of a window along the last dim, whose loads then all start before the first is used; 0: any number
template <bool kMax, bool kPlaces, bool kChannels, int kLine, int kVec, bool kWide, class T, class I>
__global__ void __launch_bounds__(256) pool_kernel(Space<5, kWide> space, int64_t total, PoolShape shape, SpatialTensor<const T> x, SpatialTensor<T> y,
                                                   SpatialTensor<I> places) {
  using A = compute_t<T>;
  using Place = std::conditional_t<kWide, int64_t, int>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[5];
    space.split(static_cast<typename Space<5, kWide>::Index>(task), at);
    const int64_t n = at[0], c = (kChannels ? at[4] : at[1]) * kVec;
    const int64_t d = at[kChannels ? 1 : 2], h = at[kChannels ? 2 : 3], i = at[kChannels ? 3 : 4];
    const PoolWindowOf<Place> w[3] = {shape.axes[0].window(Place(d)), shape.axes[1].window(Place(h)), shape.axes[2].window(Place(i))};
    Pooled<kMax, kPlaces, A> pooled[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      if constexpr (kMax) {
        pooled[j].value = ait::detail::lowest<T, A>();
      } else {
        pooled[j].value = A(0);
      }
      if constexpr (kPlaces) pooled[j].place = shape.index(w[0].first, w[1].first, w[2].first);
    }
    const T* const origin = x.at(n, w[0].first, w[1].first, w[2].first) + c * x.strides[4];
    const int64_t step = w[2].step * x.strides[3];
    for (Place a = 0; a < w[0].count; ++a) {
      const T* from = origin + a * (w[0].step * x.strides[1]);
      for (Place b = 0; b < w[1].count; ++b, from += w[1].step * x.strides[2]) {
        int64_t index = 0;
        if constexpr (kPlaces) index = shape.index(w[0].first + a * w[0].step, w[1].first + b * w[1].step, w[2].first);
        const auto join = [&](const T(&elements)[kVec], int64_t k) {
          A values[kVec];
          convert_all(elements, values);
#pragma unroll
          for (int j = 0; j < kVec; ++j) {
            if constexpr (kMax && !kPlaces) {
              pooled[j].value = larger_of(pooled[j].value, values[j]);
            } else {
              pooled[j].join(values[j], index + k * w[2].step);
            }
          }
        };
        if constexpr (kLine > 0) {
          T elements[kLine][kVec];
#pragma unroll
          for (int k = 0; k < kLine; ++k) {
            if (k < w[2].count) load<kVec>(from + k * step, elements[k]);
          }
#pragma unroll
          for (int k = 0; k < kLine; ++k) {
            if (k < w[2].count) join(elements[k], k);
          }
        } else {
          for (Place k = 0; k < w[2].count; ++k) {
            T elements[kVec];
            load<kVec>(from + k * step, elements);
            join(elements, k);
          }
        }
      }
    }
    T results[kVec];
    if constexpr (kMax) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) results[j] = convert<T>(pooled[j].value);
    } else {
      A means[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) means[j] = pooled[j].value;
      divide_all<T, false>(means, shape.count(w));
#pragma unroll
      for (int j = 0; j < kVec; ++j) results[j] = convert<T>(means[j]);
    }
    store<kVec>(y.at(n, d, h, i) + c * y.strides[4], results);
    if constexpr (kPlaces) {
      I* const to = places.at(n, d, h, i) + c * places.strides[4];
#pragma unroll
      for (int j = 0; j < kVec; ++j) to[j * places.strides[4]] = static_cast<I>(pooled[j].place);
    }
  }
}

namespace detail {
/// The most elements of a window along the last dim whose loads all start before the first is used.
inline constexpr int kMostLine = 4;

template <bool kMax, bool kPlaces, bool kChannels, int kLine, int kVec, class T, class I>
int32_t launch_pool(const Context& ctx, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, const SpatialTensor<I>& places) {
  const int64_t channels = shape.channels / kVec, d = shape.axes[0].places, h = shape.axes[1].places, w = shape.axes[2].places;
  const int64_t last[5] = {shape.batch, d, h, w, channels}, second[5] = {shape.batch, channels, d, h, w};
  const int64_t(&sizes)[5] = kChannels ? last : second;
  const int64_t total = shape.batch * channels * d * h * w;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  const bool narrow = shape.axes[0].is_narrow() && shape.axes[1].is_narrow() && shape.axes[2].is_narrow();
  if (narrow && total < int64_t(1) << 31) {
    return launch(ctx, config, pool_kernel<kMax, kPlaces, kChannels, kLine, kVec, false, T, I>, Space<5, false>(sizes), total, shape, x, y, places);
  }
  return launch(ctx, config, pool_kernel<kMax, kPlaces, kChannels, kLine, kVec, true, T, I>, Space<5, true>(sizes), total, shape, x, y, places);
}

template <bool kMax, bool kPlaces, bool kChannels, class Taps, class T, class I>
int32_t pool(const Context& ctx, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, const SpatialTensor<I>& places) {
  constexpr int kVec = kChannelVector<T>, kLine = Taps::kWide <= kMostLine ? Taps::kWide : 0;
  if constexpr (kChannels) {
    if (shape.channels % kVec == 0 && channel_vectors<kVec>(x) && channel_vectors<kVec>(y)) {
      if constexpr (!kPlaces && Taps::kTiles) {
        int32_t status;
        if (launched_pool_tiles<kMax, Taps, kVec>(ctx, shape, x, y, status)) return status;
      }
      return launch_pool<kMax, kPlaces, true, kLine, kVec>(ctx, shape, x, y, places);
    }
  }
  return launch_pool<kMax, kPlaces, kChannels, kLine, 1>(ctx, shape, x, y, places);
}
}  // namespace detail

/// @brief y = the largest element (`kMax`) or the mean of each window. Any strides.
/// @tparam kChannels whether the channels are contiguous in both tensors
/// @tparam Taps a `PoolTaps`, of the last two spatial dims
template <bool kMax, bool kChannels, class Taps, class T>
int32_t pool(const Context& ctx, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  return detail::pool<kMax, false, kChannels, Taps>(ctx, shape, x, y, SpatialTensor<int64_t>{});
}

/// @brief y = the largest element of each window, places = its row-major index in the spatial dims.
template <bool kMax, bool kChannels, class Taps, class T, class I>
int32_t pool(const Context& ctx, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, const SpatialTensor<I>& places) {
  return detail::pool<kMax, true, kChannels, Taps>(ctx, shape, x, y, places);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_POOL_CUH_
