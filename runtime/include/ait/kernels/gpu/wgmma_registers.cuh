/// @file wgmma_registers.cuh
/// @brief The matrix instruction of Hopper (sm_90a) with its first operand in registers: a warpgroup multiplies a 64 x 16 by a 16 x N tile.
///
/// The first operand is held as `mma_16x8x16` holds its own, warp w having the rows 16 w ...; the result is laid out as in wgmma.cuh, so
/// that two neighbouring blocks of 8 columns of one result are, rounded and packed, the first operand of another product.
#ifndef AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
#define AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Keeps the compiler from moving accesses to these registers across the place of the call, where a product is waited for.
template <int kCount>
__device__ __forceinline__ void hold_registers(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// @brief d += a @ b, asynchronously; N is the contiguous dim of b (`wgmma_operand` with the distance of its chunks of 64).
template <int kN>
struct WgmmaFromRegisters;

#define AIT_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define AIT_R1 AIT_R0 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define AIT_R2 AIT_R1 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define AIT_R3 AIT_R2 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define AIT_R4 AIT_R3 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define AIT_R5 AIT_R4 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define AIT_R6 AIT_R5 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define AIT_R7 AIT_R6 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define AIT_QUAD(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define AIT_D0 AIT_QUAD(0), AIT_QUAD(4), AIT_QUAD(8), AIT_QUAD(12)
#define AIT_D1 AIT_D0, AIT_QUAD(16), AIT_QUAD(20), AIT_QUAD(24), AIT_QUAD(28)
#define AIT_D2 AIT_D1, AIT_QUAD(32), AIT_QUAD(36), AIT_QUAD(40), AIT_QUAD(44)
#define AIT_D3 AIT_D2, AIT_QUAD(48), AIT_QUAD(52), AIT_QUAD(56), AIT_QUAD(60)
#define AIT_D4 AIT_D3, AIT_QUAD(64), AIT_QUAD(68), AIT_QUAD(72), AIT_QUAD(76)
#define AIT_D5 AIT_D4, AIT_QUAD(80), AIT_QUAD(84), AIT_QUAD(88), AIT_QUAD(92)
#define AIT_D6 AIT_D5, AIT_QUAD(96), AIT_QUAD(100), AIT_QUAD(104), AIT_QUAD(108)
#define AIT_D7 AIT_D6, AIT_QUAD(112), AIT_QUAD(116), AIT_QUAD(120), AIT_QUAD(124)

// I: which of the lists above; A: the four numbers of the first operand; B: that of the second.
#define AIT_WGMMA_ASM(N, TYPE, I, A, B)                                                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" AIT_R##I "}, {" A "}, " B ", 1, 1, 1, 1;\n" \
               : AIT_D##I                                                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define AIT_WGMMA(N, I, A, B)                                                                              \
  template <>                                                                                              \
  struct WgmmaFromRegisters<N> {                                                                           \
    template <class Element>                                                                               \
    static __device__ __forceinline__ void run(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) {    \
      if constexpr (std::is_same_v<Element, half>) {                                                       \
        AIT_WGMMA_ASM(N, "f16", I, A, B);                                                                  \
      } else {                                                                                             \
        static_assert(std::is_same_v<Element, bfloat16>, "operands are half or bfloat16");                 \
        AIT_WGMMA_ASM(N, "bf16", I, A, B);                                                                 \
      }                                                                                                    \
    }                                                                                                      \
  };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
AIT_WGMMA(64, 1, "%32, %33, %34, %35", "%36")
AIT_WGMMA(128, 3, "%64, %65, %66, %67", "%68")
AIT_WGMMA(192, 5, "%96, %97, %98, %99", "%100")
AIT_WGMMA(256, 7, "%128, %129, %130, %131", "%132")
#endif

#undef AIT_WGMMA
#undef AIT_WGMMA_ASM
#undef AIT_QUAD
#undef AIT_R0
#undef AIT_D0
#undef AIT_R1
#undef AIT_D1
#undef AIT_R2
#undef AIT_D2
#undef AIT_R3
#undef AIT_D3
#undef AIT_R4
#undef AIT_D4
#undef AIT_R5
#undef AIT_D5
#undef AIT_R6
#undef AIT_D6
#undef AIT_R7
#undef AIT_D7

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
