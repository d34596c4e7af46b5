/// @file radix_cluster.cuh
/// @brief A stable radix sort of a row in one launch, by a cluster of blocks that exchange keys and places through their shared memory (sm_90 and later).
///
/// A few rows of some 10,000 elements keep few multiprocessors busy, and a launch for each pass waits longer than it works. A block has a tile of a row.
/// In each pass it ranks its digits, tells the other blocks how many elements of each digit it has, and then writes each element into the tile where it
/// belongs. Elements behind the end of a row have the last key and come after all others, so that all tiles are full.
#ifndef AIT_KERNELS_GPU_RADIX_CLUSTER_CUH_
#define AIT_KERNELS_GPU_RADIX_CLUSTER_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/radix_block.cuh"

namespace ait::gpu {

/// The blocks of a row, as many as every card with clusters allows, and their threads.
inline constexpr int kRadixClusterBlocks = kPortableCluster, kRadixClusterThreads = 512;
inline constexpr int kRadixClusterWidth = kRadixClusterBlocks * kRadixClusterThreads;
inline constexpr int64_t kRadixClusterMost = int64_t(kRadixEach) * kRadixClusterWidth;  ///< the most elements of a row
inline constexpr int64_t kRadixClusterRows = 16;                                         ///< rows whose clusters a card of 132 multiprocessors runs at once

#if defined(AIT_CUDA)
namespace detail {
/// @brief What a block knows in a pass.
struct RadixClusterCounts {
  RadixCountersOf<kRadixClusterThreads> counters;
  uint32_t of_block[kRadixClusterBlocks][kRadixDigits];  ///< how many elements of each digit each block has; the other blocks write here
  uint32_t offsets[kRadixDigits];                        ///< what leads from a rank in the block to one in the row, for each digit
};

static_assert(sizeof(RadixClusterCounts) == 26688, "CLUSTER_COUNTS of ait_mlir/lowering/kernels/radix.py");

/// @brief The bytes of shared memory of `radix_cluster_kernel`: keys and places that have come to the tile, and those that go.
template <class K>
int64_t radix_cluster_bytes(int each) {
  return int64_t(sizeof(RadixClusterCounts)) + 2 * each * kRadixClusterThreads * int64_t(sizeof(K) + sizeof(uint32_t));
}
}  // namespace detail

/// Sorts rows: kRadixClusterBlocks neighbouring blocks, a cluster, have one.
template <class K, class From, class To>
__global__ void __launch_bounds__(kRadixClusterThreads) radix_cluster_kernel(From from, To to, int length, int each, int passes) {
  static_assert(sizeof(detail::RadixClusterCounts) % 16 == 0, "keys are aligned");
  AIT_DYNAMIC_SHARED(16, radix_shared);
  detail::RadixClusterCounts& shared = *reinterpret_cast<detail::RadixClusterCounts*>(radix_shared);
  const int tile = each * kRadixClusterThreads, thread = threadIdx.x;
  K* const keys_come = reinterpret_cast<K*>(radix_shared + sizeof(shared));
  K* const keys_go = keys_come + tile;
  uint32_t* const places_come = reinterpret_cast<uint32_t*>(keys_go + tile);
  uint32_t* const places_go = places_come + tile;
  wait_for_previous();
  allow_next();
  cluster_arrive();
  const int64_t row = blockIdx.x / kRadixClusterBlocks;
  const int rank = blockIdx.x % kRadixClusterBlocks;
  // Division of a number below kRadixClusterMost / kRadixClusterThreads by `each`.
  constexpr uint32_t kShift = 16;
  const uint32_t inverse = (1u << kShift) / static_cast<uint32_t>(each) + 1;
  K keys[kRadixEach];
  uint32_t places[kRadixEach], ranks[kRadixEach];
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = rank * tile + detail::radix_element(i, each);
    const bool there = i < each && at < length;
    keys[i] = there ? from.key(row, at) : ~K(0);
    places[i] = there ? from.place(row, at) : 0;
  }
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = pass * kRadixBits;
    const bool last = pass == passes - 1;
    const uint32_t own = detail::radix_rank(shared.counters, each, [&](int i) { return detail::radix_digit(keys[i], shift); }, ranks);
    if (pass == 0) cluster_wait();  // all blocks have begun, so they can be written to
    if (thread < kRadixDigits) {
#pragma unroll
      for (int block = 0; block < kRadixClusterBlocks; ++block) store_cluster(&shared.of_block[rank][thread], static_cast<uint32_t>(block), own);
    }
#pragma unroll
    for (int i = 0; i < kRadixEach; ++i) {
      if (i >= each) continue;
      keys_go[ranks[i]] = keys[i];
      places_go[ranks[i]] = places[i];
    }
    cluster_barrier();
    uint32_t of_lower_blocks = 0, of_all = 0;
    if (thread < kRadixDigits) {
#pragma unroll
      for (int block = 0; block < kRadixClusterBlocks; ++block) {
        const uint32_t count = shared.of_block[block][thread];
        of_lower_blocks += block < rank ? count : 0;
        of_all += count;
      }
    }
    const uint32_t of_lower_digits = detail::sum_before(of_all, shared.counters.sums);
    if (thread < kRadixDigits) shared.offsets[thread] = of_lower_digits + of_lower_blocks - shared.counters.starts[thread];
    __syncthreads();
    // In the order of the tile: neighbours mostly go to neighbouring places.
#pragma unroll
    for (int i = 0; i < kRadixEach; ++i) {
      if (i >= each) continue;
      const int at = i * kRadixClusterThreads + thread;
      const K key = keys_go[at];
      const uint32_t place = places_go[at], goes_to = shared.offsets[detail::radix_digit(key, shift)] + static_cast<uint32_t>(at);
      if (!last) {
        const uint32_t block = goes_to / kRadixClusterThreads * inverse >> kShift, in_tile = goes_to - block * static_cast<uint32_t>(tile);
        store_cluster(keys_come + in_tile, block, key);
        store_cluster(places_come + in_tile, block, place);
      } else if (goes_to < static_cast<uint32_t>(length)) {
        to.store(row, goes_to, key, place);
      }
    }
    if (last) continue;
    cluster_barrier();
#pragma unroll
    for (int i = 0; i < kRadixEach; ++i) {
      if (i >= each) continue;
      keys[i] = keys_come[detail::radix_element(i, each)];
      places[i] = places_come[detail::radix_element(i, each)];
    }
  }
}

namespace detail {
/// @brief Whether `radix_sort_in_clusters` takes these rows: few, longer than a tile, and not so long that shared memory has no room for them.
template <class K>
bool fits_in_clusters(int64_t rows, int64_t length) {
  if (rows > kRadixClusterRows || length <= kRadixTile || length > kRadixClusterMost) return false;
  return radix_cluster_bytes<K>(static_cast<int>((length + kRadixClusterWidth - 1) / kRadixClusterWidth)) <= shared_limit();
}

/// @brief As `radix_sort`, in one launch without workspace.
template <class K, class Source, class Sink>
int32_t radix_sort_in_clusters(const Context& ctx, int64_t rows, int64_t length, int bits, const Source& source, const Sink& sink) {
  const int each = static_cast<int>((length + kRadixClusterWidth - 1) / kRadixClusterWidth);
  LaunchConfig config;
  config.block = dim3(kRadixClusterThreads);
  config.grid = dim3(grid_size(rows * kRadixClusterBlocks));
  config.cluster = kRadixClusterBlocks;
  config.shared_bytes = static_cast<uint32_t>(radix_cluster_bytes<K>(each));
  config.dependent = true;
  return launch(ctx, config, radix_cluster_kernel<K, Source, Sink>, source, sink, static_cast<int>(length), each, radix_passes(bits));
}
}  // namespace detail
#endif  // AIT_CUDA

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_RADIX_CLUSTER_CUH_
