/// @file exchange.cuh
/// @brief The instructions of runtime/include/ait/kernels/gpu/exchange.cuh, emulated.
#ifndef AIT_KERNELS_GPU_EXCHANGE_CUH_
#define AIT_KERNELS_GPU_EXCHANGE_CUH_

#include "ait/gpu/gpu.h"
#include "emulator/emulator.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline __attribute__((noinline, no_sanitize("thread"))) void store_cluster_float4(uint32_t address, uint32_t rank, float4 v) {
  void* to = emulator::shared_pointer(address, int(rank));
  emulator::check_remote_write(to, 16);
  *static_cast<float4*>(to) = v;
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_EXCHANGE_CUH_
