/// @file bulk_copy.cuh
/// @brief Bulk copies of neighbouring bytes (sm_90 and later), counted at a barrier in shared memory.
#ifndef AIT_KERNELS_GPU_BULK_COPY_CUH_
#define AIT_KERNELS_GPU_BULK_COPY_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Starts the copy of `bytes`, a multiple of 16, to shared memory; both addresses are aligned to 16 bytes.
__device__ __forceinline__ void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_COPY_CUH_
