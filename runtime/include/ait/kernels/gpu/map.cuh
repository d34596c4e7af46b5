/// @file map.cuh
/// @brief Elementwise kernels: one functor over strided, broadcast operands, several results.
#ifndef AIT_KERNELS_GPU_MAP_CUH_
#define AIT_KERNELS_GPU_MAP_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

namespace detail {
/// F on `kCount` elements from these coordinates on.
template <class F, int kCount, int kRank, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_group(const int64_t (&coordinate)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...> in_indices,
                                          const Pack<Outs...>& outs, std::index_sequence<O...> out_indices) {
  const Pack<Values<typename Ins::Compute, kCount>...> values = pack(load_values<kCount>(get<I>(ins), at<kCount>(get<I>(ins), coordinate))...);
  Pack<Values<typename Outs::Compute, kCount>...> results;
  apply_values<F, kCount>(values, in_indices, results, out_indices);
  (store_values<kCount>(get<O>(outs), at<kCount>(get<O>(outs), coordinate), get<O>(results)), ...);
}
}  // namespace detail

/// A thread computes groups of `kCount` neighbours along the innermost dim. `tail` elements behind the last group of a one-dim space are
/// done one by one.
template <class F, int kCount, int kRank, bool kWide, class Ins, class Outs>
__global__ void map_kernel(Space<kRank, kWide> groups_of, int64_t groups, int64_t tail, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  using Index = typename Space<kRank, kWide>::Index;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const typename Ins::Indices in_indices;
  const typename Outs::Indices out_indices;
  for (int64_t group = first; group < groups; group += stride) {
    int64_t coordinate[kRank];
    groups_of.split(static_cast<Index>(group), coordinate);
    detail::map_group<F, kCount>(coordinate, ins, in_indices, outs, out_indices);
  }
  if constexpr (kRank == 1 && kCount > 1) {
    if (first < tail) {
      const int64_t coordinate[1] = {groups * kCount + first};
      detail::map_group<F, 1>(coordinate, ins, in_indices, outs, out_indices);
    }
  }
}

namespace detail {
template <class F, int kCount, size_t kRank, class... Ins, class... Outs>
int32_t launch_map(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  constexpr int kDims = static_cast<int>(kRank);
  int64_t counts[kRank];
  int64_t groups = 1;
  for (int d = 0; d < kDims; ++d) {
    counts[d] = d == kDims - 1 ? sizes[d] / kCount : sizes[d];
    groups *= counts[d];
  }
  const int64_t tail = sizes[kRank - 1] % kCount;  // not 0 for one dim only
  LaunchConfig config;
  config.block = dim3(groups >= 65536 ? 256 : 128);
  config.grid = dim3(ceil_div(groups < 1 ? 1 : groups, config.block.x, 1 << 20));
  config.dependent = true;
  if (groups < (int64_t(1) << 31)) {
    return launch(ctx, config, map_kernel<F, kCount, kDims, false, Pack<Ins...>, Pack<Outs...>>, Space<kDims, false>(counts), groups, tail, ins, outs);
  }
  return launch(ctx, config, map_kernel<F, kCount, kDims, true, Pack<Ins...>, Pack<Outs...>>, Space<kDims, true>(counts), groups, tail, ins, outs);
}

template <int kCount, class... Ops, size_t... I>
bool all_may_access(const Pack<Ops...>& operands, std::index_sequence<I...>) {
  return (may_access<kCount>(get<I>(operands)) && ... && true);
}
}  // namespace detail

/// @brief outs[...] = F(ins[...]) over an iteration space of `sizes`.
///
/// The operands have a stride for each dim of the space (0 where they are broadcast). An output may be the very buffer of an input with the
/// same strides; no other overlap is allowed. Accesses are of 16 bytes where size, strides and addresses allow it.
template <class F, size_t kRank, class... Ins, class... Outs>
int32_t map(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  for (size_t d = 0; d < kRank; ++d) {
    if (sizes[d] <= 0) return 0;
  }
  constexpr int kCount = vector_width<Ins..., Outs...>();
  const bool whole = kRank == 1 || sizes[kRank - 1] % kCount == 0;
  if (whole && detail::all_may_access<kCount>(ins, std::index_sequence_for<Ins...>{}) &&
      detail::all_may_access<kCount>(outs, std::index_sequence_for<Outs...>{})) {
    return detail::launch_map<F, kCount>(ctx, sizes, ins, outs);
  }
  return detail::launch_map<F, 1>(ctx, sizes, ins, outs);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MAP_CUH_
