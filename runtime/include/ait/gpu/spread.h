/// @file spread.h
/// @brief Shared memory that keeps the blocks of a launch apart.
#ifndef AIT_GPU_SPREAD_H_
#define AIT_GPU_SPREAD_H_

#include <stdint.h>

#include "ait/gpu/gpu.h"

namespace ait::gpu {

/// @brief The shared memory to ask for so that no more blocks stand on a multiprocessor than a grid needs if it stands on all of them.
///
/// Blocks of a launch that starts early (`LaunchConfig::dependent`) find few multiprocessors free, and as many pile up on these as fit,
/// while the others become free and stay so. Small blocks then share a multiprocessor for the whole of their work, although the grid has
/// no more blocks than the card has multiprocessors.
/// @param bytes that a block needs; the result is no less
/// @param blocks of the grid
constexpr uint32_t spread_bytes(uint32_t bytes, uint32_t blocks, uint32_t multiprocessors) {
  constexpr uint32_t kAll = 228 * 1024, kReserved = 1024;  // of a multiprocessor; what the system takes of each block (sm_90)
  constexpr uint32_t kMost = 3;                            // more blocks than that come and go while the grid runs
  const uint32_t most = multiprocessors == 0 ? kMost + 1 : (blocks + multiprocessors - 1) / multiprocessors;
  if (most == 0 || most > kMost) return bytes;
  const uint32_t wanted = (kAll / (most + 1) - kReserved) / 16 * 16 + 16;
  return wanted > bytes ? wanted : bytes;
}

static_assert(spread_bytes(96 * 1024, 96, 132) == 113 * 1024 + 16, "one block a multiprocessor");
static_assert(spread_bytes(64 * 1024, 133, 132) == 75 * 1024 + 16, "two, where one is too few");
static_assert(3 * (spread_bytes(0, 264, 132) + 1024) > 228 * 1024 && 2 * (spread_bytes(0, 264, 132) + 1024) <= 228 * 1024);
static_assert(spread_bytes(200 * 1024, 10, 132) == 200 * 1024, "never less than it needs");
static_assert(spread_bytes(1024, 132 * 4, 132) == 1024 && spread_bytes(1024, 8, 0) == 1024);

/// @brief `spread_bytes` on cards that start launches early (sm_90 and later); `bytes` on older ones, some of which have less shared memory. The
/// emulator's blocks get what they need and no more, so that it sees accesses beyond that.
inline uint32_t spread(uint32_t bytes, uint32_t blocks) {
#if defined(AIT_CUDA) && !defined(AIT_EMULATED)
  if constexpr (kHasClusters) return spread_bytes(bytes, blocks, uint32_t(multiprocessors()));
#endif
  return bytes;
}

}  // namespace ait::gpu

#endif  // AIT_GPU_SPREAD_H_
