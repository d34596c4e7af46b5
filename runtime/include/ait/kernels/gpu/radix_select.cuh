/// @file radix_select.cuh
/// @brief Which key is the n-th of a sequence, without a sort: bit by bit of keys in registers, digit by digit of others.
#ifndef AIT_KERNELS_GPU_RADIX_SELECT_CUH_
#define AIT_KERNELS_GPU_RADIX_SELECT_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/radix.cuh"

namespace ait::gpu {

/// @brief Keys that a thread holds at once.
template <class K>
inline constexpr int kSelectEach = sizeof(K) == 8 ? 16 : 32;
template <class K>
inline constexpr int kSelectTile = kRadixThreads * kSelectEach<K>;

namespace detail {
/// @brief A part of a row of keys and places.
template <class K, class From>
struct SelectPart {
  const From& from;
  int64_t row, first;
  __device__ __forceinline__ K key(int64_t i) const { return from.key(row, first + i); }
};
}  // namespace detail

/// @brief The key that is `number`-th in order, counted from 1, of the keys that some threads hold; `number` becomes its number among those that are
/// equal. Missing keys are ~K(0). Bit by bit from the highest: it is set if fewer than `number` keys are below that.
/// @param bits that keys may have set
/// @param sum of a count over the threads, for each of them
template <class K, int kItems, class Sum>
__device__ __forceinline__ K nth_key(const K (&keys)[kItems], int bits, uint32_t& number, const Sum& sum) {
  K found = 0;
  uint32_t below = 0;
#pragma unroll 1
  for (int bit = bits - 1; bit >= 0; --bit) {
    const K tried = found | K(1) << bit;
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) count += keys[i] < tried ? 1 : 0;
    count = sum(count);
    if (count < number) found = tried, below = count;
  }
  number -= below;
  return found;
}

/// @brief What the threads of a block share when they select.
struct SelectCounters {
  uint32_t of_digit[kRadixDigits];
  uint32_t sums[kRadixWarps];
  uint32_t digit, before;
  uint32_t less[kRadixWarps], equal[kRadixWarps];
  uint32_t of_warp[2][kRadixWarps];  ///< in turns
};

/// @brief The keys of a sequence in the hands of a block: up to kTile of them stay in registers, more are read in each pass.
/// @tparam Sequence has `key(i)`
template <class K, class Sequence, int kEachOf = kSelectEach<K>>
struct BlockSelect {
  static constexpr int kEach = kEachOf, kTile = kRadixThreads * kEach;
  const Sequence& sequence;
  int64_t length;
  SelectCounters& shared;
  K keys[kEach];

  __device__ __forceinline__ BlockSelect(const Sequence& of, int64_t count, SelectCounters& counters) : sequence(of), length(count), shared(counters) {
    if (length <= kTile) load(0);
  }

  /// Item i of a thread is element `radix_element(i, kEach)` behind `first`.
  __device__ __forceinline__ bool has(int64_t first, int i) const { return first + detail::radix_element(i, kEach) < length; }
  __device__ __forceinline__ void load(int64_t first) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) keys[i] = has(first, i) ? sequence.key(first + detail::radix_element(i, kEach)) : ~K(0);
  }
  /// visit(first) with the keys from each `first` on, in order, until it returns true.
  template <class Visit>
  __device__ __forceinline__ void each_tile(const Visit& visit) {
    for (int64_t first = 0; first < length; first += kTile) {
      if (length > kTile) load(first);
      if (visit(first)) return;
    }
  }

  /// @brief As `nth_key`, of the whole sequence.
  __device__ __forceinline__ K nth(int bits, uint32_t& number) {
    if (length <= kTile) return nth_held(bits, number);
    return nth_read(bits, number);
  }
  __device__ __forceinline__ K nth_held(int bits, uint32_t& number) {
    int turn = 0;
    return nth_key(keys, bits, number, [&](uint32_t count) {
#pragma unroll
      for (int mask = kWarpSize / 2; mask > 0; mask /= 2) count += shuffle_xor(count, mask);
      turn = 1 - turn;
      if (threadIdx.x % kWarpSize == 0) shared.of_warp[turn][threadIdx.x / kWarpSize] = count;
      __syncthreads();
      uint32_t all = 0;
#pragma unroll
      for (int w = 0; w < kRadixWarps; ++w) all += shared.of_warp[turn][w];
      return all;
    });
  }
  __device__ __forceinline__ K nth_read(int bits, uint32_t& number) {
    const int thread = threadIdx.x, passes = radix_passes(bits);
    K found = 0;
#pragma unroll 1
    for (int pass = passes - 1; pass >= 0; --pass) {
      const int shift = pass * kRadixBits;
      shared.of_digit[thread] = 0;
      __syncthreads();
      each_tile([&](int64_t first) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const bool considered = has(first, i) && (pass == passes - 1 || keys[i] >> shift >> kRadixBits == found);
          if (considered) atomicAdd(&shared.of_digit[detail::radix_digit(keys[i], shift)], 1u);
        }
        return false;
      });
      __syncthreads();
      const uint32_t count = shared.of_digit[thread], before = detail::sum_before(count, shared.sums);
      if (before < number && number - before <= count) shared.digit = thread, shared.before = before;
      __syncthreads();
      found = found << kRadixBits | shared.digit;
      number -= shared.before;
    }
    return found;
  }

  /// @brief Counts keys below `key`, and equal ones, before those of this thread's warp in the tile, and in all of the tile.
  struct Before {
    uint32_t less, equal, all_equal;
  };
  __device__ __forceinline__ Before count(int64_t first, K key) {
    const int warp = threadIdx.x / kWarpSize;
    uint32_t less = 0, equal = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      less += count_lanes(ballot(has(first, i) && keys[i] < key));
      equal += count_lanes(ballot(has(first, i) && keys[i] == key));
    }
    __syncthreads();  // what was there has been read
    if (threadIdx.x % kWarpSize == 0) shared.less[warp] = less, shared.equal[warp] = equal;
    __syncthreads();
    Before result{0, 0, 0};
#pragma unroll
    for (int w = 0; w < kRadixWarps; ++w) {
      if (w < warp) result.less += shared.less[w], result.equal += shared.equal[w];
      result.all_equal += shared.equal[w];
    }
    return result;
  }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_RADIX_SELECT_CUH_
