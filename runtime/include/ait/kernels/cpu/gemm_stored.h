/// @file gemm_stored.h
/// @brief Products on the CPU with a weight that stays in 4 or 8 bits: each element of the result is a dot product along k, in f32.
///
/// Bytes are widened to vectors of floats in registers, so that the weight is read once, as it is stored. Of packed numbers the lower halves
/// are multiplied by the elements of x at even places and the upper ones by those at odd places, which are parted beforehand.
#ifndef AIT_KERNELS_CPU_GEMM_STORED_H_
#define AIT_KERNELS_CPU_GEMM_STORED_H_

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/gemm_few.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/cpu/vector.h"
#include "ait/kernels/stored.h"
#include "ait/parallel.h"

namespace ait::cpu {
namespace detail {

/// Rows of x that are multiplied with what is read of the weight at once.
inline constexpr int kStoredRows = 4;
/// Elements of k of which x is converted at once.
inline constexpr int64_t kStoredDepth = 1024;

typedef int32_t WordVector __attribute__((vector_size(kVectorBytes)));

/// @brief As many bytes as a vector has floats, as integers.
inline WordVector load_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<WordVector>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  return reinterpret_cast<WordVector>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  WordVector words;
  for (int i = 0; i < kLanes<float>; ++i) words[i] = from[i];
  return words;
#endif
}

/// @brief The values of the numbers of a group before the scale: (bits ^ flip) - origin. For 4 bits AVX-512 looks them up in a register.
template <int kBits>
struct StoredValues {
  static constexpr int32_t kMask = (1 << kBits) - 1;
  int32_t flip, origin;
#if defined(__AVX512F__)
  __m512 table;
#endif

  StoredValues(int32_t flip_of_byte, int32_t origin_of_group) : flip(flip_of_byte & kMask), origin(origin_of_group) {
#if defined(__AVX512F__)
    const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    table = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_xor_si512(places, _mm512_set1_epi32(flip)), _mm512_set1_epi32(origin)));
#endif
  }

  /// @param bits the number is in the lowest ones; of 4 bits others may stand above
  inline Vector<float> operator()(WordVector bits) const {
#if defined(__AVX512F__)
    if constexpr (kBits == 4) {
      return reinterpret_cast<Vector<float>>(_mm512_permutexvar_ps(reinterpret_cast<__m512i>(bits), table));
    }
#endif
    return __builtin_convertvector(((bits & kMask) ^ flip) - origin, Vector<float>);
  }
  inline float operator()(int32_t bits) const { return float(((bits & kMask) ^ flip) - origin); }
};

/// @brief The bytes of a group in a part of a row.
struct StoredSegment {
  int32_t first, count;
  int64_t group;
};

/// @brief Parts of rows of x in f32: of numbers of 4 bits first those at even places, then those at odd places.
template <int kBits, int kRows>
struct StoredPiece {
  alignas(64) float x[kRows][kStoredDepth];
  static constexpr int64_t kOdd = kStoredDepth / 2;

  template <class T>
  void fill(const T* from, int64_t row, int64_t depth) {
    alignas(64) float wide[kBits == 4 ? kStoredDepth : 1];
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kBits == 8) {
        widen<T>(from + r * row, depth, x[r]);
      } else {
        widen<T>(from + r * row, depth, wide);
        if (depth % 2 == 1) x[r][kOdd + depth / 2] = 0.f;
        for (int64_t k = 0; k < depth / 2; ++k) {
          x[r][k] = wide[2 * k];
          x[r][kOdd + k] = wide[2 * k + 1];
        }
        if (depth % 2 == 1) x[r][depth / 2] = wide[depth - 1];
      }
    }
  }
};

/// @brief Adds to the sums of each row those of the bytes of a group.
template <int kBits, int kRows>
inline void add_group(const StoredPiece<kBits, kRows>& piece, const uint8_t* row, const StoredSegment& part, const StoredValues<kBits>& values,
                      float scale, Vector<float> (&sums)[kRows], float (&rest)[kRows]) {
  using V = Vector<float>;
  constexpr int kStep = kLanes<float>;
  V low[kRows], high[kBits == 4 ? kRows : 1];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) low[r] = V{} * 0.f;
  if constexpr (kBits == 4) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) high[r] = V{} * 0.f;
  }
  int32_t i = part.first;
  const int32_t end = part.first + part.count;
  for (; i + kStep <= end; i += kStep) {
    const WordVector bits = load_bytes(row + i);
    const V w = values(bits);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) low[r] += *reinterpret_cast<const V*>(piece.x[r] + i) * w;
    if constexpr (kBits == 4) {
      const V v = values(bits >> 4);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) high[r] += *reinterpret_cast<const V*>(piece.x[r] + piece.kOdd + i) * v;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    if constexpr (kBits == 4) low[r] += high[r];
    sums[r] += low[r] * scale;
  }
  for (; i < end; ++i) {
    for (int r = 0; r < kRows; ++r) {
      float sum = piece.x[r][i] * values(int32_t(row[i]));
      if constexpr (kBits == 4) sum += piece.x[r][piece.kOdd + i] * values(int32_t(row[i]) >> 4);
      rest[r] += sum * scale;
    }
  }
}

/// @brief Columns [n0, n1) of `kRows` rows of x from row m0 on.
template <int kRows, class F, class T, class Stored, class D, class... E>
void stored_columns(int64_t m0, int64_t n0, int64_t n1, int64_t depth, const Matrices<const T>& a, const Stored& b, const Matrices<D>& d,
                    const Operands<E...>& extra) {
  constexpr int kBits = Stored::kBits;
  constexpr int64_t kPerByte = 8 / kBits;
  StoredPiece<kBits, kRows> piece;
  float sums[kRows][kGemmColumns];
  StoredSegment parts[kStoredDepth];
  const int32_t flip = int32_t(b.flip() & 255u);
  for (int64_t n = n0; n < n1; n += kGemmColumns) {
    const int64_t count = n1 - n < kGemmColumns ? n1 - n : kGemmColumns;
    for (auto& row : sums) {
      for (float& sum : row) sum = 0.f;
    }
    for (int64_t k0 = 0; k0 < depth; k0 += kStoredDepth) {
      const int64_t end = depth - k0 < kStoredDepth ? depth : k0 + kStoredDepth;
      piece.fill(a.data + m0 * a.row + k0, a.row, end - k0);
      int segments = 0;
      for (int64_t k = k0, group = k0 / b.group; k < end; ++group) {
        const int64_t next = (group + 1) * b.group, stop = next < end ? next : end;
        parts[segments++] = {int32_t((k - k0) / kPerByte), int32_t((stop - k + kPerByte - 1) / kPerByte), group};
        k = stop;
      }
      for (int64_t c = 0; c < count; ++c) {
        const uint8_t* const row = b.data + (n + c) * b.pitch + k0 / kPerByte;
        Vector<float> vectors[kRows];
        float rest[kRows] = {};
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) vectors[r] = Vector<float>{} * 0.f;
        for (int i = 0; i < segments; ++i) {
          const int64_t group = parts[i].group;
          const StoredValues<kBits> values(flip, b.origin(n + c, group));
          add_group<kBits, kRows>(piece, row, parts[i], values, static_cast<float>(b.scale[(n + c) * b.groups + group]), vectors, rest);
        }
        for (int r = 0; r < kRows; ++r) sums[r][c] += sum_lanes<float>(vectors[r]) + rest[r];
      }
    }
    for (int r = 0; r < kRows; ++r) finish_row<F>(extra, d, 0, 0, m0 + r, n, count, sums[r]);
  }
}

}  // namespace detail

/// @brief d = epilogue(a @ b^T) for a stored b; a is contiguous along k.
template <class F, class T, class Stored, class D, class... E>
int32_t gemm_stored(const Context&, const GemmShape& shape, const Matrices<const T>& a, const Stored& b, const Matrices<D>& d,
                    const Operands<E...>& extra) {
  if (shape.m == 0 || shape.n == 0) return 0;
  const int threads = threads_for(shape.m * shape.n * shape.k);
  const int64_t cuts = threads == 1 ? 1 : 4 * threads;
  const int64_t step = ((shape.n + cuts - 1) / cuts + 15) / 16 * 16;
  parallel_tasks((shape.n + step - 1) / step, threads, [&](int64_t piece) {
    const int64_t n0 = piece * step, n1 = n0 + step < shape.n ? n0 + step : shape.n;
    int64_t m = 0;
    for (; m + detail::kStoredRows <= shape.m; m += detail::kStoredRows) {
      detail::stored_columns<detail::kStoredRows, F>(m, n0, n1, shape.k, a, b, d, extra);
    }
    switch (shape.m - m) {
      case 3: detail::stored_columns<3, F>(m, n0, n1, shape.k, a, b, d, extra); break;
      case 2: detail::stored_columns<2, F>(m, n0, n1, shape.k, a, b, d, extra); break;
      case 1: detail::stored_columns<1, F>(m, n0, n1, shape.k, a, b, d, extra); break;
      default: break;
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_STORED_H_
