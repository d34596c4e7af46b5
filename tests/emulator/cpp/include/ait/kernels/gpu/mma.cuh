/// @file mma.cuh
/// @brief The building blocks of runtime/include/ait/kernels/gpu/mma.cuh, emulated.
#ifndef AIT_KERNELS_GPU_MMA_CUH_
#define AIT_KERNELS_GPU_MMA_CUH_

#include "ait/gpu/gpu.h"
#include "emulator/matrix.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline uint32_t shared_address(const void* pointer) { return emulator::shared_address(pointer); }

inline void copy_async_16(uint32_t to, const void* from, int bytes) { emulator::copy_async(emulator::shared_pointer(to), from, 16, bytes); }
inline void copy_async_4(uint32_t to, const void* from, int bytes) { emulator::copy_async(emulator::shared_pointer(to), from, 4, bytes); }
inline void copy_async_commit() { emulator::copy_async_commit(); }
template <int kPending>
void copy_async_wait() {
  emulator::copy_async_wait(kPending);
}

inline void load_matrix_x4(uint32_t (&r)[4], uint32_t address) { emulator::load_matrices(r, address, false, AIT_EMULATOR_SITE); }
inline void load_matrix_x4_transposed(uint32_t (&r)[4], uint32_t address) { emulator::load_matrices(r, address, true, AIT_EMULATOR_SITE); }

inline __attribute__((noinline, no_sanitize("thread"))) uint32_t load_matrix_word(uint32_t address) {
  if (address % 4 != 0) emulator::fail("ld.shared.u32 at %u, which is not aligned to 4 bytes", address);
  return *static_cast<const uint32_t*>(emulator::shared_pointer(address));
}

inline void store_matrix_x4(uint32_t address, const uint32_t (&r)[4]) { emulator::store_matrices(address, r, AIT_EMULATOR_SITE); }

inline __attribute__((noinline, no_sanitize("thread"))) uint32_t load_shared_word(uint32_t address) {
  const void* from = emulator::shared_pointer(address);
  if (address % 4 != 0) emulator::fail("ld.shared.u32 at %u, which is not aligned to 4 bytes", address);
  emulator::check_read(from, 4);
  return *static_cast<const uint32_t*>(from);
}

inline __attribute__((noinline, no_sanitize("thread"))) void store_shared_half_word(uint32_t address, uint16_t value) {
  void* const to = emulator::shared_pointer(address);
  if (address % 2 != 0) emulator::fail("st.shared.u16 at %u, which is not aligned to 2 bytes", address);
  emulator::check_write(to, 2);
  memcpy(to, &value, 2);
}

inline __attribute__((noinline, no_sanitize("thread"))) void load_shared_floats(float (&v)[4], uint32_t address) {
  const float* from = static_cast<const float*>(emulator::shared_pointer(address));
  if (address % 16 != 0) emulator::fail("ld.shared.v4.f32 at %u, which is not aligned to 16 bytes", address);
  emulator::check_read(from, 16);
  for (int i = 0; i < 4; ++i) v[i] = from[i];
}

template <class T>
inline constexpr emulator::Narrow kNarrow = std::is_same_v<T, half>            ? emulator::Narrow::half
                                            : std::is_same_v<T, int8_t>        ? emulator::Narrow::s8
                                            : std::is_same_v<T, uint8_t>       ? emulator::Narrow::u8
                                            : std::is_same_v<T, float8_e4m3fn> ? emulator::Narrow::e4m3
                                            : std::is_same_v<T, float8_e5m2>   ? emulator::Narrow::e5m2
                                                                               : emulator::Narrow::bfloat16;

template <class T>
void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(is_narrow_float<T>, "the tensor cores are used for half and bfloat16");
  emulator::multiply_16x8x16(c, a, b0, b1, kNarrow<T>, AIT_EMULATOR_SITE);
}

template <class A, class B, class Sum>
void mma_16x8x32(Sum (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(is_float8<A> == std::is_same_v<Sum, float>, "sums of floats are floats");
  emulator::multiply_16x8x32(c, a, b0, b1, kNarrow<A>, kNarrow<B>, AIT_EMULATOR_SITE);
}

inline uint32_t round_to_tf32(uint32_t value) {
  if ((value & 0x7f800000u) == 0x7f800000u) return value & 0xffffe000u;
  return (value + 0x1000u) & 0xffffe000u;
}

inline void mma_16x8x8(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  emulator::multiply_16x8x8(c, a, b0, b1, AIT_EMULATOR_SITE);
}

template <class T>
uint32_t pack_pair(float low, float high) {
  return uint32_t(bit_cast<uint16_t>(from_float<T>(low))) | uint32_t(bit_cast<uint16_t>(from_float<T>(high))) << 16;
}

template <class T>
uint32_t add_pairs(uint32_t a, uint32_t b) {
  const auto part = [](uint32_t pair, int i) { return to_float(bit_cast<T>(uint16_t(pair >> (16 * i)))); };
  return pack_pair<T>(part(a, 0) + part(b, 0), part(a, 1) + part(b, 1));
}

inline float exp2_fast(float x) { return x < -126.f ? 0.f : ::exp2f(x); }

inline float max_or_nan(float a, float b) { return b > a || b != b ? b : a; }

template <class T>
uint32_t max_or_nan_pair(uint32_t a, uint32_t b) {
  uint32_t larger = 0;
  for (int bits = 0; bits < 32; bits += 16) {
    const float value = max_or_nan(to_float(bit_cast<T>(uint16_t(a >> bits))), to_float(bit_cast<T>(uint16_t(b >> bits))));
    larger |= uint32_t(bit_cast<uint16_t>(from_float<T>(value))) << bits;
  }
  return larger;
}

inline uint4 read_once(const void* from, bool exists) { return exists ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0}; }
inline uint32_t transpose_8x8(uint32_t v) { return emulator::transpose_8x8(v, AIT_EMULATOR_SITE); }

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_MMA_CUH_
