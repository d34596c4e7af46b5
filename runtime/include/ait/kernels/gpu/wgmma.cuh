/// @file wgmma.cuh
/// @brief The matrix instruction of Hopper (sm_90a): a warpgroup multiplies a 64 x 16 by a 16 x N tile, both in shared memory. Of 8-bit numbers
/// K is 32, and contiguous in both operands.
///
/// Lane l of warp w (of the warpgroup's four) holds, of the 64 x N result, d[4 j + 0..1]: row 16 w + l / 4, columns 8 j + 2 (l % 4) + {0, 1};
/// d[4 j + 2..3]: the same columns of the row 8 below.
#ifndef AIT_KERNELS_GPU_WGMMA_CUH_
#define AIT_KERNELS_GPU_WGMMA_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/wgmma_lists.cuh"
#include "ait/kernels/gpu/wgmma_operand.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Orders earlier accesses to the accumulators before the next `wgmma`.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }

/// @brief Closes the group of products started since the last call.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }

/// @brief Waits until at most `kPending` of the newest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

/// @brief Sets the registers of each thread of this warpgroup; the others must have left enough.
template <int kCount>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kCount));
}

/// @brief Gives registers of this warpgroup back, but for `kCount` a thread.
template <int kCount>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kCount));
}

/// @brief d = a @ b + (accumulate ? d : 0), asynchronously. `Element` is half, bfloat16 or a `Byte`, whose sums `Sum` may be int32_t. `kAT`, `kBT`:
/// M or N is the contiguous dim of the operand, not K.
template <int kN>
struct Wgmma;

// I: which of the lists above; A, B, C, S, T: the numbers of the operands that follow the N / 2 results.
#define AIT_WGMMA_ASM(N, TYPE, I, A, B, C, S, T)                                                                            \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " C ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE \
               " {" AIT_R##I "}, " A ", " B ", p, 1, 1, " S ", " T ";\n}\n"                                                \
               : AIT_D##I                                                                                                   \
               : "l"(a), "l"(b), "r"(accumulate), "n"(kAT), "n"(kBT))
// Of 8-bit numbers: TYPES are those of the results and both operands, SIGNS the factors of the operands, which floats alone have.
#define AIT_WGMMA_BYTES(N, TYPES, SIGNS, I, RESULTS, A, B, C)                                                     \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " C ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32." TYPES \
               " {" AIT_R##I "}, " A ", " B ", p" SIGNS ";\n}\n"                                                \
               : RESULTS                                                                                          \
               : "l"(a), "l"(b), "r"(accumulate))
#define AIT_WGMMA(N, I, A, B, C, S, T)                                                                        \
  template <>                                                                                                 \
  struct Wgmma<N> {                                                                                           \
    template <class Element, int kAT, int kBT, class Sum>                                                     \
    static __device__ __forceinline__ void run(Sum (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {     \
      if constexpr (std::is_same_v<Element, half>) {                                                          \
        AIT_WGMMA_ASM(N, "f16", I, A, B, C, S, T);                                                            \
      } else if constexpr (std::is_same_v<Element, bfloat16>) {                                               \
        AIT_WGMMA_ASM(N, "bf16", I, A, B, C, S, T);                                                           \
      } else {                                                                                                \
        static_assert(kAT == 0 && kBT == 0, "K is the contiguous dim of both operands of 8-bit numbers");     \
        constexpr int kNames = wgmma_names<typename Element::First, typename Element::Second>;                \
        if constexpr (kNames == 0) AIT_WGMMA_BYTES(N, "s32.s8.s8", "", I, AIT_I##I, A, B, C);                 \
        if constexpr (kNames == 1) AIT_WGMMA_BYTES(N, "s32.s8.u8", "", I, AIT_I##I, A, B, C);                 \
        if constexpr (kNames == 2) AIT_WGMMA_BYTES(N, "s32.u8.s8", "", I, AIT_I##I, A, B, C);                 \
        if constexpr (kNames == 3) AIT_WGMMA_BYTES(N, "s32.u8.u8", "", I, AIT_I##I, A, B, C);                 \
        if constexpr (kNames == 4) AIT_WGMMA_BYTES(N, "f32.e4m3.e4m3", ", 1, 1", I, AIT_D##I, A, B, C);       \
        if constexpr (kNames == 5) AIT_WGMMA_BYTES(N, "f32.e4m3.e5m2", ", 1, 1", I, AIT_D##I, A, B, C);       \
        if constexpr (kNames == 6) AIT_WGMMA_BYTES(N, "f32.e5m2.e4m3", ", 1, 1", I, AIT_D##I, A, B, C);       \
        if constexpr (kNames == 7) AIT_WGMMA_BYTES(N, "f32.e5m2.e5m2", ", 1, 1", I, AIT_D##I, A, B, C);       \
      }                                                                                                       \
    }                                                                                                         \
  };

/// @brief Which pair of names the types of two operands of 8-bit numbers have in the assembly.
template <class A, class B>
inline constexpr int wgmma_names = is_float8<A> ? 4 + 2 * std::is_same_v<A, float8_e5m2> + std::is_same_v<B, float8_e5m2>
                                                : 2 * std::is_same_v<A, uint8_t> + std::is_same_v<B, uint8_t>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
AIT_WGMMA(32, 0, "%16", "%17", "%18", "%19", "%20")
AIT_WGMMA(64, 1, "%32", "%33", "%34", "%35", "%36")
AIT_WGMMA(96, 2, "%48", "%49", "%50", "%51", "%52")
AIT_WGMMA(128, 3, "%64", "%65", "%66", "%67", "%68")
AIT_WGMMA(160, 4, "%80", "%81", "%82", "%83", "%84")
AIT_WGMMA(192, 5, "%96", "%97", "%98", "%99", "%100")
AIT_WGMMA(224, 6, "%112", "%113", "%114", "%115", "%116")
AIT_WGMMA(256, 7, "%128", "%129", "%130", "%131", "%132")
#endif

#undef AIT_WGMMA
#undef AIT_WGMMA_ASM
#undef AIT_WGMMA_BYTES

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_CUH_
