/// @file gemm_stored.h
/// @brief Products on the CPU with a weight that stays in 4 or 8 bits: each element of the result is a dot product along k, in f32.
///
/// Bytes are widened to vectors of floats in registers, so that the weight is read once, as it is stored. Of packed numbers the lower halves
/// are multiplied by the elements of x at even places and the upper ones by those at odd places, which are parted beforehand.
#ifndef AIT_KERNELS_CPU_GEMM_STORED_H_
#define AIT_KERNELS_CPU_GEMM_STORED_H_

#include <stdint.h>

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

/// @brief As many bytes as a vector has floats.
struct ByteVector {
  typedef uint8_t Bytes __attribute__((vector_size(kLanes<float>), aligned(1), may_alias));
  typedef int32_t Words __attribute__((vector_size(kVectorBytes)));

  /// bytes - origin as floats
  static inline Vector<float> widen(Bytes bytes, int32_t origin) {
    return __builtin_convertvector(__builtin_convertvector(bytes, Words) - origin, Vector<float>);
  }
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

/// @brief Adds to the sums of each row those of `count` bytes, of one group: x (bytes - origin) scale. `at` is the first byte in the piece.
template <int kBits, int kRows>
inline void add_group(const StoredPiece<kBits, kRows>& piece, const uint8_t* bytes, int64_t at, int64_t count, uint8_t flip, int32_t origin,
                      float scale, Vector<float> (&sums)[kRows], float (&rest)[kRows]) {
  using V = Vector<float>;
  constexpr int64_t kStep = kLanes<float>;
  V acc[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) acc[r] = V{} * 0.f;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const ByteVector::Bytes b = *reinterpret_cast<const ByteVector::Bytes*>(bytes + i) ^ flip;
    const V low = ByteVector::widen(kBits == 4 ? ByteVector::Bytes(b & uint8_t(15)) : b, origin);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) acc[r] += *reinterpret_cast<const V*>(piece.x[r] + at + i) * low;
    if constexpr (kBits == 4) {
      const V high = ByteVector::widen(ByteVector::Bytes(b >> 4), origin);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) acc[r] += *reinterpret_cast<const V*>(piece.x[r] + piece.kOdd + at + i) * high;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] += acc[r] * scale;
  for (; i < count; ++i) {
    const int32_t b = bytes[i] ^ flip;
    for (int r = 0; r < kRows; ++r) {
      float sum = piece.x[r][at + i] * float((kBits == 4 ? b & 15 : b) - origin);
      if constexpr (kBits == 4) sum += piece.x[r][piece.kOdd + at + i] * float((b >> 4) - origin);
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
  const uint8_t flip = uint8_t(b.flip());
  for (int64_t n = n0; n < n1; n += kGemmColumns) {
    const int64_t count = n1 - n < kGemmColumns ? n1 - n : kGemmColumns;
    for (auto& row : sums) {
      for (float& sum : row) sum = 0.f;
    }
    for (int64_t k0 = 0; k0 < depth; k0 += kStoredDepth) {
      const int64_t end = depth - k0 < kStoredDepth ? depth : k0 + kStoredDepth;
      piece.fill(a.data + m0 * a.row + k0, a.row, end - k0);
      for (int64_t c = 0; c < count; ++c) {
        const uint8_t* const row = b.data + (n + c) * b.pitch;
        Vector<float> vectors[kRows];
        float rest[kRows] = {};
        for (auto& v : vectors) v = Vector<float>{} * 0.f;
        for (int64_t k = k0; k < end;) {
          const int64_t group = k / b.group, next = (group + 1) * b.group, stop = next < end ? next : end;
          const int64_t first = k / kPerByte, bytes = (stop - k + kPerByte - 1) / kPerByte;
          const float scale = static_cast<float>(b.scale[(n + c) * b.groups + group]);
          add_group<kBits, kRows>(piece, row + first, (k - k0) / kPerByte, bytes, flip, b.origin(n + c, group), scale, vectors, rest);
          k = stop;
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
