/// @file wgmma_operand.cuh
/// @brief How the matrix instruction of Hopper (wgmma.cuh) is told where its operands lie in shared memory.
#ifndef AIT_KERNELS_GPU_WGMMA_OPERAND_CUH_
#define AIT_KERNELS_GPU_WGMMA_OPERAND_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Describes an operand in shared memory, in lines of 128 or 64 bytes swizzled in groups of eight, which are aligned to their size.
/// @param chunk_bytes from one 64-element chunk of M or N to the next, for operands with M or N contiguous; else not used
template <int kLineBytes = 128>
__device__ __forceinline__ uint64_t wgmma_operand(uint32_t address, uint32_t chunk_bytes) {
  static_assert(kLineBytes == 128 || kLineBytes == 64);
  constexpr uint64_t kSwizzle = uint64_t(kLineBytes == 128 ? 1 : 2) << 62, kGroupBytes = uint64_t(8 * kLineBytes >> 4) << 32;
  return kSwizzle | kGroupBytes | (uint64_t(chunk_bytes >> 4) << 16) | ((address & 0x3ffffu) >> 4);
}

/// @brief The words of `wgmma_operand` for an operand at address 0: its low word plus a sixteenth of the address is that of any other.
/// A step forward in shared memory is then one addition, which matters where a product takes less time than describing it.
template <uint32_t kChunkBytes>
struct WgmmaOperand {
  static constexpr uint32_t kHigh = 1u << 30 | 1024 >> 4, kLow = kChunkBytes >> 4 << 16;

  /// The part of a shared address that is one: in a cluster, the bits above say which block.
  static __device__ __forceinline__ uint32_t sixteenths(uint32_t address) { return (address & 0x3ffffu) >> 4; }
  static __device__ __forceinline__ uint64_t at(uint32_t sixteenths) { return uint64_t(kHigh) << 32 | (kLow + sixteenths); }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_OPERAND_CUH_
