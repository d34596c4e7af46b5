/// @file gemm_block.h
/// @brief The inner part of the CPU gemm: packing, the register-blocked product, and the epilogue over a block of results.
#ifndef AIT_KERNELS_CPU_GEMM_BLOCK_H_
#define AIT_KERNELS_CPU_GEMM_BLOCK_H_

#include <stdint.h>
#include <string.h>

#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/transpose.h"
#include "ait/kernels/cpu/vector.h"
#include "ait/kernels/further.h"
#include "ait/types.h"

namespace ait::cpu {

/// @brief A batch of matrices. Element (i, j) of batch (o, b) is `data[o * outer + b * inner + i * row + j * col]`; a stride of 0 broadcasts.
template <class T>
struct Matrices {
  T* data;
  int64_t row, col;
  int64_t outer = 0, inner = 0;

  T* at(int64_t o, int64_t b) const { return data + o * outer + b * inner; }
};

/// The result as the accumulator: an epilogue that does nothing.
struct NoEpilogue {
  template <class A, class O>
  static AIT_FN void apply(A acc, O& out) {
    out = static_cast<O>(acc);
  }
};

// ---- registers --------------------------------------------------------------------------------------------------------------------------

/// @brief Rows of `a` that one packed strip holds, for `kVectors` vectors.
template <class A, int kVectors>
inline constexpr int kStrip = kVectors * kLanes<A>;

/// Columns of the result that are finished together: the accumulators of a strip of them stay in the first-level cache.
inline constexpr int kGemmColumns = 8 * kGemmRows;

/// Products that are summed in one run before they are added to the rest: errors grow with the length of a run.
inline constexpr int64_t kGemmDepth = 256;

/// A smaller group of rows, for what is left.
inline constexpr int kFewRows = kGemmRows > 8 ? 8 : kGemmRows;

/// @brief to[k][m] = a[m][k] for one strip of `rows` rows, the rest zero.
template <class T, class A>
inline void pack_strip(const T* a, int64_t row, int64_t col, int64_t rows, int64_t depth, int strip, A* to) {
  if (rows < strip) memset(static_cast<void*>(to), 0, size_t(depth) * size_t(strip) * sizeof(A));
  if (row == 1) {
    for (int64_t k = 0; k < depth; ++k) widen<T>(a + k * col, rows, to + k * strip);
    return;
  }
  // Blocks of lanes by lanes are transposed in registers, what is left element by element.
  constexpr int64_t kStep = kLanes<A>;
  const int64_t whole = col == 1 ? rows / kStep * kStep : 0;
  A piece[kStep];
  for (int64_t k0 = 0; k0 < depth; k0 += kStep) {
    const int64_t count = depth - k0 < kStep ? depth - k0 : kStep;
    int64_t m = 0;
    for (; m < whole; m += kStep) {
      Vector<A> block[kStep];
#pragma GCC unroll 16
      for (int i = 0; i < kStep; ++i) {
        const T* const from = a + (m + i) * row + k0;
        block[i] = count == kStep ? load_vector<T>(from) : load_some<T>(from, count);
      }
      transpose<A>(block);
#pragma GCC unroll 16
      for (int i = 0; i < kStep; ++i) {
        if (i < count) *reinterpret_cast<Vector<A>*>(to + (k0 + i) * strip + m) = block[i];
      }
    }
    for (; m < rows; ++m) {
      const T* from = a + m * row + k0 * col;
      if (col == 1) {
        widen<T>(from, count, piece);
      } else {
        for (int64_t k = 0; k < count; ++k) piece[k] = static_cast<A>(from[k * col]);
      }
      A* at = to + k0 * strip + m;
      for (int64_t k = 0; k < count; ++k) at[k * strip] = piece[k];
    }
  }
}

/// @brief out[m * pitch + n] = sum over k of packed[k][m] * b[n][k], for one strip of m and kGemmRows values of n.
/// Each b element is broadcast, so b is read where it lies. Of the n, the last `kGemmRows - count` repeat the last valid one and are not kept.
/// With `add` the products are added to what stands in `out`. With `kPackedOut` the result is packed like its operand: out[n * pitch + m].
/// @tparam kCount values of n that are worked on: kGemmRows, or kFewRows where those are enough
/// @param pitch_b bytes from one n to the next; @param step_b bytes from one k to the next
template <class A, int kVectors, bool kUnitStep, bool kPackedOut = false, int kCount = kGemmRows>
inline void multiply_strip(const A* packed, const A* b, int64_t pitch_b, int64_t step_b, int64_t depth, int count, bool add, A* out,
                           int64_t pitch) {
  using V = Vector<A>;
  constexpr int kStripOf = kStrip<A, kVectors>;
  if constexpr (kCount > kFewRows) {
    if (count <= kFewRows) {
      multiply_strip<A, kVectors, kUnitStep, kPackedOut, kFewRows>(packed, b, pitch_b, step_b, depth, count, add, out, pitch);
      return;
    }
  }
  V acc[kCount][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[i][v] = V{} * A(0);
  }
  const int64_t step = kUnitStep ? int64_t(sizeof(A)) : step_b;
  const char* p = reinterpret_cast<const char*>(b);
  if (count == kCount) {
    // Rows 0..4, 5..9, 10..13 hang on three pointers, so that an address is a pointer and a scaled register.
    const char* q = p + 5 * pitch_b;
    const char* r = p + 10 * pitch_b;
    const int64_t pitch3 = 3 * pitch_b;
    for (int64_t k = 0; k < depth; ++k) {
      V x[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) x[v] = *reinterpret_cast<const V*>(packed + k * kStripOf + v * kLanes<A>);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        const char* base = i < 5 ? p : (i < 10 ? q : r);
        const int j = i % 5;
        const char* at = j == 3 ? base + pitch3 : base + j * pitch_b;
        const A y = *reinterpret_cast<const A*>(at);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) acc[i][v] += x[v] * y;
      }
      p += step, q += step, r += step;
    }
  } else {
    const char* rows[kCount];
    for (int i = 0; i < kCount; ++i) rows[i] = p + (i < count ? i : count - 1) * pitch_b;
    for (int64_t k = 0; k < depth; ++k) {
      V x[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) x[v] = *reinterpret_cast<const V*>(packed + k * kStripOf + v * kLanes<A>);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        const A y = *reinterpret_cast<const A*>(rows[i] + k * step);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) acc[i][v] += x[v] * y;
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      if (i >= count) continue;
      if constexpr (kPackedOut) {
        V& to = *reinterpret_cast<V*>(out + i * pitch + v * kLanes<A>);
        to = add ? to + acc[i][v] : acc[i][v];
        continue;
      }
      for (int lane = 0; lane < kLanes<A>; ++lane) {
        A& to = out[(v * kLanes<A> + lane) * pitch + i];
        to = add ? to + acc[i][v][lane] : acc[i][v][lane];
      }
    }
  }
}

// ---- epilogue ---------------------------------------------------------------------------------------------------------------------------

/// @brief Writes a run of results, rounded once.
template <class D>
inline void store_run(const compute_t<D>* from, int64_t count, D* to, int64_t step) {
  if (step == 1) {
    narrow<D>(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * step] = static_cast<D>(from[i]);
  }
}

/// @brief Extra operands of an epilogue, then its further results. `run` finishes `count` neighbouring columns of a row, at most kGemmColumns
/// of them. `run_line` does the same for kCount columns, where all columns that are read and written are contiguous: the compiler knows the
/// number, and makes an instruction or two of each step.
template <class... E>
struct Operands {
  bool are_lines() const { return true; }
  /// Fetches columns [col, col + count) of a row of the operands, unless they are the same in all rows.
  __attribute__((always_inline)) void fetch(int64_t, int64_t, int64_t, int64_t, int64_t) const {}

  template <class F, int kCount, class A, class O, class... Loaded>
  __attribute__((always_inline)) void run_line(int64_t outer, int64_t inner, int64_t row, int64_t col, const A* acc, O* out,
                                               const Loaded*... loaded) const {
    finish_line<F, kCount>(outer, inner, row, col, acc, loaded..., out);
  }
  template <class F, int kCount, class... Columns>
  __attribute__((always_inline)) void finish_line(int64_t, int64_t, int64_t, int64_t, Columns*... columns) const {
#pragma omp simd
    for (int i = 0; i < kCount; ++i) F::apply(columns[i]...);
  }

  template <class F, class A, class O, class... Loaded>
  void run(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count, const A* acc, O* out, const Loaded*... loaded) const {
    finish<F>(outer, inner, row, col, count, acc, loaded..., out);
  }

  /// Runs F on columns of the accumulator, the operands and all results.
  template <class F, class... Columns>
  void finish(int64_t, int64_t, int64_t, int64_t, int64_t count, Columns*... columns) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) F::apply(columns[i]...);
  }
};

template <class E, class... Rest>
struct Operands<E, Rest...> {
  Matrices<const E> first;
  Operands<Rest...> rest;

  bool are_lines() const { return first.col == 1 && rest.are_lines(); }
  __attribute__((always_inline)) void fetch(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count) const {
    if (first.row != 0 && first.col == 1) {
      const char* const from = reinterpret_cast<const char*>(first.at(outer, inner) + row * first.row + col);
      for (int64_t at = 0; at < count * int64_t(sizeof(E)); at += 64) __builtin_prefetch(from + at, 0, 3);
    }
    rest.fetch(outer, inner, row, col, count);
  }

  template <class F, int kCount, class A, class O, class... Loaded>
  __attribute__((always_inline)) void run_line(int64_t outer, int64_t inner, int64_t row, int64_t col, const A* acc, O* out,
                                               const Loaded*... loaded) const {
    const E* const from = first.at(outer, inner) + row * first.row + col;
    if constexpr (std::is_same_v<compute_t<E>, E>) {
      rest.template run_line<F, kCount>(outer, inner, row, col, acc, out, loaded..., from);
    } else {
      compute_t<E> values[kCount];
      widen<E>(from, kCount, values);
      rest.template run_line<F, kCount>(outer, inner, row, col, acc, out, loaded..., static_cast<const compute_t<E>*>(values));
    }
  }

  template <class F, class A, class O, class... Loaded>
  void run(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count, const A* acc, O* out, const Loaded*... loaded) const {
    using V = compute_t<E>;
    V values[kGemmColumns];
    const E* from = first.at(outer, inner) + row * first.row + col * first.col;
    const V* at = values;
    if constexpr (std::is_same_v<V, E>) {
      if (first.col == 1) at = from;
    }
    if (at == values) {
      if (first.col == 1) {
        widen<E>(from, count, values);
      } else if (first.col == 0) {
        const V value = static_cast<V>(*from);
        for (int64_t i = 0; i < count; ++i) values[i] = value;
      } else {
        for (int64_t i = 0; i < count; ++i) values[i] = static_cast<V>(from[i * first.col]);
      }
    }
    rest.template run<F>(outer, inner, row, col, count, acc, out, loaded..., at);
  }
};

template <class D, class... Rest>
struct Operands<Further<D>, Rest...> {
  Matrices<D> first;
  Operands<Rest...> rest;

  bool are_lines() const { return first.col == 1 && rest.are_lines(); }
  __attribute__((always_inline)) void fetch(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count) const {
    rest.fetch(outer, inner, row, col, count);
  }

  template <class F, int kCount, class A, class O, class... Loaded>
  __attribute__((always_inline)) void run_line(int64_t outer, int64_t inner, int64_t row, int64_t col, const A* acc, O* out,
                                               const Loaded*... loaded) const {
    finish_line<F, kCount>(outer, inner, row, col, acc, loaded..., out);
  }
  template <class F, int kCount, class... Columns>
  __attribute__((always_inline)) void finish_line(int64_t outer, int64_t inner, int64_t row, int64_t col, Columns*... columns) const {
    compute_t<D> values[kCount];
    rest.template finish_line<F, kCount>(outer, inner, row, col, columns..., values);
    narrow<D>(values, kCount, first.at(outer, inner) + row * first.row + col);
  }

  template <class F, class A, class O, class... Loaded>
  void run(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count, const A* acc, O* out, const Loaded*... loaded) const {
    finish<F>(outer, inner, row, col, count, acc, loaded..., out);
  }

  template <class F, class... Columns>
  void finish(int64_t outer, int64_t inner, int64_t row, int64_t col, int64_t count, Columns*... columns) const {
    compute_t<D> values[kGemmColumns];
    rest.template finish<F>(outer, inner, row, col, count, columns..., values);
    store_run<D>(values, count, first.at(outer, inner) + row * first.row + col * first.col, first.col);
  }
};

/// @brief Gathers the extra operands of an epilogue, in the order of the region's arguments, and the further results, of which the elements are
/// not const.
inline Operands<> operands() { return {}; }

template <class T, class... Rest>
inline Operands<typename OperandOf<T>::Type, typename OperandOf<Rest>::Type...> operands(Matrices<T> first, Matrices<Rest>... rest) {
  return {first, operands(rest...)};
}

/// @brief Finishes `count` columns of `rows` rows, which lie `pitch` elements apart in `acc`, and stores them, rounded once.
template <class F, class A, class D, class... E>
__attribute__((noinline)) void finish_rows(const Operands<E...>& operands, const Matrices<D>& results, int64_t o, int64_t b, int64_t row, int64_t rows,
                                           int64_t col, int64_t count, const A* acc, int64_t pitch) {
  using O = compute_t<D>;
  constexpr int64_t kLine = kLanes<A>;
  const Operands<E...> extra = operands;  // of its own, so that its numbers stay in registers
  const Matrices<D> d = results;
  const int64_t whole = d.col == 1 && extra.are_lines() ? count / kLine * kLine : 0;
  D* to = d.at(o, b) + row * d.row + col * d.col;
  for (const int64_t end = row + rows; row < end; ++row, to += d.row, acc += pitch) {
#pragma GCC unroll 1
    for (int64_t c = 0; c < whole; c += kLine) {
      if constexpr (std::is_same_v<O, D>) {
        extra.template run_line<F, kLine>(o, b, row, col + c, acc + c, to + c);
      } else {
        O values[kLine];
        extra.template run_line<F, kLine>(o, b, row, col + c, acc + c, values);
        narrow<D>(values, kLine, to + c);
      }
    }
    if (whole == count) continue;
    if constexpr (std::is_same_v<O, D>) {
      if (d.col == 1) {
        extra.template run<F>(o, b, row, col + whole, count - whole, acc + whole, to + whole);
        continue;
      }
    }
    O values[kGemmColumns];
    extra.template run<F>(o, b, row, col + whole, count - whole, acc + whole, values);
    store_run<D>(values, count - whole, to + whole * d.col, d.col);
  }
}

/// @brief `finish_rows` of one row.
template <class F, class A, class D, class... E>
inline void finish_row(const Operands<E...>& extra, const Matrices<D>& d, int64_t o, int64_t b, int64_t row, int64_t col, int64_t count,
                       const A* acc) {
  finish_rows<F>(extra, d, o, b, row, 1, col, count, acc, 0);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_BLOCK_H_
