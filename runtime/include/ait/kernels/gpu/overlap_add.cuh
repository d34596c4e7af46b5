/// @file overlap_add.cuh
/// @brief Sums of overlapping windows: a thread has an element of the result and reads what lies over it, so that nothing is scattered.
#ifndef AIT_KERNELS_GPU_OVERLAP_ADD_CUH_
#define AIT_KERNELS_GPU_OVERLAP_ADD_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/overlap_shape.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// @tparam Index of coordinates: 32 bits where all of them fit
template <class Index, int kOuter, int kAxes, class T>
__global__ void __launch_bounds__(256) overlap_add_kernel(OverlapShape<kOuter, kAxes> shape, int64_t count, const T* x, T* y) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    Index at[kAxes], rest = static_cast<Index>(i);
    int64_t to = 0, from = 0;
#pragma unroll
    for (int a = kAxes - 1; a >= 0; --a) {
      const Index size = static_cast<Index>(shape.axes[a].size), quotient = rest / size;
      at[a] = rest - quotient * size;
      to += at[a] * shape.axes[a].y;
      rest = quotient;
    }
#pragma unroll
    for (int d = kOuter - 1; d >= 0; --d) {
      const Index size = static_cast<Index>(shape.outer[d]), quotient = d > 0 ? rest / size : 0, coordinate = rest - quotient * size;
      to += coordinate * shape.y_outer[d];
      from += coordinate * shape.x_outer[d];
      rest = quotient;
    }
    y[to] = convert<T>(shape.template sum<A>(x + from, at));
  }
}

/// @brief y = the sums of the elements of windows that lie over each element.
template <int kOuter, int kAxes, class T>
int32_t overlap_add(const Context& ctx, const OverlapShape<kOuter, kAxes>& shape, const T* x, T* y) {
  const int64_t count = shape.count();
  if (count <= 0) return 0;
  int64_t reach = count;
  for (const OverlapAxis& axis : shape.axes) {
    const int64_t most = axis.size + axis.before + axis.window * axis.dilation;
    reach = reach > most ? reach : most;
  }
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(count, 256, 1 << 20));
  config.dependent = true;
  if (reach < INT32_MAX) return launch(ctx, config, overlap_add_kernel<int32_t, kOuter, kAxes, T>, shape, count, x, y);
  return launch(ctx, config, overlap_add_kernel<int64_t, kOuter, kAxes, T>, shape, count, x, y);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_OVERLAP_ADD_CUH_
