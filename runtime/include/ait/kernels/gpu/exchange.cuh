/// @file exchange.cuh
/// @brief What the blocks of a cluster tell each other by writing to each other's shared memory (sm_90 and later).
#ifndef AIT_KERNELS_GPU_EXCHANGE_CUH_
#define AIT_KERNELS_GPU_EXCHANGE_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Writes four floats to the place of `address` (a shared address of this block) in block `rank` of the cluster.
__device__ __forceinline__ void store_cluster_float4(uint32_t address, uint32_t rank, float4 v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(remote), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#endif
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_EXCHANGE_CUH_
