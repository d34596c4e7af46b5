/// @file bulk_copy.cuh
/// @brief The instructions of runtime/include/ait/kernels/gpu/bulk_copy.cuh, emulated.
#ifndef AIT_KERNELS_GPU_BULK_COPY_CUH_
#define AIT_KERNELS_GPU_BULK_COPY_CUH_

#include "ait/gpu/gpu.h"
#include "emulator/bulk.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) { emulator::copy_bulk(to, from, bytes, barrier); }

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_COPY_CUH_
