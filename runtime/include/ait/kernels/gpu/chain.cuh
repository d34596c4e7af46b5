/// @file chain.cuh
/// @brief How blocks of one launch pass sums on to blocks that come after them (decoupled look-back: Merrill and Garland, 2016).
///
/// A chain is a sequence of tiles; the block of a tile needs the sum over all tiles before it. Each block publishes the sum of its own tile. The
/// block of the last tile of `kFan` publishes their sum, that of the last of `kFan` times `kFan` the sum over all tiles so far. A block waits for the
/// fewest of these that make up what it needs. Which sums these are depends on the place of the tile alone, so results are the same in every run.
#ifndef AIT_KERNELS_GPU_CHAIN_CUH_
#define AIT_KERNELS_GPU_CHAIN_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"

namespace ait::gpu {

/// @brief Announces what this thread, or its block before a barrier, has written: a thread that has waited for the flag sees it.
__device__ __forceinline__ void raise(uint32_t* flag) {
  __threadfence();
#if defined(AIT_HIP) && !defined(AIT_EMULATED)
  __hip_atomic_store(flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
#else
  *static_cast<volatile uint32_t*>(flag) = 1u;
#endif
}

/// @brief Waits for a flag that a block which has already started raises.
__device__ __forceinline__ void wait_for(const uint32_t* flag) {
#if defined(AIT_HIP) && !defined(AIT_EMULATED)
  while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
#else
  while (*static_cast<const volatile uint32_t*>(flag) == 0) {
  }
#endif
  __threadfence();
}

/// @brief What another block has written, from where all blocks see it.
template <class A>
__device__ __forceinline__ A fetch(const A* from) {
#if defined(AIT_HIP) && !defined(AIT_EMULATED)
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
  return *static_cast<const volatile A*>(from);
#endif
}

/// @brief Chains of `tiles` tiles each, with `kWidth` sums a tile, in memory of the launch.
///
/// Blocks take their tiles by number, so that whoever waits, waits for blocks that have started.
template <class A, int kWidth, int kFan>
struct Chains {
  int64_t chains, tiles, groups, supers;
  uint32_t* next;   ///< the number of the next tile to work on, of all chains
  uint32_t* flags;  ///< one a tile, then one a group of kFan tiles, then one for each kFan groups; so for each chain
  A* sums;          ///< kWidth for each flag

  /// @brief Where the next tile, the flags and the sums are. `workspace` is aligned to 16 bytes.
  Chains(int64_t number, int64_t length, void* workspace) : chains(number), tiles(length) {
    groups = (tiles + kFan - 1) / kFan;
    supers = (groups + kFan - 1) / kFan;
    next = static_cast<uint32_t*>(workspace);
    flags = next + 4;
    sums = reinterpret_cast<A*>(static_cast<char*>(workspace) + cleared());
  }
  int64_t entries() const { return tiles + groups + supers; }
  /// Bytes that must be 0 when the launch begins.
  int64_t cleared() const { return 16 + (chains * entries() * 4 + 15) / 16 * 16; }

  /// @brief The tile that the calling block works on, counted along all chains at once: tile t of chain c is t * chains + c.
  __device__ __forceinline__ int64_t take(uint32_t& shared) const {
    if (threadIdx.x == 0) shared = atomicAdd(next, 1u);
    __syncthreads();
    return shared;
  }

  /// @brief The sums over the tiles of a chain before `tile`, for column threadIdx.x of kWidth, given those of the tile itself. All threads of the
  /// block call; those beyond kWidth get 0.
  __device__ __forceinline__ A before(int64_t chain, int64_t tile, A own) const {
    const int64_t at = chain * (tiles + groups + supers), group = tile / kFan, super = group / kFan;
    const int in_group = static_cast<int>(tile % kFan), in_super = static_cast<int>(group % kFan);
    const int64_t of_groups = at + tiles, of_supers = of_groups + groups;
    publish(at + tile, own);
    const A within = sum(at + group * kFan, in_group);
    const bool last = in_group == kFan - 1;
    if (last) publish(of_groups + group, within + own);
    A above = sum(of_groups + super * kFan, in_super);
    if (super > 0) above += sum(of_supers + super - 1, 1);
    if (last && in_super == kFan - 1) publish(of_supers + super, above + (within + own));
    return above + within;
  }

 private:
  __device__ __forceinline__ void publish(int64_t entry, A value) const {
    if (static_cast<int>(threadIdx.x) < kWidth) sums[entry * kWidth + threadIdx.x] = value;
    if constexpr (kWidth > 1) {
      __threadfence();
      __syncthreads();
    }
    if (threadIdx.x == 0) raise(flags + entry);
  }

  /// The sum over so many entries, fewer than kFan, in one order.
  __device__ __forceinline__ A sum(int64_t entry, int count) const {
    const int thread = threadIdx.x;
    A result = A(0);
    if constexpr (kWidth == 1) {
      static_assert(kFan <= kWarpSize, "a lane each");
      if (thread >= kWarpSize) return result;
      if (thread < count) {
        wait_for(flags + entry + thread);
        result = fetch(sums + entry + thread);
      }
#pragma unroll
      for (int mask = kWarpSize / 2; mask > 0; mask /= 2) result += shuffle_xor(result, mask);
    } else {
      if (thread < count) wait_for(flags + entry + thread);
      __syncthreads();
      if (thread < kWidth) {
        A parts[kFan];
#pragma unroll
        for (int i = 0; i < kFan; ++i) parts[i] = i < count ? fetch(sums + (entry + i) * kWidth + thread) : A(0);
#pragma unroll
        for (int i = 0; i < kFan; ++i) result += parts[i];
      }
    }
    return result;
  }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_CHAIN_CUH_
