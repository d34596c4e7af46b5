/// @file cuda_fp16.h
/// @brief The emulator's stand-in for half precision: the host compiler has it.
#ifndef AIT_EMULATOR_CUDA_FP16_H_
#define AIT_EMULATOR_CUDA_FP16_H_

#include "cuda_runtime.h"

using __half = _Float16;
struct __half2 {
  __half x, y;
};
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half_rn(float x) { return static_cast<__half>(x); }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }

#endif  // AIT_EMULATOR_CUDA_FP16_H_
