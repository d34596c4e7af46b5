/// @file map_masked.cuh
/// @brief Elementwise kernels over a leading dim whose value is in device memory.
#ifndef AIT_KERNELS_GPU_MAP_MASKED_CUH_
#define AIT_KERNELS_GPU_MAP_MASKED_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/map.cuh"

namespace ait::gpu {

/// The first `*rows * each` groups of `kCount` elements, at most `groups` of them.
template <class F, int kCount, int kRank, bool kWide, class Ins, class Outs>
__global__ void map_masked_kernel(Space<kRank, kWide> groups_of, int64_t groups, const int64_t* rows, int64_t each, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  const int64_t there = *rows * each;
  detail::map_groups<F, kCount>(groups_of, there < groups ? there : groups, 1, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
}

namespace detail {
template <class F, int kCount, size_t kRank, class... Ins, class... Outs>
int32_t launch_map_masked(const Context& ctx, const int64_t (&sizes)[kRank], const int64_t* rows, int64_t each, const Pack<Ins...>& ins,
                          const Pack<Outs...>& outs) {
  constexpr int kDims = static_cast<int>(kRank);
  int64_t counts[kRank], groups = 1;
  for (int d = 0; d < kDims; ++d) {
    counts[d] = d == kDims - 1 ? sizes[d] / kCount : sizes[d];
    groups *= counts[d];
    if (d > 0) each *= counts[d];
  }
  if (kDims == 1) each /= kCount;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(groups, int64_t(256), 132 * 16));  // a few groups for each thread, because the value is often far below the largest
  config.dependent = true;
  if (groups < (int64_t(1) << 31)) {
    return launch(ctx, config, map_masked_kernel<F, kCount, kDims, false, Pack<Ins...>, Pack<Outs...>>, Space<kDims, false>(counts), groups, rows, each, ins,
                  outs);
  }
  return launch(ctx, config, map_masked_kernel<F, kCount, kDims, true, Pack<Ins...>, Pack<Outs...>>, Space<kDims, true>(counts), groups, rows, each, ins,
                outs);
}
}  // namespace detail

/// @brief outs[...] = F(ins[...]) over the first `*rows` rows of a space of `sizes`. It has at most `sizes[0] / each` rows.
///
/// Operands are as those of `map`. `rows` is in device memory, and no result may overlap it.
template <class F, size_t kRank, class... Ins, class... Outs>
int32_t map_masked(const Context& ctx, const int64_t (&sizes)[kRank], const int64_t* rows, int64_t each, const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  for (size_t d = 0; d < kRank; ++d) {
    if (sizes[d] <= 0) return 0;
  }
  constexpr int kCount = vector_width<Ins..., Outs...>();
  const int64_t whole = kRank == 1 ? each : sizes[kRank - 1];
  if (whole % kCount == 0 && detail::all_may_access<kCount>(ins, std::index_sequence_for<Ins...>{}) &&
      detail::all_may_access<kCount>(outs, std::index_sequence_for<Outs...>{})) {
    return detail::launch_map_masked<F, kCount>(ctx, sizes, rows, each, ins, outs);
  }
  return detail::launch_map_masked<F, 1>(ctx, sizes, rows, each, ins, outs);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MAP_MASKED_CUH_
