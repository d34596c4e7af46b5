/// @file topk.cuh
/// @brief The first elements of rows in order, and where they are.
///
/// A warp has a short row, of which it finds one element after the other, or which it sorts. Of a longer one each block selects the first elements of a part (Alabi et al.,
/// 2012), in the order of their places; of what all parts have, the next launch does the same, until one block can sort the rest.
#ifndef AIT_KERNELS_GPU_TOPK_CUH_
#define AIT_KERNELS_GPU_TOPK_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix_select.cuh"
#include "ait/kernels/gpu/row_tile.cuh"
#include "ait/kernels/gpu/sort.cuh"

namespace ait::gpu {

inline constexpr int kTopkShort = 1024;  ///< the longest row of a warp
inline constexpr int kTopkShare = 64;    ///< to find an element costs a warp as much as to sort so many

/// A warp has a row of up to kItems * kWarpSize elements. A block has `most` rows, a multiple of its warps.
template <int kItems, class Sorted>
__global__ void __launch_bounds__(kRowTileThreads) topk_warp_kernel(Sorted sorted, int most, bool columns) {
  using T = typename Sorted::Value;
  AIT_DYNAMIC_SHARED(16, topk_shared);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * most;
  const int length = static_cast<int>(sorted.space.length), lane = threadIdx.x % kWarpSize;
  const TileOfRows<T> tile(topk_shared, most, sorted.space.rows - first, length, columns);
  wait_for_previous();
  allow_next();
  tile.read(sorted, first);
  for (int row = threadIdx.x / kWarpSize; row < tile.rows; row += kRowTileThreads / kWarpSize) {
    using Pair = short_pair_t<T>;
    using Word = decltype(Pair::word);
    Word pairs[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = i * kWarpSize + lane;
      pairs[i] = place < length ? Pair::of(sorted.key_of(tile.at(row, place)), place).word : Pair::last().word;
    }
    Word mine = 0;  // the result of rank `lane`
    for (int rank = 0; rank < static_cast<int>(sorted.count); ++rank) {
      Word best = pairs[0];
#pragma unroll
      for (int i = 1; i < kItems; ++i) best = pairs[i] < best ? pairs[i] : best;
#pragma unroll
      for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
        const Word other = shuffle_xor(best, mask);
        best = other < best ? other : best;
      }
#pragma unroll
      for (int i = 0; i < kItems; ++i) pairs[i] = pairs[i] == best ? Pair::last().word : pairs[i];
      mine = lane == rank ? best : mine;
    }
    if (lane < sorted.count) sorted.store(first + row, lane, 0, Pair{mine}.place());
  }
}

/// Of each part of a row, the `count` elements that come first, in the order of their places.
template <class K, class From>
__global__ void __launch_bounds__(kRadixThreads)
    topk_part_kernel(From from, RadixBuffers<K> to, int64_t length, int64_t parts, int64_t count, int bits) {
  using Part = detail::SelectPart<K, From>;
  using Select = BlockSelect<K, Part>;
  __shared__ SelectCounters shared;
  wait_for_previous();
  allow_next();
  const int64_t row = static_cast<int64_t>(blockIdx.x) / parts, number = static_cast<int64_t>(blockIdx.x) % parts, first = number * Select::kTile;
  const int64_t here = length - first < Select::kTile ? length - first : Select::kTile;
  const Part part{from, row, first};
  Select select(part, here, shared);
  uint32_t wanted = static_cast<uint32_t>(here < count ? here : count);
  const K last = select.nth_held(bits, wanted);
  auto before = select.count(0, last);
#pragma unroll
  for (int i = 0; i < Select::kEach; ++i) {
    const bool less = select.has(0, i) && select.keys[i] < last, equal = select.has(0, i) && select.keys[i] == last;
    const lanes_t all_less = ballot(less), all_equal = ballot(equal);
    const uint32_t of_equal = before.equal + count_lanes(all_equal & lanes_below());
    if (less || (equal && of_equal < wanted)) {
      const uint32_t of_less = before.less + count_lanes(all_less & lanes_below());
      const int64_t at = first + detail::radix_element(i, Select::kEach);
      to.store(row, number * count + of_less + (of_equal < wanted ? of_equal : wanted), select.keys[i], from.place(row, at));
    }
    before.less += count_lanes(all_less);
    before.equal += count_lanes(all_equal);
  }
}

/// Sorts what is left of a row, at most kRadixTile elements, and stores the first.
template <class Sorted, class K>
__global__ void __launch_bounds__(kRadixThreads) topk_join_kernel(Sorted sorted, RadixBuffers<K> from, int64_t left, int each, int passes) {
  __shared__ RadixCounters counters;
  __shared__ K exchanged[kRadixTile];
  wait_for_previous();
  allow_next();
  const int64_t row = blockIdx.x;
  K keys[kRadixEach];
  uint32_t places[kRadixEach];
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    const bool there = i < each && at < left;
    keys[i] = there ? from.key(row, at) : ~K(0);
    places[i] = there ? from.place(row, at) : 0;
  }
  radix_sort_block(counters, exchanged, each, passes, keys, places);
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    if (i < each && at < left) sorted.store(row, at, 0, places[i]);
  }
}

namespace detail {
/// @brief The elements that the parts of rows of a length have together.
inline int64_t topk_left(int64_t length, int64_t count, int64_t tile) {
  const int64_t whole = length / tile, rest = length % tile;
  return whole * (count < tile ? count : tile) + (rest < count ? rest : count);
}

template <int kItems, class Sorted>
int32_t topk_short(const Context& ctx, const Sorted& sorted, bool columns) {
  using T = typename Sorted::Value;
  const int most = rows_of_tile<T>(kRowTileThreads / kWarpSize, columns);
  LaunchConfig config;
  config.block = dim3(kRowTileThreads);
  config.grid = dim3(grid_size((sorted.space.rows + most - 1) / most));
  config.dependent = true;
  config.shared_bytes = static_cast<uint32_t>(TileOfRows<T>::bytes(most, static_cast<int>(sorted.space.length)));
  return launch(ctx, config, topk_warp_kernel<kItems, Sorted>, sorted, most, columns);
}
}  // namespace detail

/// @brief Selects the first `count` elements of each part of long rows, until one block can sort what is left of a row.
template <class Sorted>
int32_t topk_of_parts(const Context& ctx, const Sorted& sorted, int64_t count, void* workspace) {
  using K = typename Sorted::K;
  constexpr int kTile = kSelectTile<K>, kBits = kSortBits<typename Sorted::Value>;
  const int64_t rows = sorted.space.rows, length = sorted.space.length;
  if (length > UINT32_MAX) return ctx.fail("topk: a row of more than 2^32 - 1 elements");
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.dependent = true;
  int64_t left = detail::topk_left(length, count, kTile);
  const int64_t most = rows * left;
  const auto buffers = [&](int which, int64_t each) {
    char* const at = static_cast<char*>(workspace) + which * ((most * int64_t(sizeof(K) + sizeof(uint32_t)) + 15) / 16 * 16);
    return RadixBuffers<K>{reinterpret_cast<K*>(at), reinterpret_cast<uint32_t*>(at + most * sizeof(K)), each};
  };
  RadixBuffers<K> now = buffers(0, left);
  int64_t parts = (length + kTile - 1) / kTile;
  config.grid = dim3(grid_size(rows * parts));
  if (const int32_t status = launch(ctx, config, topk_part_kernel<K, Sorted>, sorted, now, length, parts, count, kBits)) return status;
  for (int which = 1; left > kRadixTile; which = 1 - which) {
    const int64_t before = left;
    left = detail::topk_left(before, count, kTile);
    const RadixBuffers<K> to = buffers(which, left);
    parts = (before + kTile - 1) / kTile;
    config.grid = dim3(grid_size(rows * parts));
    if (const int32_t status = launch(ctx, config, topk_part_kernel<K, RadixBuffers<K>>, now, to, before, parts, count, kBits)) return status;
    now = to;
  }
  config.grid = dim3(grid_size(rows));
  const int held = static_cast<int>((left + kRadixThreads - 1) / kRadixThreads);
  return launch(ctx, config, topk_join_kernel<Sorted, K>, sorted, now, left, held, radix_passes(kBits));
}

/// @brief The first `count` elements along the last of `sizes` in the order of `sort_key`, and their places; as `sort`.
/// @param each as of `radix_sort`
/// @param workspace of `ait_mlir/lowering/kernels/sorting.py: topk_bytes`
template <bool kDescending, int kLeast, int kMost, size_t kRank, class In, class Values, class Indices>
int32_t topk(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices,
             int each, void* workspace) {
  using Sorted = SortedRows<kDescending, static_cast<int>(kRank) - 1, In, Values, Indices>;
  using K = typename Sorted::K;
  constexpr int kTile = kSelectTile<K>;
  const Sorted sorted = sorted_rows<Sorted>(sizes, in, count, values, indices);
  const int64_t rows = sorted.space.rows, length = sorted.space.length;
  if (rows <= 0 || count <= 0) return 0;
  if constexpr (sizeof(K) == 4 && kLeast <= kTopkShort) {
    if (count * kTopkShare <= length && length <= kTopkShort) {
      const bool columns = memory_has_columns(in);
      if (kMost <= 8 * kWarpSize || length <= 8 * kWarpSize) return detail::topk_short<8>(ctx, sorted, columns);
      return detail::topk_short<kTopkShort / kWarpSize>(ctx, sorted, columns);
    }
  }
  if (length <= kRadixTile || count > kTile / 4) {
    return sort<kDescending, kLeast, kMost>(ctx, sizes, in, count, values, indices, each, workspace);
  }
  return topk_of_parts(ctx, sorted, count, workspace);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_TOPK_CUH_
