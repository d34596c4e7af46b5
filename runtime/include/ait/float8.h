/// @file float8.h
/// @brief Floats of 8 bits, for the host, CUDA and HIP.
///
/// Only code with such elements includes this header: its conversions depend on the architecture of the card.
#ifndef AIT_FLOAT8_H_
#define AIT_FLOAT8_H_

#include "ait/types.h"

namespace ait {

#if defined(AIT_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define AIT_CONVERTS_FLOAT8
/// @brief Two numbers, the first in the lower byte, to nearest, ties to even; beyond the largest number: the largest one.
__device__ __forceinline__ uint16_t floats_to_e4m3(float first, float second) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ __forceinline__ uint16_t floats_to_e5m2(float first, float second) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
}
/// @brief The bits of the half that has the value of a float8_e4m3fn.
__device__ __forceinline__ uint16_t e4m3_to_half(uint8_t bits) {
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(bits)));
  return static_cast<uint16_t>(pair);
}
__device__ __forceinline__ float half_value(int bits) { return __half2float(bit_cast<half>(static_cast<uint16_t>(bits))); }
#endif

/// @brief A float of 8 bits with a sign (arXiv:2209.05433). CUDA cards since sm_89 convert it by instructions.
///
/// @tparam kMantissa bits of the mantissa, @tparam kBias what the exponent's bits are above the exponent
/// @tparam kInfinite whether the largest exponent is that of infinity and NaN; else NaN alone has all bits but the sign
template <int kMantissa, int kBias, bool kInfinite>
struct float8 {
  uint8_t bits;

  float8() = default;
  AIT_FN explicit float8(float value) : bits(round(value)) {}

  /// The exact value.
  AIT_FN operator float() const {
#if defined(AIT_CONVERTS_FLOAT8)
    return kInfinite ? half_value(int(bits) << 8) : half_value(e4m3_to_half(bits));
#else
    constexpr uint32_t kShift = 23 - kMantissa, kExponents = 127 - kBias;
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fu) << kShift;
    const float normal = bit_cast<float>(magnitude + (kExponents << 23));
    // Below the least normal number the hidden 1 is missing: have one, and take it off again.
    const float subnormal = bit_cast<float>(magnitude + ((kExponents + 1) << 23)) - bit_cast<float>((kExponents + 1) << 23);
    const uint32_t finite = bit_cast<uint32_t>((bits & 0x7fu) >> kMantissa ? normal : subnormal);
    const uint32_t beyond = kInfinite && (bits & 0x7fu) == kTop ? 0x7f800000u : 0x7fc00000u;
    const uint32_t found = (bits & 0x7fu) >= kTop ? beyond : finite;
    return bit_cast<float>(found | static_cast<uint32_t>(bits & 0x80u) << 24);
#endif
  }

  /// To nearest, ties to even. Beyond the largest number: infinity, or NaN in a type without infinity.
  static AIT_FN uint8_t round(float value) {
#if defined(AIT_CONVERTS_FLOAT8)
    // The instruction gives the largest number for all beyond it, and any NaN.
    constexpr float kLast = kInfinite ? 61440.f : 464.f;  // halfway to what the next number would be, which is even where it is infinity
    const float magnitude = value < 0.f ? -value : value;
    const uint8_t sign = static_cast<uint8_t>(bit_cast<uint32_t>(value) >> 24 & 0x80u);
    if (kInfinite ? magnitude < kLast : magnitude <= kLast) return static_cast<uint8_t>(saturated(value, 0.f));
    return static_cast<uint8_t>((value == value ? kTop : kNan) | sign);
#else
    constexpr uint32_t kShift = 23 - kMantissa, kExponents = 127 - kBias;
    const uint32_t word = bit_cast<uint32_t>(value), magnitude = word & 0x7fffffffu;
    // The sum with this power of 2 has the last place of a subnormal number as its own last place.
    constexpr uint32_t kPower = (kExponents + 1 + kShift) << 23;
    const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(kPower)) - kPower;
    const uint32_t odd = (magnitude >> kShift) & 1u;
    const uint32_t normal = (magnitude - (kExponents << 23) + (1u << (kShift - 1)) - 1u + odd) >> kShift;
    uint32_t found = magnitude < ((kExponents + 1) << 23) ? subnormal : normal;
    found = magnitude >= 0x7f800000u || found > kTop ? kTop : found;
    found = magnitude > 0x7f800000u ? kNan : found;
    return static_cast<uint8_t>(found | (word >> 24 & 0x80u));
#endif
  }

  /// Two numbers, the first in the lower byte. To nearest, ties to even; beyond the largest number, and of infinity, the largest number.
  static AIT_FN uint16_t saturated(float first, float second) {
#if defined(AIT_CONVERTS_FLOAT8)
    return kInfinite ? floats_to_e5m2(first, second) : floats_to_e4m3(first, second);
#else
    return static_cast<uint16_t>(round(within(first)) | round(within(second)) << 8);
#endif
  }

 private:
  static constexpr float kLargest = kInfinite ? 57344.f : 448.f;
  static AIT_FN float within(float value) { return value > kLargest ? kLargest : value < -kLargest ? -kLargest : value; }
  static constexpr uint32_t kTop = kInfinite ? 0x7fu << kMantissa & 0x7fu : 0x7fu;  ///< the bits of infinity, else those of NaN
  static constexpr uint32_t kNan = kInfinite ? kTop | 1u << (kMantissa - 1) : kTop;
};

/// @brief A power of 2 from 2^-127 to 2^127, or NaN: the scale of a block of numbers.
struct float8_e8m0fnu {
  uint8_t bits;

  float8_e8m0fnu() = default;
  AIT_FN explicit float8_e8m0fnu(float value) : bits(round(value)) {}
  AIT_FN operator float() const {
    const uint32_t power = bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23;
    return bit_cast<float>(bits == 0xffu ? 0x7fc00000u : power);
  }

  /// To the nearest power, of two the larger one; above 2^-127 to 2^-126; NaN for 0 and numbers below it.
  static AIT_FN uint8_t round(float value) {
    const uint32_t word = bit_cast<uint32_t>(value);
    const uint32_t normal = (word + 0x00400000u) >> 23, subnormal = word > 0x00400000u ? 1u : 0u;
    const uint32_t found = word < 0x00800000u ? subnormal : normal;
    return static_cast<uint8_t>(word == 0 || word >= 0x7f800000u ? 0xffu : found);
  }
};

static_assert(sizeof(float8_e4m3fn) == 1 && sizeof(float8_e5m2) == 1 && sizeof(float8_e8m0fnu) == 1, "element sizes are part of the ABI");

}  // namespace ait

#endif  // AIT_FLOAT8_H_
