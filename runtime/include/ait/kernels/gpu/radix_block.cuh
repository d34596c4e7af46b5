/// @file radix_block.cuh
/// @brief Ranks of digits in a block, and stable radix sorts of unsigned keys and the places that they come from in one.
///
/// A pass orders by 8 bits of the keys, the lowest first. Each warp counts the digits of its elements one item after the other; the lanes of an item that
/// have one digit find each other by votes (Merrill and Garland's ranks).
#ifndef AIT_KERNELS_GPU_RADIX_BLOCK_CUH_
#define AIT_KERNELS_GPU_RADIX_BLOCK_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

namespace ait::gpu {

inline constexpr int kRadixBits = 8, kRadixDigits = 1 << kRadixBits;
/// A block: as many threads as digits, `kRadixEach` elements each.
inline constexpr int kRadixThreads = kRadixDigits, kRadixEach = 16, kRadixTile = kRadixThreads * kRadixEach;
inline constexpr int kRadixWarps = kRadixThreads / kWarpSize;

/// @brief How many passes sort keys of so many bits, at least one.
AIT_FN int radix_passes(int bits) { return bits <= kRadixBits ? 1 : (bits + kRadixBits - 1) / kRadixBits; }

/// @brief The bits of the largest key.
inline int key_bits(uint64_t largest) {
  int bits = 0;
  while (bits < 64 && largest >> bits != 0) ++bits;
  return bits;
}

/// @brief What the threads of a block, at least as many as digits, share when they rank digits.
template <int kThreads>
struct RadixCountersOf {
  static constexpr int kWarps = kThreads / kWarpSize;
  static_assert(kThreads >= kRadixDigits, "a digit has a thread");
  uint32_t of_warp[kWarps][kRadixDigits];
  uint32_t starts[kRadixDigits];  ///< the rank of the first element of each digit
  uint32_t sums[kWarps];
};
using RadixCounters = RadixCountersOf<kRadixThreads>;

namespace detail {
template <class K>
__device__ __forceinline__ uint32_t radix_digit(K key, int shift) {
  return static_cast<uint32_t>(key >> shift) & (kRadixDigits - 1);
}

/// @brief Where item `i` of this thread is in a tile: a warp has neighbours, `each` items of them.
__device__ __forceinline__ int radix_element(int i, int each) {
  const int thread = threadIdx.x;
  return (thread / kWarpSize * each + i) * kWarpSize + thread % kWarpSize;
}

/// @brief The lanes of the warp with this number of so many bits, for several numbers at once.
template <int kCount>
__device__ __forceinline__ void lanes_with(const uint32_t (&numbers)[kCount], int bits, lanes_t (&same)[kCount]) {
#pragma unroll
  for (int u = 0; u < kCount; ++u) same[u] = ~lanes_t(0);
#pragma unroll 1
  for (int bit = 0; bit < bits; ++bit) {
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const bool set = (numbers[u] >> bit & 1) != 0;
      const lanes_t lanes = ballot(set);
      same[u] &= set ? lanes : ~lanes;
    }
  }
}

/// @brief The lanes of the warp with this digit.
__device__ __forceinline__ lanes_t lanes_with(uint32_t digit) {
  lanes_t same = ~lanes_t(0);
#pragma unroll
  for (int bit = 0; bit < kRadixBits; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const lanes_t lanes = ballot(set);
    same &= set ? lanes : ~lanes;
  }
  return same;
}

/// @brief The sum over the threads of a block before this one.
template <int kWarps>
__device__ __forceinline__ uint32_t sum_before(uint32_t value, uint32_t (&sums)[kWarps]) {
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  uint32_t through = value;
#pragma unroll
  for (int delta = 1; delta < kWarpSize; delta *= 2) {
    const uint32_t below = shuffle_up(through, delta);
    if (lane >= delta) through += below;
  }
  if (lane == kWarpSize - 1) sums[warp] = through;
  __syncthreads();
  uint32_t before = through - value;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) before += w < warp ? sums[w] : 0;
  return before;
}

/// @brief The ranks of the first `each` digits of each thread in the stable order of a block; how many elements have digit threadIdx.x, 0 of a thread
/// without digit.
template <int kThreads, class Digit>
__device__ __forceinline__ uint32_t radix_rank(RadixCountersOf<kThreads>& shared, int each, const Digit& digit_of, uint32_t (&ranks)[kRadixEach]) {
  const int thread = threadIdx.x, lane = thread % kWarpSize;
  uint32_t* const counters = shared.of_warp[thread / kWarpSize];
  for (int d = lane; d < kRadixDigits; d += kWarpSize) counters[d] = 0;
  sync_warp();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i >= each) continue;
    const uint32_t digit = digit_of(i);
    const lanes_t same = lanes_with(digit), lower = same & lanes_below();
    const uint32_t before = counters[digit];
    sync_warp();
    if (lower == 0) counters[digit] = before + count_lanes(same);
    sync_warp();
    ranks[i] = before + count_lanes(lower);
  }
  __syncthreads();
  const bool has_digit = kThreads == kRadixDigits || thread < kRadixDigits;
  uint32_t count = 0;
  if (has_digit) {
#pragma unroll
    for (int w = 0; w < shared.kWarps; ++w) {
      const uint32_t own = shared.of_warp[w][thread];
      shared.of_warp[w][thread] = count;
      count += own;
    }
  }
  const uint32_t start = sum_before(count, shared.sums);
  if (has_digit) shared.starts[thread] = start;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i >= each) continue;
    const uint32_t digit = digit_of(i);
    ranks[i] += counters[digit] + shared.starts[digit];
  }
  return count;
}

/// @brief Moves elements to their ranks: this thread gets those of its own places.
template <class V>
__device__ __forceinline__ void radix_exchange(V* shared, int each, const uint32_t (&ranks)[kRadixEach], V (&values)[kRadixEach]) {
  __syncthreads();  // what was there has been read
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) shared[ranks[i]] = values[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) values[i] = shared[radix_element(i, each)];
  }
}
}  // namespace detail

/// @brief Sorts `each` times kRadixThreads keys of a block, and what comes with them, by their lowest bits. Equal keys keep their order.
/// @param keys,places item i of a thread is element `radix_element(i, each)`
/// @param exchanged room for kRadixTile elements of both types
template <class K, class V>
__device__ __forceinline__ void radix_sort_block(RadixCounters& shared, void* exchanged, int each, int passes, K (&keys)[kRadixEach],
                                                 V (&places)[kRadixEach]) {
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t ranks[kRadixEach];
    detail::radix_rank(shared, each, [&](int i) { return detail::radix_digit(keys[i], pass * kRadixBits); }, ranks);
    detail::radix_exchange(static_cast<K*>(exchanged), each, ranks, keys);
    detail::radix_exchange(static_cast<V*>(exchanged), each, ranks, places);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_RADIX_BLOCK_CUH_
