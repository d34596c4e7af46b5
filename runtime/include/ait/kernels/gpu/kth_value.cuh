/// @file kth_value.cuh
/// @brief The k-th smallest element of each row, and where it is. Several short rows share a block, a longer row has one.
#ifndef AIT_KERNELS_GPU_KTH_VALUE_CUH_
#define AIT_KERNELS_GPU_KTH_VALUE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix_select.cuh"
#include "ait/kernels/gpu/row_tile.cuh"
#include "ait/kernels/gpu/sort.cuh"

namespace ait::gpu {

/// @brief How threads hold a row: `kLanes` neighbours of a warp, or a block, with `kItems` elements each.
template <int kLanesOf, int kItemsOf>
struct RowShare {
  static constexpr int kLanes = kLanesOf, kItems = kItemsOf, kLength = kLanes * kItems;
  static constexpr bool kBlock = kLanes == kRadixThreads;
  static_assert(kBlock || kLanes <= 32, "lanes of a warp, or a block");
};

/// A block has `most` rows, a multiple of kRowTileThreads / Share::kLanes.
/// @param columns whether neighbouring elements in memory belong to neighbouring rows
template <bool kNanFirst, class Share, class Sorted>
__global__ void __launch_bounds__(kRowTileThreads, 4) kth_tile_kernel(Sorted sorted, uint32_t k, int bits, int most, bool columns) {
  using K = typename Sorted::K;
  using T = typename Sorted::Value;
  constexpr int kLanes = Share::kLanes, kItems = Share::kItems;
  AIT_DYNAMIC_SHARED(16, kth_shared);
  const int thread = threadIdx.x, length = static_cast<int>(sorted.space.length);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * most;
  const TileOfRows<T> tile(kth_shared, most, sorted.space.rows - first, length, columns);
  uint32_t* const places = reinterpret_cast<uint32_t*>(kth_shared + TileOfRows<T>::bytes(most, length));
  wait_for_previous();
  allow_next();
  tile.read(sorted, first);
  const int lane = thread % kLanes, shift = thread % kWarpSize / kLanes * kLanes;
  const lanes_t mine = (~lanes_t(0) >> (8 * sizeof(lanes_t) - kLanes)) << shift;
  for (int row = thread / kLanes; row < most; row += kRowTileThreads / kLanes) {
    K keys[kItems];
    const auto has = [&](int i) { return row < tile.rows && i * kLanes + lane < length; };
#pragma unroll
    for (int i = 0; i < kItems; ++i) keys[i] = has(i) ? sort_key<false>(tile.at(row, i * kLanes + lane)) : ~K(0);
    const auto sum = [](uint32_t count) {
#pragma unroll
      for (int mask = kLanes / 2; mask > 0; mask /= 2) count += shuffle_xor(count, mask);
      return count;
    };
    bool is_nan = false;
    if constexpr (kNanFirst) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) is_nan = is_nan || (has(i) && keys[i] == Sorted::kLast);
      is_nan = sum(is_nan) != 0;
    }
    uint32_t number = is_nan ? 1 : k;
    const K nth = nth_key(keys, bits, number, sum);
    const K found = is_nan ? Sorted::kLast : nth;
    if (is_nan) number = 1;
    uint32_t before = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const bool equal = has(i) && keys[i] == found;
      const lanes_t all = ballot(equal) & mine;
      if (equal && before + count_lanes(all & lanes_below()) + 1 == number) places[row] = i * kLanes + lane;
      before += count_lanes(all);
    }
  }
  __syncthreads();
  for (int r = thread; r < tile.rows; r += kRowTileThreads) sorted.store(first + r, 0, 0, places[r]);
}

template <bool kNanFirst, int kEach, class Sorted>
__global__ void __launch_bounds__(kRadixThreads, 2) kth_value_kernel(Sorted sorted, uint32_t k, int bits) {
  using K = typename Sorted::K;
  using Row = detail::SelectPart<K, Sorted>;
  using Select = BlockSelect<K, Row, kEach>;
  __shared__ SelectCounters shared;
  __shared__ uint32_t nan;
  wait_for_previous();
  allow_next();
  const Row row{sorted, static_cast<int64_t>(blockIdx.x), 0};
  Select select(row, sorted.space.length, shared);
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
  const K found = is_nan ? Sorted::kLast : select.nth(bits, number);
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

namespace detail {
/// Launches the kernel of the first share that holds a row, or of the last.
template <bool kNanFirst, class Share, class... Longer, class Sorted>
int32_t kth_value_with(const Context& ctx, const Sorted& sorted, uint32_t k, int bits, bool columns) {
  const int64_t length = sorted.space.length;
  if constexpr (sizeof...(Longer) > 0) {
    if (length > Share::kLength) return kth_value_with<kNanFirst, Longer...>(ctx, sorted, k, bits, columns);
  }
  LaunchConfig config;
  config.dependent = true;
  if constexpr (Share::kBlock) {
    config.block = dim3(kRadixThreads);
    config.grid = dim3(grid_size(sorted.space.rows));
    return launch(ctx, config, kth_value_kernel<kNanFirst, Share::kItems, Sorted>, sorted, k, bits);
  } else {
    using T = typename Sorted::Value;
    if (length > Share::kLength) return ctx.fail("kth_value: a row is longer than the dims of the model allow");
    const int most = rows_of_tile<T>(kRowTileThreads / Share::kLanes, columns);
    config.block = dim3(kRowTileThreads);
    config.grid = dim3(grid_size((sorted.space.rows + most - 1) / most));
    config.shared_bytes = static_cast<uint32_t>(TileOfRows<T>::bytes(most, static_cast<int>(length)) + most * int64_t(sizeof(uint32_t)));
    return launch(ctx, config, kth_tile_kernel<kNanFirst, Share, Sorted>, sorted, k, bits, most, columns);
  }
}
}  // namespace detail

/// @brief The `k`-th smallest element, counted from 1, along the last of `sizes`, and its place; the first NaN of a row that has one if kNanFirst.
/// @tparam Shares the RowShares to choose from, the shortest first; a block reads rows longer than its share in each pass
/// @param values,indices have one element for each row: the first along the last dim
template <bool kNanFirst, class... Shares, size_t kRank, class In, class Values, class Indices>
int32_t kth_value(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t k, const Values& values, const Indices& indices) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  using Sorted = SortedRows<false, kOuter, In, Values, Indices>;
  const Sorted sorted = sorted_rows<Sorted>(sizes, in, 1, values, indices);
  if (sorted.space.rows <= 0 || sorted.space.length <= 0) return 0;
  if (sorted.space.length > UINT32_MAX) return ctx.fail("kth_value: a row of more than 2^32 - 1 elements");
  constexpr int kBits = kSortBits<typename In::Value>;
  return detail::kth_value_with<kNanFirst, Shares...>(ctx, sorted, static_cast<uint32_t>(k), kBits, memory_has_columns(in));
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_KTH_VALUE_CUH_
