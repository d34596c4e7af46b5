/// @file gemm_few.h
/// @brief Gemm on the CPU for few rows whose operands are contiguous along k: each element of the result is a dot product.
///
/// Vectors lie along k, so no lane is empty, the weights are read once in the order of memory, and each lane adds only every 16th product:
/// errors are smaller than those of one long sum.
#ifndef AIT_KERNELS_CPU_GEMM_FEW_H_
#define AIT_KERNELS_CPU_GEMM_FEW_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/cpu/vector.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// Rows up to which dot products are used: with more, a strip of rows fills the lanes.
inline constexpr int64_t kDotRows = 4;

namespace detail {

/// Elements of k that are summed in registers before they are added to the rest; narrow types are converted by so many.
inline constexpr int64_t kDotDepth = 512;

/// @brief The sum of the lanes, by halves.
template <class A>
inline A sum_lanes(Vector<A> v) {
  A lanes[kLanes<A>];
  *reinterpret_cast<Vector<A>*>(lanes) = v;
#pragma GCC unroll 8
  for (int half = kLanes<A> / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// @brief sums[r][c] += the dot product of row r of a and column c of b over `depth` elements.
template <class A, int kRows, int kColumns>
inline void dot(const A* const* a, const A* const* b, int64_t depth, A (*sums)[kGemmColumns], int64_t column) {
  using V = Vector<A>;
  constexpr int64_t kStep = kLanes<A>;
  V acc[kRows][kColumns];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) acc[r][c] = V{} * A(0);
  }
  const int64_t whole = depth / kStep * kStep;
  for (int64_t k = 0; k < whole; k += kStep) {
    V x[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) x[r] = *reinterpret_cast<const V*>(a[r] + k);
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      const V y = *reinterpret_cast<const V*>(b[c] + k);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) acc[r][c] += x[r] * y;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      A sum = sum_lanes<A>(acc[r][c]);
      for (int64_t k = whole; k < depth; ++k) sum += a[r][k] * b[c][k];
      sums[r][column + c] += sum;
    }
  }
}

/// @brief The dot product of two runs. Four parts of the second one are summed side by side, so that memory is read in order, from one place.
template <class A>
inline A dot_in_order(const A* a, const A* b, int64_t depth) {
  using V = Vector<A>;
  constexpr int64_t kStep = kLanes<A>;
  constexpr int kParts = 4;
  V acc[kParts] = {};
  int64_t k = 0;
  const auto add = [&](int part, int64_t at) __attribute__((always_inline)) {
    acc[part] += *reinterpret_cast<const V*>(a + at) * *reinterpret_cast<const V*>(b + at);
  };
  for (; k + kParts * kStep <= depth; k += kParts * kStep) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) add(part, k + part * kStep);
  }
  for (; k + kStep <= depth; k += kStep) add(0, k);
  A sum = sum_lanes<A>((acc[0] + acc[1]) + (acc[2] + acc[3]));
  for (; k < depth; ++k) sum += a[k] * b[k];
  return sum;
}

/// @brief sums[r][c] = the dot product of row r of `a` and column c of `b` over `depth` elements, for `count` columns, at most kGemmColumns.
/// @param row elements from one row of `a` to the next; @param col from one column of `b` to the next
template <int kRows, class T>
void dot_products(const T* a, int64_t row, const T* b, int64_t col, int64_t count, int64_t depth, compute_t<T> (*sums)[kGemmColumns]) {
  using A = compute_t<T>;
  constexpr bool kInPlace = std::is_same_v<T, A>;
  constexpr int kColumns = 8 / kRows;
  alignas(64) A rows[kInPlace ? 1 : kRows][kInPlace ? 1 : kDotDepth], columns[kInPlace ? 1 : kColumns][kInPlace ? 1 : kDotDepth];
  for (int r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < count; ++c) sums[r][c] = A(0);
  }
  for (int64_t k = 0; k < depth; k += kDotDepth) {
    const int64_t run = depth - k < kDotDepth ? depth - k : kDotDepth;
    const A *x[kRows], *y[kColumns];
    for (int r = 0; r < kRows; ++r) {
      const T* const from = a + r * row + k;
      if constexpr (kInPlace) {
        x[r] = from;
      } else {
        widen<T>(from, run, rows[r]);
        x[r] = rows[r];
      }
    }
    const auto column = [&](int64_t c, int slot) {
      const T* const from = b + c * col + k;
      if constexpr (kInPlace) {
        y[slot] = from;
      } else {
        widen<T>(from, run, columns[slot]);
        y[slot] = columns[slot];
      }
    };
    int64_t c = 0;
    if constexpr (kRows == 1 && kInPlace) {
      for (; c < count; ++c) sums[0][c] += dot_in_order<A>(x[0], b + c * col + k, run);
    }
    for (; c + kColumns <= count; c += kColumns) {
      for (int i = 0; i < kColumns; ++i) column(c + i, i);
      dot<A, kRows, kColumns>(x, y, run, sums, c);
    }
    for (; c < count; ++c) {
      column(c, 0);
      dot<A, kRows, 1>(x, y, run, sums, c);
    }
  }
}

/// @brief Columns [n0, n1) of `kRows` rows of one batch.
template <int kRows, class F, class T, class D, class... E>
void dot_columns(int64_t o, int64_t bi, int64_t n0, int64_t n1, int64_t depth, const Matrices<const T>& a, const Matrices<const T>& b,
                 const Matrices<D>& d, const Operands<E...>& extra) {
  compute_t<T> sums[kRows][kGemmColumns];
  for (int64_t n = n0; n < n1; n += kGemmColumns) {
    const int64_t count = n1 - n < kGemmColumns ? n1 - n : kGemmColumns;
    dot_products<kRows, T>(a.at(o, bi), a.row, b.at(o, bi) + n * b.col, b.col, count, depth, sums);
    for (int r = 0; r < kRows; ++r) finish_row<F>(extra, d, o, bi, r, n, count, sums[r]);
  }
}

}  // namespace detail

/// @brief As `gemm`, for at most kDotRows rows, with a.col and b.row 1.
template <class F, class T, class D, class... E>
int32_t gemm_few(const GemmShape& shape, const Matrices<const T>& a, const Matrices<const T>& b, const Matrices<D>& d,
                 const Operands<E...>& extra) {
  const int64_t batches = shape.outer * shape.inner;
  const int threads = threads_for(shape.m * shape.n * shape.k * batches);
  // Pieces of columns only where there are fewer batches than threads could use.
  int64_t cuts = threads == 1 || batches >= 4 * threads ? 1 : (4 * threads + batches - 1) / batches;
  int64_t step = (shape.n + cuts - 1) / cuts;
  step = (step + 15) / 16 * 16;
  cuts = (shape.n + step - 1) / step;
  parallel_tasks(batches * cuts, threads, [&](int64_t piece) {
    const int64_t batch = piece / cuts, n0 = piece % cuts * step, n1 = n0 + step < shape.n ? n0 + step : shape.n;
    const int64_t o = batch / shape.inner, i = batch % shape.inner;
    switch (shape.m) {
      case 1: detail::dot_columns<1, F>(o, i, n0, n1, shape.k, a, b, d, extra); break;
      case 2: detail::dot_columns<2, F>(o, i, n0, n1, shape.k, a, b, d, extra); break;
      case 3: detail::dot_columns<3, F>(o, i, n0, n1, shape.k, a, b, d, extra); break;
      default: detail::dot_columns<4, F>(o, i, n0, n1, shape.k, a, b, d, extra); break;
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_FEW_H_
