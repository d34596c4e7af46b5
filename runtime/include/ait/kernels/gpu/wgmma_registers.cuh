/// @file wgmma_registers.cuh
/// @brief The matrix instruction of Hopper (sm_90a) with its first operand in registers: a warpgroup multiplies a 64 x 16 by a 16 x N tile.
///
/// The first operand is held as `mma_16x8x16` holds its own, warp w having the rows 16 w ...; the result is laid out as in wgmma.cuh, so
/// that two neighbouring blocks of 8 columns of one result are, rounded and packed, the first operand of another product. Of 8-bit floats
/// K is 32, and contiguous in the second operand; the first is held as `mma_16x8x32` holds its own.
#ifndef AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
#define AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/wgmma_lists.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Keeps the compiler from moving accesses to these registers across the place of the call, where a product is waited for.
template <int kCount>
__device__ __forceinline__ void hold_registers(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// @brief d += a @ b, asynchronously; N is the contiguous dim of b (`wgmma_operand` with the distance of its chunks of 64). Of 8-bit floats,
/// with K contiguous: d = a @ b + (accumulate ? d : 0).
template <int kN>
struct WgmmaFromRegisters;

// I: which of the lists above; A: the four numbers of the first operand; B: that of the second.
#define AIT_WGMMA_ASM(N, TYPE, I, A, B)                                                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" AIT_R##I "}, {" A "}, " B ", 1, 1, 1, 1;\n" \
               : AIT_D##I                                                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define AIT_WGMMA_FLOAT8(N, I, A, B, C)                                                                                               \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " C ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" AIT_R##I "}, " \
               "{" A "}, " B ", p, 1, 1;\n}\n"                                                                                        \
               : AIT_D##I                                                                                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
#define AIT_WGMMA(N, I, A, B, C)                                                                                             \
  template <>                                                                                                                \
  struct WgmmaFromRegisters<N> {                                                                                             \
    template <class Element>                                                                                                 \
    static __device__ __forceinline__ void run(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) {                      \
      if constexpr (std::is_same_v<Element, half>) {                                                                         \
        AIT_WGMMA_ASM(N, "f16", I, A, B);                                                                                    \
      } else {                                                                                                               \
        static_assert(std::is_same_v<Element, bfloat16>, "operands are half or bfloat16");                                   \
        AIT_WGMMA_ASM(N, "bf16", I, A, B);                                                                                   \
      }                                                                                                                      \
    }                                                                                                                        \
    static __device__ __forceinline__ void run_e4m3(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int accumulate) { \
      AIT_WGMMA_FLOAT8(N, I, A, B, C);                                                                                       \
    }                                                                                                                        \
  };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
AIT_WGMMA(64, 1, "%32, %33, %34, %35", "%36", "%37")
AIT_WGMMA(128, 3, "%64, %65, %66, %67", "%68", "%69")
AIT_WGMMA(192, 5, "%96, %97, %98, %99", "%100", "%101")
AIT_WGMMA(256, 7, "%128, %129, %130, %131", "%132", "%133")
#endif

#undef AIT_WGMMA
#undef AIT_WGMMA_ASM
#undef AIT_WGMMA_FLOAT8

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
