/// @file block.h
/// @brief Runs of elements in and out of their compute type: how CPU kernels read and write narrow and strided operands.
#ifndef AIT_KERNELS_CPU_BLOCK_H_
#define AIT_KERNELS_CPU_BLOCK_H_

#include <stdint.h>
#include <string.h>

#if defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ait/kernels/cpu/vector.h"
#include "ait/kernels/operand.h"
#include "ait/types.h"

namespace ait::cpu {

/// Elements that are staged at once: a few operands of this many floats fit the first-level cache.
inline constexpr int64_t kBlock = 512;

/// Fewer elements than this are not worth waking other threads for.
inline constexpr int64_t kParallelElements = 32768;

// ---- contiguous runs --------------------------------------------------------------------------------------------------------------------

/// @brief out[i] = in[i] in the compute type.
template <class T>
inline void widen(const T* in, int64_t n, compute_t<T>* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<compute_t<T>>(in[i]);
}

/// @brief out[i] = in[i] rounded to nearest even.
template <class T>
inline void narrow(const compute_t<T>* in, int64_t n, T* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(in[i]);
}

template <>
inline void widen<bfloat16>(const bfloat16* in, int64_t n, float* out) {
  const uint16_t* words = reinterpret_cast<const uint16_t*>(in);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = bit_cast<float>(static_cast<uint32_t>(words[i]) << 16);
}

template <>
inline void narrow<bfloat16>(const float* in, int64_t n, bfloat16* out) {
  uint16_t* words = reinterpret_cast<uint16_t*>(out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t b = bit_cast<uint32_t>(in[i]);
    const uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    const uint32_t quieted = (b >> 16) | 0x40u;
    words[i] = static_cast<uint16_t>((b & 0x7fffffffu) > 0x7f800000u ? quieted : rounded);
  }
}

#if defined(__F16C__) && defined(__AVX2__)
template <>
inline void widen<half>(const half* in, int64_t n, float* out) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

template <>
inline void narrow<half>(const float* in, int64_t n, half* out) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i words = _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), words);
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i words = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), words);
  }
  for (; i < n; ++i) out[i] = static_cast<half>(in[i]);
}
#endif

/// @brief A register of neighbouring elements in the compute type.
template <class T>
inline __attribute__((always_inline)) Vector<compute_t<T>> load_vector(const T* from) {
  using A = compute_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    return *reinterpret_cast<const Vector<A>*>(from);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    typedef uint16_t Words __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
    typedef uint32_t Wide __attribute__((vector_size(kVectorBytes)));
    return reinterpret_cast<Vector<A>>(__builtin_convertvector(*reinterpret_cast<const Words*>(from), Wide) << 16);
  } else {
#if defined(__AVX512F__) && defined(__F16C__)
    return reinterpret_cast<Vector<A>>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#elif defined(__F16C__) && defined(__AVX2__)
    return reinterpret_cast<Vector<A>>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
    Vector<A> wide;
    for (int i = 0; i < kLanes<A>; ++i) wide[i] = static_cast<A>(from[i]);
    return wide;
#endif
  }
}

/// @brief `load_vector` of the first `count` elements, fewer than a vector has; the others are zero.
template <class T>
inline __attribute__((always_inline)) Vector<compute_t<T>> load_some(const T* from, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    return reinterpret_cast<Vector<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from));
  }
#endif
  T some[kLanes<compute_t<T>>];
  memset(static_cast<void*>(some), 0, sizeof(some));
  memcpy(static_cast<void*>(some), static_cast<const void*>(from), size_t(count) * sizeof(T));
  return load_vector<T>(some);
}

/// @brief Stores the first `count` elements of a register, fewer than it has.
template <class A>
inline __attribute__((always_inline)) void store_some(Vector<A> from, int64_t count, A* to) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<A, float>) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1u), reinterpret_cast<__m512>(from));
    return;
  }
#endif
  memcpy(static_cast<void*>(to), static_cast<const void*>(&from), size_t(count) * sizeof(A));
}

// ---- blocks of operands -----------------------------------------------------------------------------------------------------------------

/// @brief One value that reads as an array of equal values.
template <class C>
struct Splat {
  C value;
  C operator[](int64_t) const { return value; }
};

/// @brief The block of one input, as something to index: the memory itself where that is possible, else a staged copy.
template <class Op, bool kDirect = Op::kInner == Inner::unit && std::is_same_v<typename Op::Value, typename Op::Compute>,
          bool kSplat = Op::kInner == Inner::zero>
struct InputBlock {
  using C = typename Op::Compute;
  alignas(64) C staged[kBlock];

  const C* load(const typename Op::Value* data, int64_t stride, int64_t n) {
    if constexpr (Op::kInner == Inner::unit) {
      widen(data, n, staged);
    } else {
      for (int64_t i = 0; i < n; ++i) staged[i] = static_cast<C>(data[i * stride]);
    }
    return staged;
  }
};
template <class Op>
struct InputBlock<Op, true, false> {
  const typename Op::Compute* load(const typename Op::Value* data, int64_t, int64_t) { return data; }
};
template <class Op>
struct InputBlock<Op, false, true> {
  Splat<typename Op::Compute> load(const typename Op::Value* data, int64_t, int64_t) {
    return {static_cast<typename Op::Compute>(*data)};
  }
};

/// @brief Where the block of one output is computed, and how it gets to memory.
template <class Op, bool kDirect = Op::kInner == Inner::unit && std::is_same_v<typename Op::Value, typename Op::Compute>>
struct OutputBlock {
  using C = typename Op::Compute;
  alignas(64) C staged[kBlock];

  C* begin(typename Op::Value*) { return staged; }
  void store(typename Op::Value* data, int64_t stride, int64_t n) {
    if constexpr (Op::kInner == Inner::unit) {
      narrow(staged, n, data);
    } else {
      for (int64_t i = 0; i < n; ++i) data[i * stride] = static_cast<typename Op::Value>(staged[i]);
    }
  }
};
template <class Op>
struct OutputBlock<Op, true> {
  typename Op::Compute* begin(typename Op::Value* data) { return data; }
  void store(typename Op::Value*, int64_t, int64_t) {}
};

/// @brief Where the elements of an operand begin at these coordinates of the outer dims.
template <class Op>
inline auto at(const Op& operand, const int64_t* coordinate, int outer_rank) {
  int64_t offset = 0;
  for (int d = 0; d < outer_rank; ++d) offset += coordinate[d] * operand.strides[d];
  return operand.data + offset;
}

/// @brief F on each element of a run: inputs and outputs are anything to index.
template <class F, class... Ins, size_t... I, class... Outs, size_t... O>
inline __attribute__((always_inline)) void apply_run(const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                                                     std::index_sequence<O...>, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) F::apply(get<I>(ins)[i]..., get<O>(outs)[i]...);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_BLOCK_H_
