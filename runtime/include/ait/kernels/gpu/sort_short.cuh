/// @file sort_short.cuh
/// @brief Rows of up to 1,024 elements, each sorted by some lanes of a warp in registers.
///
/// The elements are pairs of a key and a place (`order.h`), which are all different, so that no step has to be stable. A step of the network (bitonic:
/// Batcher, 1968) compares pairs of one lane, or those of two lanes by a shuffle. The rows of a block lie in shared memory, where a lane finds any
/// element of its row; so do the places in their order, from which the block writes results in the order of memory.
#ifndef AIT_KERNELS_GPU_SORT_SHORT_CUH_
#define AIT_KERNELS_GPU_SORT_SHORT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/row_tile.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/order.h"

namespace ait::gpu {

/// The longest row: as many elements as the lanes of the smallest warp hold in registers.
template <class T>
inline constexpr int kSortShort = sizeof(T) > 4 ? 512 : 1024;

namespace detail {
__device__ __forceinline__ PackedPair shuffled(const PackedPair& pair, int mask) { return {shuffle_xor(pair.word, mask)}; }
__device__ __forceinline__ NarrowPair shuffled(const NarrowPair& pair, int mask) { return {shuffle_xor(pair.word, mask)}; }
__device__ __forceinline__ WidePair shuffled(const WidePair& pair, int mask) { return {shuffle_xor(pair.key, mask), shuffle_xor(pair.at, mask)}; }

/// @brief The lesser of two pairs if `lower`, the greater otherwise.
template <class Pair>
__device__ __forceinline__ Pair kept(const Pair& a, const Pair& b, bool lower) {
  return (b < a) == lower ? b : a;
}
__device__ __forceinline__ PackedPair kept(const PackedPair& a, const PackedPair& b, bool lower) {
  const uint32_t least = a.word < b.word ? a.word : b.word, most = a.word < b.word ? b.word : a.word;
  return {lower ? least : most};
}

template <class Pair>
__device__ __forceinline__ void in_order(Pair& low, Pair& high) {
  const Pair a = low, b = high;
  low = kept(a, b, true);
  high = kept(a, b, false);
}

/// @brief Sorts pairs of which each half, quarter and so on is bitonic: the last steps of a merge, within a lane.
template <int kItems, class Pair>
__device__ __forceinline__ void merge_items(Pair (&pairs)[kItems]) {
#pragma unroll
  for (int step = kItems / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if ((i & step) == 0) in_order(pairs[i], pairs[i + step]);
    }
  }
}

/// @brief Sorts the pairs of `lanes` neighbouring lanes, a power of two: lane l gets those of rank l * kItems and after. All lanes of the warp take part.
template <int kItems, class Pair>
__device__ __forceinline__ void sort_lanes(Pair (&pairs)[kItems], int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int size = 2; size <= kItems; size *= 2) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if ((i & (size / 2)) == 0) in_order(pairs[i], pairs[i ^ (size - 1)]);
    }
#pragma unroll
    for (int step = size / 4; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if ((i & step) == 0) in_order(pairs[i], pairs[i + step]);
      }
    }
  }
  // Two sorted runs of half / 2 lanes become one: first each end meets the other one, then halves of halves meet.
#pragma unroll 1
  for (int half = 1; half < lanes; half *= 2) {
    const bool first = (lane & half) == 0;
#pragma unroll
    for (int i = 0; i < kItems / 2; ++i) {
      const int end = kItems - 1 - i;
      const Pair to_low = shuffled(pairs[end], 2 * half - 1), to_high = shuffled(pairs[i], 2 * half - 1);
      pairs[i] = kept(pairs[i], to_low, first);
      pairs[end] = kept(pairs[end], to_high, first);
    }
#pragma unroll 1
    for (int step = half / 2; step > 0; step /= 2) {
      const bool lower = (lane & step) == 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) pairs[i] = kept(pairs[i], shuffled(pairs[i], step), lower);
    }
    merge_items(pairs);
  }
}

inline constexpr int kOrderPad = 8;  ///< places of 2 bytes between rows, so that columns of them lie in different banks

template <class T>
int64_t sort_short_bytes(int rows, int length, int width) {
  return TileOfRows<T>::bytes(rows, length) + rows * (16 + 2 * int64_t(width + kOrderPad));
}
}  // namespace detail

/// A block sorts `most` rows of up to kItems * lanes elements.
/// @param reads,writes whether neighbours in the memory of the input, of the results, belong to neighbouring rows
template <int kItems, class Sorted>
__global__ void __launch_bounds__(kRowTileThreads) sort_short_kernel(Sorted sorted, int most, int lanes, bool reads, bool writes) {
  using T = typename Sorted::Value;
  using Pair = short_pair_t<T>;
  using Tile = TileOfRows<T>;
  static_assert(kItems % 8 == 0, "a lane writes places in vectors of eight");
  AIT_DYNAMIC_SHARED(16, sort_short_shared);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * most;
  const int length = static_cast<int>(sorted.space.length), pitch = kItems * lanes + detail::kOrderPad;
  const Tile tile(sort_short_shared, most, sorted.space.rows - first, length, reads);
  int64_t* const starts = reinterpret_cast<int64_t*>(sort_short_shared + Tile::bytes(most, length));
  uint16_t* const order = reinterpret_cast<uint16_t*>(starts + 2 * most);
  wait_for_previous();
  allow_next();
  for (int r = threadIdx.x; r < tile.rows; r += kRowTileThreads) sorted.result_starts(first + r, starts[2 * r], starts[2 * r + 1]);
  tile.read(sorted, first);
  const int lane = static_cast<int>(threadIdx.x) % lanes, groups = kRowTileThreads / lanes;
#pragma unroll 1
  for (int base = 0; base < tile.rows; base += groups) {
    const int row = base + static_cast<int>(threadIdx.x) / lanes;
    const bool there = row < tile.rows;
    Pair pairs[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = i * lanes + lane;
      pairs[i] = there && place < length ? Pair::of(sorted.key_of(tile.at(row, place)), place) : Pair::last();
    }
    detail::sort_lanes(pairs, lanes);
    if (!there) continue;
    using Word = word_t<16>;
    Word* const to = reinterpret_cast<Word*>(order + row * pitch + lane * kItems);
    const auto two = [&](int i) { return static_cast<uint32_t>(pairs[i].place() & 0xffff) | static_cast<uint32_t>(pairs[i + 1].place()) << 16; };
#pragma unroll
    for (int i = 0; i < kItems; i += 8) to[i / 8] = Word{two(i), two(i + 2), two(i + 4), two(i + 6)};
  }
  __syncthreads();
  const int count = sorted.count < length ? static_cast<int>(sorted.count) : length, outer = writes ? count : tile.rows;
  for (typename Tile::Walk walk(tile, writes, count); walk.other < outer; walk.next()) {
    const int row = walk.row(), place = order[row * pitch + walk.place()];
    sorted.store_at(starts[2 * row], starts[2 * row + 1], walk.place(), tile.at(row, place), place);
  }
}

/// @brief Sorts rows of kLeast to kMost elements, at most kSortShort: as few kernels are compiled as these lengths need.
/// @param reads,writes as of `sort_short_kernel`
template <int kLeast, int kMost, int kItems = 8, class Sorted>
int32_t sort_short(const Context& ctx, const Sorted& sorted, bool reads, bool writes) {
  using T = typename Sorted::Value;
  constexpr int kHeld = kItems * kWarpSize;
  static_assert(kMost <= kSortShort<T>, "registers have no room for a row");
  const int length = static_cast<int>(sorted.space.length);
  if constexpr (kLeast > kHeld) {
    return sort_short<kLeast, kMost, 2 * kItems>(ctx, sorted, reads, writes);
  } else {
    if constexpr (kMost > kHeld) {
      if (length > kHeld) return sort_short<kHeld + 1, kMost, 2 * kItems>(ctx, sorted, reads, writes);
    }
    constexpr int kTile = 2048;  // elements that a block should have
    int lanes = 1;
    while (lanes * kItems < length) lanes *= 2;
    const int64_t limit = shared_limit();
    int most = rows_of_tile<T>(kRowTileThreads / lanes, reads || writes);
    while (lanes == 1 && most * length < kTile) most *= 2;
    // Few rows are spread over the card.
    while (most > 1 && !reads && !writes && sorted.space.rows < most * int64_t(multiprocessors())) most /= 2;
    while (most > 1 && detail::sort_short_bytes<T>(most, length, kItems * lanes) > limit) most /= 2;
    LaunchConfig config;
    config.block = dim3(kRowTileThreads);
    config.grid = dim3(grid_size((sorted.space.rows + most - 1) / most));
    config.dependent = true;
    config.shared_bytes = static_cast<uint32_t>(detail::sort_short_bytes<T>(most, length, kItems * lanes));
    return launch(ctx, config, sort_short_kernel<kItems, Sorted>, sorted, most, lanes, reads, writes);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SORT_SHORT_CUH_
