/// @file roi_align.cuh
/// @brief Features of regions, averaged over the samples of their bins.
#ifndef AIT_KERNELS_GPU_ROI_ALIGN_CUH_
#define AIT_KERNELS_GPU_ROI_ALIGN_CUH_

#include <math.h>
#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/roi.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes `kVec` channels of one bin; the dims of `space` are regions, rows and columns of bins, and channels.
template <int kVec, bool kWide, class T, class R, int kLevels>
__global__ void __launch_bounds__(256) roi_align_kernel(Space<4, kWide> space, int64_t total, RoiShape<T, R, kLevels> shape, T* y,
                                                         Pack<int64_t, int64_t, int64_t, int64_t> strides) {
  using A = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<R, double>, double, float>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[4];
    space.split(static_cast<typename Space<4, kWide>::Index>(task), at);
    const Roi<A> roi = shape.template roi<A>(at[0]);
    const int64_t c = at[3] * kVec, step = shape.step(roi.level);
    const int64_t first = shape.channel(c, at[1], at[2]) * step;
    A sums[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = roi.image < 0 ? static_cast<A>(NAN) : A(0);
    if (roi.image >= 0) {
      shape.each(roi, at[1], at[2], [&](const T* from, A weight) {
        T elements[kVec];
        load<kVec>(from + first, elements);
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[j] += weight * convert<A>(elements[j]);
      });
    }
    const A count = static_cast<A>(roi.rows) * static_cast<A>(roi.columns), samples = count > A(1) ? count : A(1);
    T results[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) results[j] = convert<T>(sums[j] / samples);
    store<kVec>(y + at[0] * get<0>(strides) + at[1] * get<1>(strides) + at[2] * get<2>(strides) + c * get<3>(strides), results);
  }
}

namespace detail {
template <int kVec, class T, class R, int kLevels>
int32_t launch_roi_align(const Context& ctx, const RoiShape<T, R, kLevels>& shape, T* y, const int64_t (&strides)[4]) {
  const int64_t sizes[4] = {shape.regions, shape.bins[0], shape.bins[1], shape.channels / kVec};
  const int64_t total = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  const auto steps = pack(strides[0], strides[1], strides[2], strides[3]);
  if (total < int64_t(1) << 31) return launch(ctx, config, roi_align_kernel<kVec, false, T, R, kLevels>, Space<4, false>(sizes), total, shape, y, steps);
  return launch(ctx, config, roi_align_kernel<kVec, true, T, R, kLevels>, Space<4, true>(sizes), total, shape, y, steps);
}
}  // namespace detail

/// @brief y [regions, bins, bins, channels], any strides. A region whose image is outside of the batch is NaN.
template <class T, class R, int kLevels>
int32_t roi_align(const Context& ctx, const RoiShape<T, R, kLevels>& shape, T* y, const int64_t (&strides)[4]) {
  constexpr int kVec = static_cast<int>(16 / sizeof(T));
  bool wide = !shape.sensitive && shape.channels % kVec == 0 && strides[3] == 1 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
  for (int d = 0; d < 3; ++d) wide = wide && strides[d] % kVec == 0;
  for (const RoiLevel<T>& level : shape.levels) {
    wide = wide && level.strides[3] == 1 && reinterpret_cast<uintptr_t>(level.data) % 16 == 0;
    for (int d = 0; d < 3; ++d) wide = wide && level.strides[d] % kVec == 0;
  }
  return wide ? detail::launch_roi_align<kVec>(ctx, shape, y, strides) : detail::launch_roi_align<1>(ctx, shape, y, strides);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_ROI_ALIGN_CUH_
