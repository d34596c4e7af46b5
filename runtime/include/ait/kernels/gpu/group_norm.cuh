/// @file group_norm.cuh
/// @brief From the statistics of a group norm, a mean and a factor for each channel.
#ifndef AIT_KERNELS_GPU_GROUP_NORM_CUH_
#define AIT_KERNELS_GPU_GROUP_NORM_CUH_

#include <math.h>
#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/reduce_split.cuh"

namespace ait::gpu {

/// One block for each group of a batch. It joins the `parts` of its units: those of a unit are `step` apart, those of the next unit `next` apart.
template <class A, class T, class P>
__global__ void __launch_bounds__(kPartThreads)
    group_factors_kernel(const P* found, int64_t parts, int64_t step, int64_t next, int64_t groups, int64_t per_group, int64_t channels,
                         const T* scale, double eps, A* factors) {
  __shared__ P shared[kPartThreads / kWarpSize];
  __shared__ A normal[2];
  wait_for_previous();
  allow_next();
  const int64_t group = blockIdx.x;
  P part = P::template none<A>();
  for (int64_t i = threadIdx.x; i < per_group * parts; i += kPartThreads) {
    part.join(found[(group * per_group + i % per_group) * next + i / per_group * step]);
  }
  detail::join_block(part, shared);
  if (threadIdx.x == 0) {
    normal[0] = part.mean;
    normal[1] = A(1) / static_cast<A>(::sqrt(part.squares / part.count + static_cast<A>(eps)));
  }
  __syncthreads();
  const A mean = normal[0], rest = normal[1];
  const int64_t of_group = per_group * channels;
  for (int64_t c = threadIdx.x; c < of_group; c += kPartThreads) {
    const int64_t channel = group % groups * of_group + c, place = group * of_group + c;
    factors[place] = mean;
    factors[gridDim.x * of_group + place] = scale == nullptr ? rest : rest * static_cast<A>(convert<compute_t<T>>(scale[channel]));
  }
}

/// @brief The mean and the factor of each channel: the normalised and scaled element is (x - mean) * factor.
/// @param parts the results of `reduce_parts` for the units, with the same sizes and operand; a group has `per_group` units of `channels` channels
/// @param factors the mean for each channel of each batch, then the factor
template <int kKept, bool kColumns, size_t kRank, class In, class Number, class T>
int32_t group_factors(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Number* parts, int64_t groups, int64_t per_group,
                      int64_t channels, const T* scale, double eps, Number* factors) {
  using P = detail::part_t<Var, In>;
  const auto split = detail::split_t<kColumns, kKept, kRank, In>::of(sizes, in);
  if (split.space.rows <= 0) return 0;
  const int64_t step = kColumns ? split.space.rows : 1, next = kColumns ? 1 : split.parts;
  LaunchConfig config;
  config.block = dim3(kPartThreads);
  config.grid = dim3(grid_size(split.space.rows / per_group));
  config.dependent = true;
  return launch(ctx, config, group_factors_kernel<Number, T, P>, reinterpret_cast<const P*>(parts), split.parts, step, next, groups, per_group,
                channels, scale, eps, factors);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GROUP_NORM_CUH_
