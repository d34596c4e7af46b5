/// @file cluster.cuh
/// @brief Blocks of a cluster (sm_90 and later): barriers, and reads and writes of each other's shared memory. Nothing on earlier cards.
#ifndef AIT_KERNELS_GPU_CLUSTER_CUH_
#define AIT_KERNELS_GPU_CLUSTER_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Waits for all blocks of the cluster; their earlier writes to shared memory are visible afterwards.
__device__ __forceinline__ void cluster_barrier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
#endif
}

/// @brief The two halves of `cluster_barrier`: writes before the first half are visible to the other blocks after the second.
__device__ __forceinline__ void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
#endif
}

/// @brief Reads four floats at the place of `address` (a shared address of this block) in block `rank` of the cluster.
__device__ __forceinline__ float4 load_cluster_float4(uint32_t address, uint32_t rank) {
  float4 v = {0.f, 0.f, 0.f, 0.f};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(remote)
               : "memory");
#endif
  return v;
}

/// @brief Reads two floats at the place of `address` (a shared address of this block) in block `rank` of the cluster.
__device__ __forceinline__ float2 load_cluster_float2(uint32_t address, uint32_t rank) {
  float2 v = {0.f, 0.f};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "r"(remote) : "memory");
#endif
  return v;
}

/// @brief Writes 4 or 8 bytes at the place of `to`, in shared memory of this block, in block `rank` of the cluster.
template <class T>
__device__ __forceinline__ void store_cluster(T* to, uint32_t rank, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word of 4 or 8 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(shared_address(to)), "r"(rank));
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.shared::cluster.u32 [%0], %1;\n" ::"r"(remote), "r"(value) : "memory");
  } else {
    asm volatile("st.shared::cluster.u64 [%0], %1;\n" ::"r"(remote), "l"(value) : "memory");
  }
#endif
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CLUSTER_CUH_
