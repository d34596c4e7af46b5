/// @file grid_sample.cuh
/// @brief An image sampled at the places of a grid.
#ifndef AIT_KERNELS_GPU_GRID_SAMPLE_CUH_
#define AIT_KERNELS_GPU_GRID_SAMPLE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/spatial.cuh"
#include "ait/kernels/grid.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes `kVec` channels of one place.
template <ResizeMode kMode, GridOutside kOutside, int kVec, bool kWide, class T>
__global__ void __launch_bounds__(256) grid_sample_kernel(Space<4, kWide> space, int64_t total, GridShape shape, SpatialTensor<const T> x,
                                                          SpatialTensor<const T> grid, SpatialTensor<T> y) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[4];
    space.split(static_cast<typename Space<4, kWide>::Index>(task), at);
    const int64_t c = at[3] * kVec;
    const T* const place = grid.at(at[0], 0, at[1], at[2]);
    A sums[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = A(0);
    each_of_grid<kMode, kOutside>(shape, x, at[0], convert<A>(place[0]), convert<A>(place[grid.strides[4]]), [&](const T* from, A weight) {
      T elements[kVec];
      load<kVec>(from + c * x.strides[4], elements);
      A values[kVec];
      convert_all(elements, values);
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] += weight * values[j];
    });
    T results[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) results[j] = convert<T>(sums[j]);
    store<kVec>(y.at(at[0], 0, at[1], at[2]) + c * y.strides[4], results);
  }
}

/// @brief Each thread computes `kChannels` channels of one place, with neighbouring places on neighbouring threads: for results that have places
/// side by side.
template <ResizeMode kMode, GridOutside kOutside, int kChannels, bool kWide, class T>
__global__ void __launch_bounds__(256) grid_sample_planes_kernel(Space<4, kWide> space, int64_t total, GridShape shape,
                                                                 SpatialTensor<const T> x, SpatialTensor<const T> grid, SpatialTensor<T> y) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[4];  // batch, channels, places
    space.split(static_cast<typename Space<4, kWide>::Index>(task), at);
    const int64_t c = at[1] * kChannels;
    const int count = static_cast<int>(shape.channels - c < kChannels ? shape.channels - c : kChannels);
    const T* const place = grid.at(at[0], 0, at[2], at[3]);
    A sums[kChannels];
#pragma unroll
    for (int j = 0; j < kChannels; ++j) sums[j] = A(0);
    each_of_grid<kMode, kOutside>(shape, x, at[0], convert<A>(place[0]), convert<A>(place[grid.strides[4]]), [&](const T* from, A weight) {
#pragma unroll
      for (int j = 0; j < kChannels; ++j) {
        if (j < count) sums[j] += weight * convert<A>(from[(c + j) * x.strides[4]]);
      }
    });
    T* const to = y.at(at[0], 0, at[2], at[3]) + c * y.strides[4];
#pragma unroll
    for (int j = 0; j < kChannels; ++j) {
      if (j < count) to[j * y.strides[4]] = convert<T>(sums[j]);
    }
  }
}

namespace detail {
/// @brief Launches a kernel with a thread for each point of a space.
/// @param narrow, wide the kernel with indices of 32 and of 64 bits
template <class Narrow, class Wide, class... A>
int32_t launch_over(const Context& ctx, const int64_t (&sizes)[4], Narrow narrow, Wide wide, const A&... arguments) {
  const int64_t total = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  if (total < int64_t(1) << 31) return launch(ctx, config, narrow, Space<4, false>(sizes), total, arguments...);
  return launch(ctx, config, wide, Space<4, true>(sizes), total, arguments...);
}

/// The channels of a thread whose neighbours have other places.
template <class T>
inline constexpr int kPlaneChannels = sizeof(T) < 8 ? 8 : 4;

template <ResizeMode kMode, GridOutside kOutside, class T>
int32_t launch_grid_sample_planes(const Context& ctx, const GridShape& shape, const SpatialTensor<const T>& x,
                                  const SpatialTensor<const T>& grid, const SpatialTensor<T>& y) {
  constexpr int kChannels = kPlaneChannels<T>;
  const int64_t sizes[4] = {shape.batch, (shape.channels + kChannels - 1) / kChannels, shape.places[0], shape.places[1]};
  return launch_over(ctx, sizes, grid_sample_planes_kernel<kMode, kOutside, kChannels, false, T>,
                     grid_sample_planes_kernel<kMode, kOutside, kChannels, true, T>, shape, x, grid, y);
}

template <ResizeMode kMode, GridOutside kOutside, int kVec, class T>
int32_t launch_grid_sample(const Context& ctx, const GridShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<const T>& grid,
                           const SpatialTensor<T>& y) {
  const int64_t sizes[4] = {shape.batch, shape.places[0], shape.places[1], shape.channels / kVec};
  return launch_over(ctx, sizes, grid_sample_kernel<kMode, kOutside, kVec, false, T>, grid_sample_kernel<kMode, kOutside, kVec, true, T>,
                     shape, x, grid, y);
}
}  // namespace detail

/// @brief y [batch, places, channels] = x at `grid` [batch, places, 2], whose places are (across, down), from -1 to 1. Any strides.
template <ResizeMode kMode, GridOutside kOutside, class T>
int32_t grid_sample(const Context& ctx, const GridShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<const T>& grid,
                    const SpatialTensor<T>& y) {
  constexpr int kVec = detail::kChannelVector<T>;
  if (y.strides[3] == 1 && y.strides[4] != 1) return detail::launch_grid_sample_planes<kMode, kOutside>(ctx, shape, x, grid, y);
  if (shape.channels % kVec == 0 && detail::channel_vectors<kVec>(x) && detail::channel_vectors<kVec>(y)) {
    return detail::launch_grid_sample<kMode, kOutside, kVec>(ctx, shape, x, grid, y);
  }
  return detail::launch_grid_sample<kMode, kOutside, 1>(ctx, shape, x, grid, y);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GRID_SAMPLE_CUH_
