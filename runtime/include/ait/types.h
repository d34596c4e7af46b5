/// @file types.h
/// @brief Element types of tensors, for the host, CUDA and HIP, and conversions between them.
///
/// | IR   | host           | CUDA            | HIP            |
/// |------|----------------|-----------------|----------------|
/// | f16  | `_Float16`     | `__half`        | `_Float16`     |
/// | bf16 | 16-bit struct  | `__nv_bfloat16` | 16-bit struct  |
/// | i1   | `bool`, one byte everywhere                       |
/// | f8E4M3FN, f8E5M2, f8E8M0FNU | structs of one byte everywhere, which float8.h defines |
/// | i4, ui4 | structs of one byte everywhere, whose upper 4 bits do not count |
#ifndef AIT_TYPES_H_
#define AIT_TYPES_H_

#include <stdint.h>
#include <string.h>

#include <type_traits>

#if defined(__CUDACC__)
#define AIT_CUDA 1
#define AIT_GPU 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(__HIPCC__) || defined(__HIP__)
#define AIT_HIP 1
#define AIT_GPU 1
#include <hip/hip_runtime.h>
#endif

#if defined(AIT_GPU)
/// Prefix of a function that runs on the host and on the device.
#define AIT_FN __host__ __device__ __forceinline__
#else
#define AIT_FN inline __attribute__((always_inline))  // so that loops over elements vectorise
#endif

namespace ait {

/// @brief `memcpy` within registers. HIP's own one on the device copies byte by byte, for which arrays and vectors go to scratch memory.
AIT_FN void copy_bytes(void* to, const void* from, size_t bytes) {
#if defined(AIT_HIP)
  __builtin_memcpy(to, from, bytes);
#else
  memcpy(to, from, bytes);
#endif
}

/// @brief One of two elements of arrays in registers. `?:` would choose between their addresses: clang would keep such an array in memory.
template <class T>
AIT_FN T choose(bool first, T a, T b) {
  return first ? a : b;
}

/// @brief Reinterprets the bytes of `from` as a `To` of the same size.
template <class To, class From>
AIT_FN To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
  To to;
  copy_bytes(&to, &from, sizeof(To));
  return to;
}

#if defined(AIT_CUDA)
using half = __half;
using bfloat16 = __nv_bfloat16;
#else
using half = _Float16;

/// @brief The upper 16 bits of a float, for compilers that have no such type.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  AIT_FN explicit bfloat16(float value) : bits(round(value)) {}
  AIT_FN operator float() const { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

  /// Rounds to nearest, ties to even; a NaN stays a NaN.
  static AIT_FN uint16_t round(float value) {
    const uint32_t b = bit_cast<uint32_t>(value);
    const uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    const uint32_t quieted = (b >> 16) | 0x40u;
    return static_cast<uint16_t>((b & 0x7fffffffu) > 0x7f800000u ? quieted : rounded);
  }
};
#endif

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2 && sizeof(bool) == 1, "element sizes are part of the ABI");

// float8.h defines these; code that reads or writes their values includes it.
template <int kMantissa, int kBias, bool kInfinite>
struct float8;
using float8_e4m3fn = float8<3, 7, false>;
using float8_e5m2 = float8<2, 15, true>;
struct float8_e8m0fnu;

/// @brief An integer of 4 bits in a byte.
template <bool kSigned>
struct nibble {
  using Wide = std::conditional_t<kSigned, int8_t, uint8_t>;
  uint8_t bits;

  nibble() = default;
  /// Wraps.
  template <class T>
  AIT_FN explicit nibble(T value) : bits(static_cast<uint8_t>(static_cast<int32_t>(value) & 15)) {}
  AIT_FN operator Wide() const {
    return static_cast<Wide>(kSigned ? ((bits & 15) ^ 8) - 8 : bits & 15);
  }
};
using int4_t = nibble<true>;
using uint4_t = nibble<false>;

template <class T>
inline constexpr bool is_float8 = std::is_same_v<T, float8_e4m3fn> || std::is_same_v<T, float8_e5m2> || std::is_same_v<T, float8_e8m0fnu>;
template <class T>
inline constexpr bool is_nibble = std::is_same_v<T, int4_t> || std::is_same_v<T, uint4_t>;

/// Whether an element is a float of 16 bits.
template <class T>
inline constexpr bool is_narrow_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// @brief An integer of as many bits as an element of 1, 2 or 4 bytes.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;

namespace detail {
template <class T>
struct Computed {
  using Type = std::conditional_t<is_narrow_float<T> || is_float8<T>, float, T>;
};
template <bool kSigned>
struct Computed<nibble<kSigned>> {
  using Type = typename nibble<kSigned>::Wide;
};
}  // namespace detail

/// @brief The type in which scalars of `T` are computed: `float` for narrower floats, a byte for 4 bits, else `T`.
template <class T>
using compute_t = typename detail::Computed<T>::Type;

/// @brief `value` as a `float`, exact for every element type no wider than 24 bits.
template <class T>
AIT_FN float to_float(T value) {
#if defined(AIT_CUDA)
  if constexpr (std::is_same_v<T, half>) {
    return __half2float(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return __bfloat162float(value);
  } else {
    return static_cast<float>(value);
  }
#else
  return static_cast<float>(value);
#endif
}

/// @brief `value` rounded to nearest even in `T`.
template <class T>
AIT_FN T from_float(float value) {
#if defined(AIT_CUDA)
  if constexpr (std::is_same_v<T, half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return static_cast<T>(value);
  }
#else
  return static_cast<T>(value);
#endif
}

/// @brief A `float` that rounds to the same 16 bits as `value` itself: `value` truncated, with a sticky last bit.
AIT_FN float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  uint32_t bits = bit_cast<uint32_t>(nearest);
  const double magnitude = value < 0 ? -value : value;
  const double rounded = back < 0 ? -back : back;
  if (rounded > magnitude) bits -= 1;
  return bit_cast<float>(bits | 1u);
}

/// @brief `value` as a `To`: floats round to nearest even, once; float to integer truncates; anything to `bool` is `value != 0`.
template <class To, class From>
AIT_FN To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<compute_t<From>>(value) != compute_t<From>(0);
  } else if constexpr (is_narrow_float<To> || is_float8<To>) {
    // A float holds neither every double nor every int32: go there with a sticky bit, so that only one rounding shows.
    if constexpr (std::is_same_v<From, double> || std::is_same_v<From, int32_t>) {
      return from_float<To>(round_to_odd(static_cast<double>(value)));
    } else if constexpr (std::is_same_v<From, int64_t>) {
      constexpr int64_t exact = int64_t(1) << 53;  // a double holds 53 bits: beyond them fold the low 11 into one sticky bit
      const int64_t low = value > exact || value < -exact ? value & 0x7ff : 0;
      return from_float<To>(round_to_odd(static_cast<double>((value - low) | (low != 0 ? 0x400 : 0))));
    } else {
      return from_float<To>(to_float(value));
    }
  } else if constexpr (is_narrow_float<From>) {
    return static_cast<To>(to_float(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace ait

#endif  // AIT_TYPES_H_
