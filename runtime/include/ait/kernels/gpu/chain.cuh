/// @file chain.cuh
/// @brief How blocks of one launch pass sums on to blocks that come after them (decoupled look-back: Merrill and Garland, 2016).
///
/// A chain is a sequence of tiles; the block of a tile needs the sum over all tiles before it. Each block publishes the sum of its own tile. The
/// block of the last tile of `kFan` publishes their sum, that of the last of `kFan` times `kFan` the sum over all tiles so far. A block waits for the
/// fewest of these that make up what it needs, for all of them at once. Which sums these are depends on the place of the tile alone, so results are
/// the same in every run.
#ifndef AIT_KERNELS_GPU_CHAIN_CUH_
#define AIT_KERNELS_GPU_CHAIN_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"

namespace ait::gpu {

/// @brief A sum on its way to other blocks, in words that are written and read as a whole: 4 bytes of the sum and a mark that says that they are
/// there. So a word needs no fence and no flag beside it.
template <class A>
struct Message {
  static constexpr int kWords = sizeof(A) / 4;
  static_assert(sizeof(A) % 4 == 0, "a word has 4 bytes of the sum");
  static constexpr uint64_t kMark = uint64_t(1) << 32;

  static __device__ __forceinline__ void send(uint64_t* to, A value) {
    uint32_t parts[kWords];
    copy_bytes(parts, &value, sizeof(A));
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const uint64_t word = kMark | parts[w];
#if defined(AIT_EMULATED)
      *static_cast<volatile uint64_t*>(to + w) = word;
#elif defined(AIT_HIP)
      __hip_atomic_store(to + w, word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to + w)), "l"(word));
#endif
    }
  }

  /// @brief Whether all of the sum is there, which then is in `value`.
  static __device__ __forceinline__ bool receive(const uint64_t* from, A& value) {
    uint32_t parts[kWords];
    bool here = true;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      uint64_t word;
#if defined(AIT_EMULATED)
      word = *static_cast<const volatile uint64_t*>(from + w);
#elif defined(AIT_HIP)
      word = __hip_atomic_load(from + w, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(__cvta_generic_to_global(from + w)));
#endif
      here = here && word >= kMark;
      parts[w] = static_cast<uint32_t>(word);
    }
    copy_bytes(&value, parts, sizeof(A));
    return here;
  }
};

/// @brief Chains of `tiles` tiles each, with `kWidth` sums a tile, in memory of the launch.
///
/// What is said of sums holds for every R of `ait/kernels/reduction.h`. Blocks take their tiles by number, so that whoever waits, waits for blocks that have started.
template <class R, class A, int kWidth, int kFan>
struct Chains {
  static constexpr int kEntryWords = kWidth * Message<A>::kWords;
  int64_t chains, tiles, groups, supers;
  uint32_t* next;   ///< the number of the next tile to work on, of all chains
  uint64_t* words;  ///< kWidth messages a tile, then as many a group of kFan tiles, then as many for each kFan groups; so for each chain

  /// @brief Where the next tile and the messages are. `workspace` is aligned to 16 bytes.
  Chains(int64_t number, int64_t length, void* workspace) : chains(number), tiles(length) {
    groups = (tiles + kFan - 1) / kFan;
    supers = (groups + kFan - 1) / kFan;
    next = static_cast<uint32_t*>(workspace);
    words = static_cast<uint64_t*>(workspace) + 2;
  }
  int64_t entries() const { return tiles + groups + supers; }
  /// Bytes that must be 0 when the launch begins: all of the workspace.
  int64_t cleared() const { return 16 + chains * entries() * kEntryWords * 8; }

  /// @brief The tile that the calling block works on, counted along all chains at once: tile t of chain c is t * chains + c.
  __device__ __forceinline__ int64_t take(uint32_t& shared) const {
    if (threadIdx.x == 0) shared = atomicAdd(next, 1u);
    __syncthreads();
    return shared;
  }

  /// @brief The sums over the tiles of a chain before `tile`, for column threadIdx.x of kWidth, given those of the tile itself and that of no
  /// elements. All threads of the block call, and all get the sum where kWidth is 1; else those beyond kWidth get that of none. `shared` has room for 3 sums.
  __device__ __forceinline__ A before(int64_t chain, int64_t tile, A own, A none, A* shared) const {
    const int64_t at = chain * (tiles + groups + supers), group = tile / kFan, super = group / kFan;
    const int in_group = static_cast<int>(tile % kFan), in_super = static_cast<int>(group % kFan);
    const int64_t of_groups = at + tiles, of_supers = of_groups + groups;
    const bool ends_group = in_group == kFan - 1, ends_super = ends_group && in_super == kFan - 1;
    const int thread = threadIdx.x;
    if constexpr (kWidth == 1) {
      static_assert(kFan <= kWarpSize, "a lane each");
      // A warp for the tiles, one for the groups, one for what is before them.
      if (thread == 0) Message<A>::send(message(at + tile, 0), own);
      const int warp = thread / kWarpSize, lane = thread % kWarpSize;
      if (warp < 3) {
        const int64_t entry = warp == 0 ? at + group * kFan : warp == 1 ? of_groups + super * kFan : of_supers + super - 1;
        const int count = warp == 0 ? in_group : warp == 1 ? in_super : super > 0 ? 1 : 0;
        A sum = none;
        if (lane < count) {
          while (!Message<A>::receive(message(entry + lane, 0), sum)) {
          }
        }
#pragma unroll
        for (int mask = kWarpSize / 2; mask > 0; mask /= 2) sum = R::join(sum, shuffle_xor(sum, mask));
        if (warp == 0 && lane == 0 && ends_group) Message<A>::send(message(of_groups + group, 0), R::join(sum, own));
        if (lane == 0) shared[warp] = sum;
      }
      __syncthreads();
      const A result = R::join(R::join(shared[2], shared[1]), shared[0]);
      if (thread == 0 && ends_super) Message<A>::send(message(of_supers + super, 0), R::join(result, own));
      return result;
    } else {
      if (thread >= kWidth) return none;
      Message<A>::send(message(at + tile, thread), own);
      const A within = sum(at + group * kFan, in_group, none);
      if (ends_group) Message<A>::send(message(of_groups + group, thread), R::join(within, own));
      A above = sum(of_groups + super * kFan, in_super, none);
      if (super > 0) {
        A all = none;
        while (!Message<A>::receive(message(of_supers + super - 1, thread), all)) {
        }
        above = R::join(above, all);
      }
      if (ends_super) Message<A>::send(message(of_supers + super, thread), R::join(above, R::join(within, own)));
      return R::join(above, within);
    }
  }

 private:
  __device__ __forceinline__ uint64_t* message(int64_t entry, int column) const {
    return words + (entry * kWidth + column) * Message<A>::kWords;
  }

  /// The sum over so many entries, fewer than kFan, of column threadIdx.x: all of them are asked for before one is waited for.
  __device__ __forceinline__ A sum(int64_t entry, int count, A none) const {
    A parts[kFan];
    bool here = false;
    while (!here) {
      here = true;
#pragma unroll
      for (int i = 0; i < kFan - 1; ++i) {
        parts[i] = none;
        if (i < count && !Message<A>::receive(message(entry + i, threadIdx.x), parts[i])) here = false;
      }
    }
    A result = none;
#pragma unroll
    for (int i = 0; i < kFan - 1; ++i) result = R::join(result, parts[i]);
    return result;
  }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_CHAIN_CUH_
