/// @file mma.cuh
/// @brief Tensor-core building blocks for CUDA (sm_80 and later): asynchronous copies, ldmatrix, mma.sync m16n8k16, m16n8k8 of
/// TF32, and m16n8k32 of 8-bit integers and, since sm_89, 8-bit floats.
#ifndef AIT_KERNELS_GPU_MMA_CUH_
#define AIT_KERNELS_GPU_MMA_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The address of `pointer`, which must point into shared memory, in the shared window.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// @brief Starts a copy of 16 bytes to shared memory, past L1. Of the source the first `bytes` (0 to 16) are read, the rest is zero.
__device__ __forceinline__ void copy_async_16(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/// @brief The same for a copy of 4 bytes, of which the first `bytes` (0 to 4) are read.
__device__ __forceinline__ void copy_async_4(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/// @brief Closes the group of copies started since the last call.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

/// @brief Waits until at most `kPending` of the newest groups of this thread are unfinished.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

/// @brief Loads four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrix_x4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// @brief As `load_matrix_x4`, each matrix transposed.
__device__ __forceinline__ void load_matrix_x4_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// @brief Loads a 32-bit element of a matrix that `load_matrix_x4` cannot transpose. As there, it may be one that was never written, if it is not used.
__device__ __forceinline__ uint32_t load_matrix_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// @brief Stores four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrix_x4(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

/// @brief Reads a word of shared memory.
__device__ __forceinline__ uint32_t load_shared_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// @brief Writes 2 bytes of shared memory.
__device__ __forceinline__ void store_shared_half_word(uint32_t address, uint16_t value) {
  asm volatile("st.shared.u16 [%0], %1;\n" ::"r"(address), "h"(value) : "memory");
}

/// @brief Reads four floats of shared memory.
__device__ __forceinline__ void load_shared_floats(float (&v)[4], uint32_t address) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(address)
               : "memory");
}

/// @brief c += a @ b for a 16 x 16 (row-major), b 16 x 8 (column-major), c 16 x 8, accumulated in float.
/// Lane l holds c[l / 4][2 (l % 4) + {0, 1}] in c[0..1] and the same columns of row l / 4 + 8 in c[2..3].
template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<T, bfloat16>, "the tensor cores are used for half and bfloat16");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// @brief c += a @ b for a 16 x 32 (row-major), b 32 x 8 (column-major) of 8-bit integers, signed or not, c 16 x 8 of int32_t, which wraps.
/// Lane l holds four bytes from a[l / 4 + 8 (i % 2)][4 (l % 4) + 16 (i / 2)] on in a[i], from b[4 (l % 4) + 16 i][l / 4] on in the operand bi,
/// and c as in `mma_16x8x16`.
template <class A, class B>
__device__ __forceinline__ void mma_16x8x32(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define AIT_MMA_BYTES(types)                                                                                                            \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  constexpr bool kUnsignedA = std::is_same_v<A, uint8_t>, kUnsignedB = std::is_same_v<B, uint8_t>;
  if constexpr (kUnsignedA && kUnsignedB) {
    AIT_MMA_BYTES("u8.u8");
  } else if constexpr (kUnsignedA) {
    AIT_MMA_BYTES("u8.s8");
  } else if constexpr (kUnsignedB) {
    AIT_MMA_BYTES("s8.u8");
  } else {
    AIT_MMA_BYTES("s8.s8");
  }
#undef AIT_MMA_BYTES
}

/// @brief The same for 8-bit floats (sm_89 and later), with c of float, whose sums have about 14 bits.
template <class A, class B>
__device__ __forceinline__ void mma_16x8x32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define AIT_MMA_FLOATS(types)                                                                                                           \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  constexpr bool kWideA = std::is_same_v<A, float8_e5m2>, kWideB = std::is_same_v<B, float8_e5m2>;
  if constexpr (kWideA && kWideB) {
    AIT_MMA_FLOATS("e5m2.e5m2");
  } else if constexpr (kWideA) {
    AIT_MMA_FLOATS("e5m2.e4m3");
  } else if constexpr (kWideB) {
    AIT_MMA_FLOATS("e4m3.e5m2");
  } else {
    AIT_MMA_FLOATS("e4m3.e4m3");
  }
#undef AIT_MMA_FLOATS
}

/// @brief `value` rounded to TF32 (10 bits of mantissa, ties away from zero), as the bits of a float.
__device__ __forceinline__ uint32_t round_to_tf32(uint32_t value) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(rounded) : "f"(__uint_as_float(value)));
  return rounded;
}

/// @brief c += a @ b for a 16 x 8 (row-major), b 8 x 8 (column-major) of TF32, c 16 x 8, accumulated in float.
/// Lane l holds a[l / 4 + 8 (i % 2)][l % 4 + 4 (i / 2)] in a[i], b[l % 4 + 4 i][l / 4] in the operand bi, and c as in `mma_16x8x16`.
__device__ __forceinline__ void mma_16x8x8(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// @brief Two floats rounded to `T`, packed with `low` in the lower half: the form in which mma operands are held.
template <class T>
__device__ __forceinline__ uint32_t pack_pair(float low, float high) {
  if constexpr (std::is_same_v<T, half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    return bit_cast<uint32_t>(pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return bit_cast<uint32_t>(pair);
  }
}

/// @brief 2^x in one instruction, within 2 ulp; results below the normal range are 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

/// @brief The larger one in one instruction; no number if one is none.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;\n" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

/// @brief The larger of each of two neighbours of 16 bits; no number if one is none.
template <class T>
__device__ __forceinline__ uint32_t max_or_nan_pair(uint32_t a, uint32_t b) {
  uint32_t larger;
  if constexpr (std::is_same_v<T, half>) {
    asm("max.NaN.f16x2 %0, %1, %2;\n" : "=r"(larger) : "r"(a), "r"(b));
  } else {
    asm("max.NaN.bf16x2 %0, %1, %2;\n" : "=r"(larger) : "r"(a), "r"(b));
  }
  return larger;
}

/// @brief a + b of pairs of T.
template <class T>
__device__ __forceinline__ uint32_t add_pairs(uint32_t a, uint32_t b) {
  uint32_t sum;
  if constexpr (std::is_same_v<T, half>) {
    asm("add.rn.f16x2 %0, %1, %2;\n" : "=r"(sum) : "r"(a), "r"(b));
  } else {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;\n" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));  // times 1: sm_80 has no sum
  }
  return sum;
}

/// @brief Reads 16 bytes of memory that is read only once, or zeros.
__device__ __forceinline__ uint4 read_once(const void* from, bool exists) {
  uint4 v = {0, 0, 0, 0};
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}\n"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(from), "r"(int(exists)));
  return v;
}

/// @brief Transposes an 8 x 8 matrix of 16-bit elements of which lane l holds the elements 2 (l % 4) + {0, 1} of row l / 4.
__device__ __forceinline__ uint32_t transpose_8x8(uint32_t v) {
  uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(t) : "r"(v));
  return t;
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_MMA_CUH_
