/// @file warpgroup.cuh
/// @brief Without the warpgroup products of Hopper: the emulated card has the tensor cores of sm_80.
#ifndef AIT_KERNELS_GPU_WARPGROUP_CUH_
#define AIT_KERNELS_GPU_WARPGROUP_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

namespace ait::gpu {
inline constexpr bool kHasWarpgroups = false;
uint64_t warpgroup_tile(uint32_t address);
void warpgroup_publish();
void warpgroup_begin();
void warpgroup_commit();
template <int kPending>
void warpgroup_wait();
void warpgroup_hold(float& accumulator);
template <class T, int kColumns8>
struct WarpgroupProduct {
  static void start(float (&c)[kColumns8][4], uint64_t a, uint64_t b);
};
}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_WARPGROUP_CUH_
