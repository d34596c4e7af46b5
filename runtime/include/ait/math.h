/// @file math.h
/// @brief One function per elementwise op, for host and device; the regions of fused kernels call them.
///
/// On the host the float forms are the polynomials of scalar_math.h (build with -fno-math-errno -fno-trapping-math); odd functions keep the
/// sign of a zero. On a device the toolchain's own functions are used. Doubles use the C library; so do the other functions of floats (sin,
/// cos, pow, asin...), which keep a host loop scalar. `half` and `bfloat16` are computed in float and rounded once. Integers wrap; division
/// truncates, and x / 0 is 0.
#ifndef AIT_MATH_H_
#define AIT_MATH_H_

#include <math.h>
#include <stdint.h>

#include <type_traits>

#include "ait/scalar_math.h"
#include "ait/types.h"

namespace ait {

// ---- arithmetic -------------------------------------------------------------------------------------------------------------------------

/// @brief OP(a, b) for any element type: narrow floats through float, integers modulo 2^n, bool as 0 and 1.
#define AIT_ARITHMETIC(NAME, OP)                                                        \
  template <class T>                                                                    \
  AIT_FN T NAME(T a, T b) {                                                             \
    if constexpr (is_narrow_float<T>) {                                                 \
      return from_float<T>(to_float(a) OP to_float(b));                                 \
    } else if constexpr (detail::is_wrapping<T>) {                                      \
      using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>; \
      return static_cast<T>(static_cast<U>(a) OP static_cast<U>(b));                    \
    } else {                                                                            \
      return static_cast<T>(a OP b);                                                    \
    }                                                                                   \
  }
AIT_ARITHMETIC(add, +)
AIT_ARITHMETIC(sub, -)
AIT_ARITHMETIC(mul, *)
#undef AIT_ARITHMETIC

template <class T>
AIT_FN T div(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(to_float(a) / to_float(b));
  } else if constexpr (std::is_integral<T>::value) {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed<T>::value) {
      if (b == T(-1)) return sub(T(0), a);
    }
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

/// @brief The exact remainder of division towards zero, with the sign of a; a for an integer b of 0.
template <class T>
AIT_FN T rem(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(rem(to_float(a), to_float(b)));
  } else if constexpr (std::is_integral<T>::value) {
    return sub(a, mul(div(a, b), b));
  } else if constexpr (std::is_same<T, float>::value) {
    return ::fmodf(a, b);
  } else {
    return ::fmod(a, b);
  }
}

#define AIT_BITWISE(NAME, OP)                                      \
  template <class T>                                               \
  AIT_FN T NAME(T a, T b) {                                        \
    static_assert(std::is_integral<T>::value, "bits of integers"); \
    return static_cast<T>(a OP b);                                 \
  }
AIT_BITWISE(bit_and, &)
AIT_BITWISE(bit_or, |)
AIT_BITWISE(bit_xor, ^)
#undef AIT_BITWISE

/// @brief The greatest common divisor, by Euclid's algorithm; of 0 and x, |x|. The magnitude of the least integer wraps.
template <class T>
AIT_FN T gcd(T a, T b) {
  static_assert(std::is_integral<T>::value, "divisors of integers");
  using U = std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>;
  U x = a < T(0) ? U(0) - static_cast<U>(a) : static_cast<U>(a);
  U y = b < T(0) ? U(0) - static_cast<U>(b) : static_cast<U>(b);
  while (y != 0) {
    const U rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}

/// @brief a with its bits moved up; 0 for a count below 0 or beyond the type.
template <class T>
AIT_FN T shift_left(T a, T b) {
  const int64_t count = static_cast<int64_t>(b);
  if (count < 0 || count >= static_cast<int64_t>(8 * sizeof(T))) return T(0);
  return static_cast<T>(static_cast<uint64_t>(a) << count);
}

/// @brief a with its bits moved down behind copies of its sign, zeros for an unsigned type; only these for a count below 0 or beyond the type.
template <class T>
AIT_FN T shift_right(T a, T b) {
  constexpr int64_t kLast = 8 * sizeof(T) - std::is_signed<T>::value;
  const int64_t count = static_cast<int64_t>(b);
  return static_cast<T>(static_cast<int64_t>(a) >> (count < 0 || count > kLast ? kLast : count));
}

/// @brief The larger value; NaN if either is NaN.
template <class T>
AIT_FN T max(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(max(to_float(a), to_float(b)));
  } else {
    const T larger = a <= b ? b : a;  // a when unordered
    return b == b ? larger : b;  // a constant b leaves one comparison
  }
}

/// @brief The smaller value; NaN if either is NaN.
template <class T>
AIT_FN T min(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(min(to_float(a), to_float(b)));
  } else {
    const T smaller = a >= b ? b : a;
    return b == b ? smaller : b;
  }
}

/// @brief min(max(x, low), high); NaN if x is NaN, `high` if `low` is above it.
template <class T>
AIT_FN T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}

template <class T>
AIT_FN T neg(T x) {
  if constexpr (std::is_integral<T>::value) {
    return sub(T(0), x);
  } else if constexpr (is_narrow_float<T>) {
    return from_float<T>(-to_float(x));
  } else {
    return -x;
  }
}

/// @brief x without its sign; the least integer is unchanged.
template <class T>
AIT_FN T abs(T x) {
  if constexpr (std::is_same<T, bool>::value) {
    return x;
  } else if constexpr (std::is_integral<T>::value) {
    return x < T(0) ? neg(x) : x;
  } else if constexpr (is_narrow_float<T>) {
    return from_float<T>(detail::magnitude(to_float(x)));
  } else if constexpr (std::is_same<T, float>::value) {
    return detail::magnitude(x);
  } else {
    return ::fabs(x);
  }
}

template <class T>
AIT_FN T relu(T x) {
  return max(x, from_float<T>(0.f));
}

// ---- functions of one real --------------------------------------------------------------------------------------------------------------

#ifdef AIT_DEVICE_MATH
AIT_FN float exp(float x) { return ::expf(x); }
AIT_FN float log(float x) { return ::logf(x); }
AIT_FN float tanh(float x) { return ::tanhf(x); }
AIT_FN float erf(float x) { return ::erff(x); }
AIT_FN float rsqrt(float x) { return ::rsqrtf(x); }
AIT_FN double rsqrt(double x) { return ::rsqrt(x); }
AIT_FN float log1p(float x) { return ::log1pf(x); }
AIT_FN float expm1(float x) { return ::expm1f(x); }
#else
AIT_FN float exp(float x) { return detail::exp_host(x); }
AIT_FN float log(float x) { return detail::log_host(x); }
AIT_FN float tanh(float x) { return detail::tanh_host(x); }
AIT_FN float erf(float x) { return detail::erf_host(x); }
AIT_FN float rsqrt(float x) { return 1.f / ::sqrtf(x); }
AIT_FN double rsqrt(double x) { return 1.0 / ::sqrt(x); }
AIT_FN float log1p(float x) { return detail::log1p_host(x); }
AIT_FN float expm1(float x) { return detail::expm1_host(x); }
#endif
/// The forms for narrow floats of a function that is declared for float.
#define AIT_NARROW(NAME)                                                        \
  AIT_FN half NAME(half x) { return from_float<half>(NAME(to_float(x))); }        \
  AIT_FN bfloat16 NAME(bfloat16 x) { return from_float<bfloat16>(NAME(to_float(x))); }
/// A function of the C library that has the name of the op, for all types of floats.
#define AIT_OF_LIBRARY(NAME)                              \
  AIT_FN float NAME(float x) { return ::NAME##f(x); }     \
  AIT_FN double NAME(double x) { return ::NAME(x); }      \
  AIT_NARROW(NAME)
AIT_OF_LIBRARY(log2)
AIT_OF_LIBRARY(log10)
AIT_OF_LIBRARY(exp2)
AIT_OF_LIBRARY(tan)
AIT_OF_LIBRARY(asin)
AIT_OF_LIBRARY(acos)
AIT_OF_LIBRARY(atan)
AIT_OF_LIBRARY(sinh)
AIT_OF_LIBRARY(cosh)
AIT_OF_LIBRARY(asinh)
AIT_OF_LIBRARY(acosh)
AIT_OF_LIBRARY(atanh)
AIT_OF_LIBRARY(erfc)
#ifdef AIT_DEVICE_MATH
AIT_OF_LIBRARY(erfinv)
AIT_OF_LIBRARY(lgamma)
#else
AIT_FN double erfinv(double x) { return detail::erfinv_host(x); }
AIT_FN float erfinv(float x) { return static_cast<float>(detail::erfinv_host(x)); }
AIT_FN double lgamma(double x) {
  int sign;  // ::lgamma writes it to a global variable, which threads would share
  return ::lgamma_r(x, &sign);
}
AIT_FN float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
AIT_NARROW(erfinv)
AIT_NARROW(lgamma)
#endif
#undef AIT_OF_LIBRARY

/// @brief Derivative of log(gamma(x)), from psi(x) = psi(1 - x) - pi / tan(pi x), psi(x) = psi(x + 1) - 1 / x and the asymptotic series
/// (Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18).
AIT_FN double digamma(double x) {
  if (x == 0.0) return 1.0 / x > 0.0 ? -INFINITY : INFINITY;
  double y = 0.0;
  if (x < 0.0) {
    const double r = x - ::rint(x);  // tan has period pi: no digits of x are lost
    if (r == 0.0 || x == -INFINITY) return NAN;
    y = -3.14159265358979323846 / ::tan(3.14159265358979323846 * r);
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) y -= 1.0 / x;
  const double s = 1.0 / (x * x);
  double p = 1.0 / 12.0;  // B(2 k) / (2 k), from k = 7 down
  p = p * s - 691.0 / 32760.0;
  p = p * s + 1.0 / 132.0;
  p = p * s - 1.0 / 240.0;
  p = p * s + 1.0 / 252.0;
  p = p * s - 1.0 / 120.0;
  p = p * s + 1.0 / 12.0;
  return y + (::log(x) - 0.5 / x - p * s);
}
AIT_FN float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }  // sums cancel

AIT_FN float floor(float x) { return ::floorf(x); }
AIT_FN double floor(double x) { return ::floor(x); }
AIT_FN float round(float x) { return ::rintf(x); }
AIT_FN double round(double x) { return ::rint(x); }
AIT_FN float sin(float x) { return ::sinf(x); }
AIT_FN double sin(double x) { return ::sin(x); }
AIT_FN float cos(float x) { return ::cosf(x); }
AIT_FN double cos(double x) { return ::cos(x); }
AIT_FN double log1p(double x) { return ::log1p(x); }
AIT_FN double expm1(double x) { return ::expm1(x); }
AIT_FN float sqrt(float x) { return ::sqrtf(x); }
AIT_FN double sqrt(double x) { return ::sqrt(x); }
AIT_FN double exp(double x) { return ::exp(x); }
AIT_FN double log(double x) { return ::log(x); }
AIT_FN double tanh(double x) { return ::tanh(x); }
AIT_FN double erf(double x) { return ::erf(x); }

AIT_FN float sigmoid(float x) { return detail::quotient(1.f, 1.f + exp(-x)); }
AIT_FN double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
AIT_FN float silu(float x) { return detail::quotient(x, 1.f + exp(-x)); }
AIT_FN double silu(double x) { return x / (1.0 + exp(-x)); }

/// @brief sigmoid for results that are rounded to half or bfloat16.
AIT_FN float sigmoid_narrow(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.f + detail::exp2_core(x * -0x1.715476p+0f)));
  return y;
#else
  return sigmoid(x);
#endif
}

/// @brief exp for results that are rounded to half or bfloat16, and for sums of such: relative error 2^-24 times the magnitude of x.
AIT_FN float exp_narrow(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
  return detail::exp2_core(x * 0x1.715476p+0f);
#else
  return exp(x);
#endif
}

/// @brief a / b for results that are rounded to half or bfloat16: on a GPU within 2 ulp of a float.
AIT_FN float div_narrow(float a, float b) {
#ifdef AIT_DEVICE_MATH
  const float size = detail::magnitude(b);
  if (size >= 0x1p-126f && size < 0x1p126f) return __fdividef(a, b);
#endif
  return a / b;
}

/// @brief A divisor of many numbers whose quotients are rounded to half or bfloat16: its reciprocal, and a power of 2 that keeps both normal.
struct Divisor {
  float scale, reciprocal;
};
AIT_FN Divisor divisor_narrow(float b) {
  const float size = detail::magnitude(b), scale = size < 0x1p-64f ? 0x1p64f : size > 0x1p64f ? 0x1p-64f : 1.f;
  return {scale, 1.f / (b * scale)};
}
AIT_FN float div_by_narrow(float a, const Divisor& b) { return a * b.scale * b.reciprocal; }

/// @brief a / b for quotients that are rounded to floats of 8 bits: it lies where the quotient in float lies, above, below or at each number
/// halfway between two of them. Without a division for each a, if b is that of many.
AIT_FN float div_float8(float a, float b) {
  // b times a power of 2, so that its reciprocal and what is left of a are normal; 0 / 1 for an infinite b.
  const float size = detail::magnitude(b);
  const bool infinite = size == INFINITY;
  const float scale = infinite ? 0.f : size < 0x1p-64f ? 0x1p64f : size > 0x1p64f ? 0x1p-64f : 1.f;
  const float by = infinite ? 1.f : b * scale, reciprocal = 1.f / by, from = a * scale;
  // Markstein's division: a quotient within 2 ulp, and what it leaves of a. The bounds keep infinities out of the difference.
  const float near = fmaxf(fminf(from * reciprocal, 0x1p20f), -0x1p20f);
  return fmaf(fmaf(near, by, -from), -reciprocal, near);
}

/// @brief silu for results that are rounded to half or bfloat16: without what makes `exp` and a quotient exact to the last bits.
AIT_FN float silu_narrow(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.f + detail::exp2_core(x * -0x1.715476p+0f)));
  return x * y;
#else
  return silu(x);
#endif
}

/// @brief x * Phi(x), with the error function.
AIT_FN float gelu(float x) {
  const float a = detail::magnitude(x);
  const float y = (x > 0.f ? x : 0.f) - a * detail::normal_tail(a);
  return x > 16.f ? x : y;  // inf - inf * 0 would be NaN
}
AIT_FN double gelu(double x) { return (0.5 * x) * ::erfc(x * -0.70710678118654752440); }

/// @brief gelu for results that are rounded to half or bfloat16: relative error 2^-17 where those are normal, at about half the cost.
AIT_FN float gelu_narrow(float x) {
  const float a = detail::magnitude(x), c = a < 16.f ? a : 16.f;
  float p = 0x1.14ac36p-15f;  // log2 of the probability that a normal variable is above c, as in `normal_tail`
  p = p * c - 0x1.8bd7dep-11f;
  p = p * c + 0x1.053dd8p-7f;
  p = p * c - 0x1.b3203ep-5f;
  p = p * c - 0x1.d62008p-2f;
  p = p * c - 0x1.26ac08p+0f;
  p = p * c - 0x1.000068p+0f;
  const float y = detail::positive(x) - c * detail::exp2_core(p);
  return y + detail::positive(-x) * -0.f;  // NaN at -inf, as x * Phi(x)
}

/// @brief The tanh form of gelu: 0.5 x (1 + tanh(u)) is x / (1 + exp(-2 u)).
AIT_FN float fast_gelu(float x) {
  return detail::quotient(x, 1.f + exp(-1.59576912160573071f * (x + 0.044715f * (x * x * x))));
}
AIT_FN double fast_gelu(double x) {
  return x / (1.0 + exp(-1.5957691216057307118 * (x + 0.044715 * (x * x * x))));
}

/// @brief fast_gelu for results that are rounded to half or bfloat16: without what makes `exp` and a quotient exact to the last bits.
AIT_FN float fast_gelu_narrow(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.f + detail::exp2_core(x * (-0x1.26aec2p+1f - 0x1.a5a7dp-4f * (x * x)))));
  return x * y;
#else
  return fast_gelu(x);
#endif
}

AIT_NARROW(exp)
AIT_NARROW(log)
AIT_NARROW(sqrt)
AIT_NARROW(rsqrt)
AIT_NARROW(tanh)
AIT_NARROW(erf)
AIT_NARROW(sigmoid)
AIT_NARROW(silu)
AIT_NARROW(gelu)
AIT_NARROW(fast_gelu)
AIT_NARROW(floor)
AIT_NARROW(round)
AIT_NARROW(sin)
AIT_NARROW(cos)
AIT_NARROW(log1p)
AIT_NARROW(expm1)
AIT_NARROW(digamma)
#undef AIT_NARROW

/// @brief a to the power of b, as in C: pow(x, 0) and pow(1, x) are 1 even for NaN, a negative number to a fractional power is NaN.
template <class T>
AIT_FN T pow(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(::powf(to_float(a), to_float(b)));
  } else if constexpr (std::is_same<T, float>::value) {
    return ::powf(a, b);
  } else {
    return ::pow(a, b);
  }
}

/// @brief NAME(a, b) of the C library.
#define AIT_OF_LIBRARY(NAME)                                              \
  template <class T>                                                      \
  AIT_FN T NAME(T a, T b) {                                               \
    if constexpr (is_narrow_float<T>) {                                   \
      return from_float<T>(::NAME##f(to_float(a), to_float(b)));          \
    } else if constexpr (std::is_same<T, float>::value) {                 \
      return ::NAME##f(a, b);                                             \
    } else {                                                              \
      return ::NAME(a, b);                                                \
    }                                                                     \
  }
AIT_OF_LIBRARY(atan2)
AIT_OF_LIBRARY(hypot)
#undef AIT_OF_LIBRARY

// ---- comparison, selection, conversion --------------------------------------------------------------------------------------------------

#define AIT_COMPARE(NAME, OP)                                                   \
  template <class T>                                                            \
  AIT_FN bool NAME(T a, T b) {                                                  \
    if constexpr (is_narrow_float<T>) {                                 \
      return to_float(a) OP to_float(b);                    \
    } else {                                                                    \
      return a OP b;                                                            \
    }                                                                           \
  }
AIT_COMPARE(compare_eq, ==)
AIT_COMPARE(compare_ne, !=)
AIT_COMPARE(compare_lt, <)
AIT_COMPARE(compare_le, <=)
AIT_COMPARE(compare_gt, >)
AIT_COMPARE(compare_ge, >=)
#undef AIT_COMPARE

template <class T>
AIT_FN T where(bool condition, T a, T b) {
  return condition ? a : b;
}

/// @brief Converts between element types. Floats round to nearest even; float to integer truncates towards zero and saturates, NaN gives 0;
/// integers wrap; anything to bool is x != 0.
template <class To, class From>
AIT_FN To cast(From x) {
  if constexpr (is_nibble<To> && !std::is_integral<compute_t<From>>::value) {
    using Wide = compute_t<To>;
    const Wide wide = cast<Wide>(x), last = std::is_signed<Wide>::value ? Wide(7) : Wide(15);
    const Wide first = std::is_signed<Wide>::value ? Wide(-8) : Wide(0);
    return To(wide > last ? last : wide < first ? first : wide);
  } else if constexpr (std::is_integral<To>::value && !std::is_same<To, bool>::value && !std::is_integral<compute_t<From>>::value) {
    using Real = compute_t<From>;
    const Real v = convert<Real>(x);
    constexpr bool kSigned = std::is_signed<To>::value;
    constexpr Real end = Real(uint64_t(1) << (8 * sizeof(To) - kSigned));  // 2^(n - 1), or 2^n if unsigned, exact
    constexpr To lowest = kSigned ? static_cast<To>(uint64_t(1) << (8 * sizeof(To) - 1)) : To(0);
    if (v >= end) return static_cast<To>(~lowest);
    if constexpr (!kSigned) return v > Real(0) ? static_cast<To>(v) : To(0);
    if (v > -end - Real(1)) return v > -end ? static_cast<To>(v) : lowest;
    return v != v ? To(0) : lowest;
  } else {
    return convert<To>(x);
  }
}

}  // namespace ait
#endif  // AIT_MATH_H_
