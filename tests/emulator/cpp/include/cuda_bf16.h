/// @file cuda_bf16.h
/// @brief The emulator's stand-in for bfloat16.
#ifndef AIT_EMULATOR_CUDA_BF16_H_
#define AIT_EMULATOR_CUDA_BF16_H_

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) {
    uint32_t b;
    __builtin_memcpy(&b, &value, 4);
    bits = uint16_t((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  }
  operator float() const {
    const uint32_t b = uint32_t(bits) << 16;
    float value;
    __builtin_memcpy(&value, &b, 4);
    return value;
  }
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }

#endif  // AIT_EMULATOR_CUDA_BF16_H_
