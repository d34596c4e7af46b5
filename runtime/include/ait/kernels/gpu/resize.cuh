/// @file resize.cuh
/// @brief Resampling of the spatial dims.
#ifndef AIT_KERNELS_GPU_RESIZE_CUH_
#define AIT_KERNELS_GPU_RESIZE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/spatial.cuh"
#include "ait/kernels/resize_shape.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes `kVec` channels of one element of the result. The dims of `space` are batch, channels and spatial dims, or, with `kChannels`,
/// the channels last: neighbouring threads access neighbouring memory. Instructions take longer than memory, so places have 32 bits unless `kWide`.
template <ResizeMode kMode, int kDims, bool kChannels, int kVec, bool kWide, class T>
__global__ void __launch_bounds__(256) resize_kernel(Space<5, kWide> space, int64_t total, ResizeShape shape, SpatialTensor<const T> x,
                                                     SpatialTensor<T> y) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[5];
    space.split(static_cast<typename Space<5, kWide>::Index>(task), at);
    const int64_t n = at[0], c = (kChannels ? at[4] : at[1]) * kVec;
    const int64_t place[3] = {at[kChannels ? 1 : 2], at[kChannels ? 2 : 3], at[kChannels ? 3 : 4]};
    const ResizeWindow<kMode, kDims, A, std::conditional_t<kWide, int64_t, int>> window(shape, place);
    T results[kVec];
    if constexpr (kResizeTaps<kMode> == 1) {
      window.each(x, n, [&](const T* from, A) { load<kVec>(from + c * x.strides[4], results); });
    } else {
      A sums[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] = A(0);
      window.each(x, n, [&](const T* from, A weight) {
        T elements[kVec];
        load<kVec>(from + c * x.strides[4], elements);
        A values[kVec];
        convert_all(elements, values);
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[j] += weight * values[j];
      });
#pragma unroll
      for (int j = 0; j < kVec; ++j) results[j] = convert<T>(sums[j]);
    }
    store<kVec>(y.at(n, place[0], place[1], place[2]) + c * y.strides[4], results);
  }
}

namespace detail {
template <ResizeMode kMode, int kDims, bool kChannels, int kVec, class T>
int32_t launch_resize(const Context& ctx, ResizeShape shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  if constexpr (kResizeTaps<kMode> > 1 && !std::is_same_v<T, double>) {  // a multiple of a rounded step may be an ulp off
    for (ResizeAxis& axis : shape.axes) axis = axis.prepared();
  }
  const int64_t channels = shape.channels / kVec, d = shape.axes[0].out, h = shape.axes[1].out, w = shape.axes[2].out;
  const int64_t last[5] = {shape.batch, d, h, w, channels}, second[5] = {shape.batch, channels, d, h, w};
  const int64_t(&sizes)[5] = kChannels ? last : second;
  const int64_t total = shape.batch * channels * d * h * w;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  bool narrow = total < int64_t(1) << 31;
  constexpr int64_t kMost = int64_t(1) << 30;
  for (const ResizeAxis& axis : shape.axes) {  // a scale may lead far beyond the input
    narrow = narrow && axis.in < kMost && axis.out < kMost && axis.place(static_cast<double>(axis.out)) < static_cast<double>(kMost);
  }
  if (narrow) return launch(ctx, config, resize_kernel<kMode, kDims, kChannels, kVec, false, T>, Space<5, false>(sizes), total, shape, x, y);
  return launch(ctx, config, resize_kernel<kMode, kDims, kChannels, kVec, true, T>, Space<5, true>(sizes), total, shape, x, y);
}
}  // namespace detail

/// @brief y = x resampled to the sizes of `shape`, along the last `kDims` of three spatial dims. Any strides.
/// @tparam kChannels whether the channels are contiguous in both tensors
template <ResizeMode kMode, int kDims, bool kChannels, class T>
int32_t resize(const Context& ctx, const ResizeShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  if constexpr (kChannels) {
    constexpr int kVec = detail::kChannelVector<T>;
    if (shape.channels % kVec == 0 && detail::channel_vectors<kVec>(x) && detail::channel_vectors<kVec>(y)) {
      return detail::launch_resize<kMode, kDims, true, kVec>(ctx, shape, x, y);
    }
  }
  return detail::launch_resize<kMode, kDims, kChannels, 1>(ctx, shape, x, y);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_RESIZE_CUH_
