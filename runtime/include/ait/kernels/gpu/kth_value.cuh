/// @file kth_value.cuh
/// @brief The k-th smallest element of each row, and where it is. A block has a row.
#ifndef AIT_KERNELS_GPU_KTH_VALUE_CUH_
#define AIT_KERNELS_GPU_KTH_VALUE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix_select.cuh"
#include "ait/kernels/gpu/sort.cuh"

namespace ait::gpu {

template <bool kNanFirst, class Sorted>
__global__ void __launch_bounds__(kRadixThreads) kth_value_kernel(Sorted sorted, uint32_t k, int passes) {
  using K = typename Sorted::K;
  using Row = detail::SelectPart<K, Sorted>;
  __shared__ SelectCounters shared;
  __shared__ uint32_t nan;
  wait_for_previous();
  allow_next();
  const Row row{sorted, static_cast<int64_t>(blockIdx.x), 0};
  BlockSelect<K, Row> select(row, sorted.space.length, shared);
  constexpr int kEach = BlockSelect<K, Row>::kEach;
  bool is_nan = false;
  if constexpr (kNanFirst) {
    if (threadIdx.x == 0) nan = 0;
    __syncthreads();
    select.each_tile([&](int64_t first) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) is_nan = is_nan || (select.has(first, i) && select.keys[i] == Sorted::kLast);
      return false;
    });
    if (ballot(is_nan) != 0 && threadIdx.x % kWarpSize == 0) atomicOr(&nan, 1u);
    __syncthreads();
    is_nan = nan != 0;
  }
  uint32_t number = is_nan ? 1 : k;
  const K found = is_nan ? Sorted::kLast : select.nth(passes, number);
  select.each_tile([&](int64_t first) {
    auto before = select.count(first, found);
    if (before.all_equal < number) {
      number -= before.all_equal;
      return false;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool equal = select.has(first, i) && select.keys[i] == found;
      const lanes_t all = ballot(equal);
      if (equal && before.equal + count_lanes(all & lanes_below()) + 1 == number) {
        sorted.store(blockIdx.x, 0, 0, first + detail::radix_element(i, kEach));
      }
      before.equal += count_lanes(all);
    }
    return true;
  });
}

/// @brief The `k`-th smallest element, counted from 1, along the last of `sizes`, and its place; the first NaN of a row that has one if kNanFirst.
/// @param values,indices have one element for each row: the first along the last dim
template <bool kNanFirst, size_t kRank, class In, class Values, class Indices>
int32_t kth_value(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t k, const Values& values, const Indices& indices) {
  using Sorted = SortedRows<false, static_cast<int>(kRank) - 1, In, Values, Indices>;
  const Sorted sorted = sorted_rows<Sorted>(sizes, in, 1, values, indices);
  if (sorted.space.rows <= 0 || sorted.space.length <= 0) return 0;
  if (sorted.space.length > UINT32_MAX) return ctx.fail("kth_value: a row of more than 2^32 - 1 elements");
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.grid = dim3(grid_size(sorted.space.rows));
  config.dependent = true;
  return launch(ctx, config, kth_value_kernel<kNanFirst, Sorted>, sorted, static_cast<uint32_t>(k), radix_passes(kSortBits<typename In::Value>));
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_KTH_VALUE_CUH_
