/// @file cluster.cuh
/// @brief The building blocks of runtime/include/ait/kernels/gpu/cluster.cuh, emulated.
#ifndef AIT_KERNELS_GPU_CLUSTER_CUH_
#define AIT_KERNELS_GPU_CLUSTER_CUH_

#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline void cluster_barrier() {
  emulator::meet(emulator::Scope::cluster, "cluster_barrier", true, nullptr, nullptr, AIT_EMULATOR_SITE);
}

/// Who arrives meets the others where it waits.
inline void cluster_arrive() {}
inline void cluster_wait() { cluster_barrier(); }

inline __attribute__((noinline, no_sanitize("thread"))) float4 load_cluster_float4(uint32_t address, uint32_t rank) {
  const void* from = emulator::shared_pointer(address, int(rank));
  emulator::check_remote_read(from, 16);
  return *static_cast<const float4*>(from);
}

inline __attribute__((noinline, no_sanitize("thread"))) float2 load_cluster_float2(uint32_t address, uint32_t rank) {
  const void* from = emulator::shared_pointer(address, int(rank));
  emulator::check_remote_read(from, 8);
  return *static_cast<const float2*>(from);
}

template <class T>
__attribute__((noinline, no_sanitize("thread"))) void store_cluster(T* to, uint32_t rank, T value) {
  void* const there = emulator::shared_pointer(emulator::shared_address(to), int(rank));
  emulator::check_remote_write(there, sizeof(T));
  *static_cast<T*>(there) = value;
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CLUSTER_CUH_
