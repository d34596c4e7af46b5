/// @file scalar_math.h
/// @brief The parts of the functions of math.h: polynomials of floats for the host, and forms that a device computes in fewer steps.
///
/// The polynomials are branch-free, so that `#pragma omp simd` loops vectorise without -ffast-math; each is within 1.5 ulp and right about
/// infinities, NaN and denormals.
#ifndef AIT_SCALAR_MATH_H_
#define AIT_SCALAR_MATH_H_

#include <math.h>
#include <stdint.h>

#include <type_traits>

#include "ait/types.h"

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define AIT_DEVICE_MATH 1
#endif

namespace ait {
namespace detail {

AIT_FN uint32_t bits(float x) { return bit_cast<uint32_t>(x); }
AIT_FN float from_bits(uint32_t u) { return bit_cast<float>(u); }

/// x with the sign of s; x must not be negative.
AIT_FN float with_sign(float x, float s) { return from_bits(bits(x) | (bits(s) & 0x80000000u)); }
#ifdef AIT_DEVICE_MATH
AIT_FN float magnitude(float x) { return ::fabsf(x); }  // free: a modifier of whatever reads it
#else
AIT_FN float magnitude(float x) { return from_bits(bits(x) & 0x7fffffffu); }
#endif

/// exp(x) for -104 <= x <= 89 (NaN passes): x = n ln 2 + r, a polynomial in r, and two exact scalings by powers of two.
AIT_FN float exp_core(float x) {
  const float shift = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341f + shift;
  const float n = shifted - shift;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 0x1.9f0810p-13f;
  p = p * r + 0x1.6d8db0p-10f;
  p = p * r + 0x1.111272p-7f;
  p = p * r + 0x1.55548ep-5f;
  p = p * r + 0x1.555554p-3f;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  p = p + 1.f;
  const uint32_t k = bits(shifted) - bits(shift);                         // n as two's complement
  const uint32_t half_k = (k + 256u) / 2u - 128u;                         // floor(n / 2), n >= -256
  return p * from_bits((half_k + 127u) << 23) * from_bits((k - half_k + 127u) << 23);
}

AIT_FN float exp_host(float x) {
  float c = x < -104.f ? -104.f : x;
  c = c > 89.f ? 89.f : c;
  return exp_core(c);
}

AIT_FN float log_host(float x) {
  const bool tiny = x < 0x1p-126f;
  const uint32_t u = bits(x * (tiny ? 0x1p23f : 1.f));
  const uint32_t offset = u - 0x3f3504f3u;                                // bits of sqrt(1/2)
  const int32_t k = static_cast<int32_t>(offset) >> 23;
  const float f = from_bits(u - (static_cast<uint32_t>(k) << 23)) - 1.f;  // in [sqrt(1/2) - 1, sqrt(2) - 1]
  const float e = static_cast<float>(k) - (tiny ? 23.f : 0.f);
  float p = 0x1.1457a2p-4f;
  p = p * f - 0x1.de3c14p-4f;
  p = p * f + 0x1.e6f06cp-4f;
  p = p * f - 0x1.fc2208p-4f;
  p = p * f + 0x1.233768p-3f;
  p = p * f - 0x1.555c4ep-3f;
  p = p * f + 0x1.99a4b6p-3f;
  p = p * f - 0x1.000006p-2f;
  p = p * f + 0x1.555548p-2f;
  const float square = f * f;
  float tail = (p * f) * square + e * -2.12194440e-4f;
  tail = tail - 0.5f * square;
  float y = (f + tail) + e * 0.693359375f;
  y = x < INFINITY ? y : x;                                               // +inf and NaN
  y = x == 0.f ? -INFINITY : y;
  return x < 0.f ? NAN : y;
}

AIT_FN float tanh_host(float x) {
  const float t = magnitude(x);
  const float s = x * x;
  float p = 0x1.18e1e0p-9f;
  p = p * s - 0x1.0bf4fep-7f;
  p = p * s + 0x1.638b58p-6f;
  p = p * s - 0x1.b9ee90p-5f;
  p = p * s + 0x1.111066p-3f;
  p = p * s - 0x1.555554p-2f;
  const float near = t + (t * s) * p;
  const float c = t > 10.f ? 10.f : t;
  const float far = 1.f - 2.f / (exp_core(c + c) + 1.f);
  return with_sign(t > 0.625f ? far : near, x);                           // NaN takes near
}

AIT_FN float erf_host(float x) {
  const float t = magnitude(x);
  const float s = x * x;
  float p = 0x1.5f95a2p-14f;
  p = p * s - 0x1.ab1080p-11f;
  p = p * s + 0x1.54df1ep-8f;
  p = p * s - 0x1.b810eap-6f;
  p = p * s + 0x1.ce2e24p-4f;
  p = p * s - 0x1.812744p-2f;
  p = p * s + 0x1.06eba8p-3f;
  const float near = x + x * p;
  const float c = t > 3.95f ? 3.95f : t;                                  // erf(3.95) rounds to 1
  float q = 0x1.61ea36p-16f;                                              // -log(erfc(c))
  q = q * c - 0x1.c790f0p-12f;
  q = q * c + 0x1.115ac2p-8f;
  q = q * c - 0x1.9b8e7ap-6f;
  q = q * c + 0x1.bb83e4p-4f;
  q = q * c + 0x1.44460cp-1f;
  q = q * c + 0x1.2127e4p+0f;
  q = q * c - 0x1.6e5660p-13f;
  const float far = with_sign(1.f - exp_core(-q), x);
  return t > 0.92f ? far : near;                                          // NaN takes near
}

/// exp(x) - 1: as exp_core, but the 1 is taken off before the scaling, where 2^n - 1 is exact enough.
AIT_FN float expm1_host(float x) {
  float c = x < -104.f ? -104.f : x;
  c = c > 89.f ? 89.f : c;
  const float shift = 12582912.f;
  const float shifted = c * 1.44269504088896341f + shift;
  const float n = shifted - shift;
  const float r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 0x1.9f0810p-13f;
  p = p * r + 0x1.6d8db0p-10f;
  p = p * r + 0x1.111272p-7f;
  p = p * r + 0x1.55548ep-5f;
  p = p * r + 0x1.555554p-3f;
  p = p * r + 0.5f;
  p = (p * r) * r + r;                                                    // exp(r) - 1
  const uint32_t k = bits(shifted) - bits(shift);
  const uint32_t half_k = (k + 256u) / 2u - 128u;
  const float low = from_bits((half_k + 127u) << 23);
  const float high = from_bits((k - half_k + 127u) << 23);
  const float y = (p * low + (low - 1.f / high)) * high;                  // p 2^n + (2^n - 1)
  return x == 0.f ? x : y;
}

/// log(1 + x), from log(u) with u = 1 + x rounded, and what the rounding lost.
AIT_FN float log1p_host(float x) {
  const float u = 1.f + x;
  const float lost = (x - (u - 1.f)) / (u == 0.f ? 1.f : u);
  const float y = log_host(u) + (lost == lost ? lost : 0.f);             // not of infinity
  return with_sign(magnitude(y), x);                                     // also of -0
}

/// 2^x for -126 <= x <= 0, within 2 ulp.
AIT_FN float exp2_core(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#elif defined(AIT_DEVICE_MATH)
  return ::exp2f(x);
#else
  const float shift = 12582912.f;
  const float shifted = x + shift;
  const float r = x - (shifted - shift);
  float p = 0x1.41fbbcp-13f;
  p = p * r + 0x1.5f3e54p-10f;
  p = p * r + 0x1.3b2d4cp-7f;
  p = p * r + 0x1.c6aee8p-5f;
  p = p * r + 0x1.ebfbdcp-3f;
  p = p * r + 0x1.62e430p-1f;
  p = p * r + 1.f;
  return from_bits(bits(p) + ((bits(shifted) - bits(shift)) << 23));
#endif
}

/// The probability that a normal variable is above a >= 0; 0 above 5.6, where it is less than half of the least float16.
AIT_FN float normal_tail(float a) {
  const float c = a > 5.6f ? 5.6f : a;
  float p = -0x1.83a386p-26f;  // log2 of the probability
  p = p * c + 0x1.750dc2p-21f;
  p = p * c - 0x1.3416a4p-17f;
  p = p * c + 0x1.14a0ecp-14f;
  p = p * c - 0x1.fe823ep-13f;
  p = p * c - 0x1.38bc78p-14f;
  p = p * c + 0x1.cd2084p-8f;
  p = p * c - 0x1.ae13e6p-5f;
  p = p * c - 0x1.d6392ap-2f;
  p = p * c - 0x1.26aee8p+0f;
  p = p * c - 0x1.fffffep-1f;
  const float y = exp2_core(p);
  return a > 5.6f ? 0.f : y;
}

/// The inverse of erf, by Winitzki's approximation (relative error 2e-3) and Halley's method, which triples its digits each time. Near 1 it
/// solves erfc(y) = 1 - x, where nothing cancels.
AIT_FN double erfinv_host(double x) {
  const double t = ::fabs(x);
  if (!(t < 1.0)) return t == 1.0 ? x * INFINITY : NAN;
  const double log_rest = ::log1p(-t * t);
  const double half = 4.3307467508 + 0.5 * log_rest;  // 2 / (0.147 pi)
  double y = ::sqrt(::sqrt(half * half - log_rest / 0.147) - half);
  for (int i = 0; i < 3; ++i) {
    const double error = t > 0.5 ? (1.0 - t) - ::erfc(y) : ::erf(y) - t;
    const double step = error / (1.12837916709551257390 * ::exp(-y * y));  // 2 / sqrt(pi), the slope of erf
    y = y - step / (1.0 + y * step);
  }
  return ::copysign(y, x);
}

/// The larger of x and 0; NaN passes.
AIT_FN float positive(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA) && __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
#else
  return x < 0.f ? 0.f : x;
#endif
}

/// a / b for b >= 1; on CUDA and HIP within 2 ulp, and 0 where b is above 2^126.
AIT_FN float quotient(float a, float b) {
#ifdef AIT_DEVICE_MATH
  return __fdividef(a, b);
#else
  return a / b;
#endif
}

template <class T>
inline constexpr bool is_wrapping = std::is_integral<T>::value && !std::is_same<T, bool>::value;

}  // namespace detail
}  // namespace ait
#endif  // AIT_SCALAR_MATH_H_
