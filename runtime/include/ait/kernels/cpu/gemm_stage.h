/// @file gemm_stage.h
/// @brief The register-blocked product of some rows and a panel, on the vector unit.
#ifndef AIT_KERNELS_CPU_GEMM_STAGE_H_
#define AIT_KERNELS_CPU_GEMM_STAGE_H_

#include <stdint.h>

#include <atomic>

#include "ait/kernels/cpu/gemm.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/pairs.h"
#include "ait/panels.h"

namespace ait::cpu::detail {

/// Vectors of a panel, and rows of `a` whose results fill the registers beside them.
inline constexpr int kPanelVectors = int(kPanelBytes) / kVectorBytes;
inline constexpr int kPanelRows = kVectorBytes == 64 ? 8 : (kVectorBytes == 32 ? 2 : 1);

/// Products that are summed in registers before the next block of k: errors grow with it, and so does the room for a block in the cache.
inline constexpr int64_t kPanelDepth = 192;

/// The same for at most kPanelFew rows, for which other libraries sum along the vectors, in as many parts as these have elements, and
/// are that much more precise. The weights come from memory then, and the extra sums hide behind that.
inline constexpr int64_t kPanelShort = 32, kPanelFew = 16;

/// Rows of results that are staged together: they and a block of the panel fit the first-level cache.
inline constexpr int64_t kPanelStage = 64;

/// Rows of `a` that one task walks over at most: each task reads its panel from memory once, and then from the second-level cache.
inline constexpr int64_t kPanelTask = 256;

/// Bytes of those rows, which stay in the second-level cache from panel to panel.
inline constexpr int64_t kPanelRowsBytes = 800 * 1024;

/// The fewest rows into which rows are cut to give threads work.
inline constexpr int64_t kPanelLeast = 32;

/// @brief The tasks that so many multiplications are cut into: several for each thread, which end together though some tasks are larger than others,
/// but none that takes less time than a thread needs to find it.
inline int64_t tasks_for(int64_t products, int threads) {
  constexpr int64_t kTasksOfThread = 8, kLeastProducts = 32768;
  if (threads == 1) return 1;
  const int64_t most = products / kLeastProducts;
  return most < kTasksOfThread * threads ? most : kTasksOfThread * threads;
}

/// @brief Rows in pieces of about the same size, a multiple of kPanelRows: of at most `most` rows, and at least `wanted` pieces where these have
/// `least` rows or more.
struct RowPieces {
  int64_t size, count;

  RowPieces(int64_t rows, int64_t most, int64_t least, int64_t wanted) {
    const int64_t fewest = (rows + most - 1) / most, highest = (rows + least - 1) / least;
    int64_t pieces = wanted < highest ? wanted : highest;
    if (pieces < fewest) pieces = fewest;
    size = ((rows + pieces - 1) / pieces + kPanelRows - 1) / kPanelRows * kPanelRows;
    count = (rows + size - 1) / size;
  }
};

/// @brief Units of columns in cuts: at least `wanted` cuts where there are as many units.
struct ColumnCuts {
  int64_t share, cuts;  ///< units of a cut, and cuts

  ColumnCuts(int64_t units, int64_t wanted) {
    if (wanted > units) wanted = units;
    share = (units + wanted - 1) / wanted;
    cuts = (units + share - 1) / share;
  }
};

/// Steps of k that are written out one after another.
inline constexpr int kPanelUnroll = 4;

/// A number that no other call has.
inline int64_t panel_call() {
  static std::atomic<int64_t> calls{0};
  return calls.fetch_add(1, std::memory_order_relaxed);
}

/// @brief out[r][c] = sum over k of a[r][k] * panel[k][c] for kRows rows and the first kVectors vectors of columns of one panel; with `add`, on top of `out`.
/// @tparam P the type of the panel's elements, which are widened as they are loaded, or pairs @tparam R of a row's: A, or pairs
/// @param row elements from one row of `a` to the next; @param depth elements of a row; @param next what to fetch into the second-level cache, `step` bytes for each k
template <class P, int kRows, int kVectors = kPanelVectors, class R, class A>
void multiply_panel(const R* a, int64_t row, const P* panel, int64_t depth, bool add, A* out, const char* next, int64_t step) {
  using V = Vector<A>;
  constexpr int64_t kColumns = kPanelColumns<A>;
  V acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) acc[r][v] = V{};
  }
  const R* low = a;  // rows 0..3 hang on one pointer, rows 4..7 on the other
  const R* high = a + 4 * row;
  const int64_t row3 = 3 * row;
  const auto multiply = [&](int64_t u) __attribute__((always_inline)) {
    decltype(load_line<P>(panel)) x[kVectors];
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) x[v] = load_line<P>(panel + u * kColumns + v * kLanes<A>);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const R* base = r < 4 ? low : high;
      const R y = (r % 4 == 3 ? base + row3 : base + r % 4 * row)[u];
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) add_product(acc[r][v], x[v], y);
    }
  };
  int64_t k = 0;
  // Additions to pointers would share ports with the products: one for several steps.
#pragma GCC unroll 1
  for (; k + kPanelUnroll <= depth; k += kPanelUnroll) {
#pragma GCC unroll 4
    for (int u = 0; u < kPanelUnroll; ++u) multiply(u);
    for (int64_t at = 0; at < kPanelUnroll * step; at += 64) __builtin_prefetch(next + at, 0, 2);
    next += kPanelUnroll * step;
    low += kPanelUnroll, high += kPanelUnroll, panel += kPanelUnroll * kColumns;
  }
#pragma GCC unroll 1
  for (; k < depth; ++k) {
    multiply(0);
    ++low, ++high, panel += kColumns;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      V& to = *reinterpret_cast<V*>(out + r * kColumns + v * kLanes<A>);
      to = add ? to + acc[r][v] : acc[r][v];
    }
  }
}

/// `multiply_panel` for `rows` rows, at most kPanelRows. Of all vectors of a panel at least the first `columns` columns are computed.
template <class P, int kRows = kPanelRows, class R, class A>
inline void multiply_rows(int rows, int64_t columns, const R* a, int64_t row, const P* panel, int64_t depth, bool add, A* out, const char* next,
                          int64_t step) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<P, kRows - 1>(rows, columns, a, row, panel, depth, add, out, next, step);
  }
  if constexpr (kRows == kPanelRows) {
    constexpr int64_t kThird = kPanelColumns<A> / 3;
    constexpr int kVectors = kPanelVectors / 3;
    if (columns <= kThird) return multiply_panel<P, kRows, kVectors>(a, row, panel, depth, add, out, next, step);
    if (columns <= 2 * kThird) return multiply_panel<P, kRows, 2 * kVectors>(a, row, panel, depth, add, out, next, step);
  }
  multiply_panel<P, kRows>(a, row, panel, depth, add, out, next, step);
}

/// Memory of a task for `gemm_stage`: results, and a block of the panel in the compute type.
template <class T>
inline constexpr int64_t kStageBytes = (kPanelStage + (is_narrow_float<T> ? kPanelDepth : 0)) * kPanelBytes;

/// Rows [m0, m1), at most kPanelStage, by the panel that begins at column `n0`, of one batch.
///
/// A block of a panel of 2-byte elements is widened once for all rows, where there is more than one tile of them: the conversions would
/// take the products' ports otherwise. Where rows are pairs, the lines of a block are joined by twos.
/// @param after the panel that this thread will likely work on next; @param staged kStageBytes
template <class F, class T, class R, class A, class... E>
void gemm_stage(const GemmShape& shape, int64_t o, int64_t i, int64_t m0, int64_t m1, int64_t n0, const Matrices<const R>& a, const T* panel,
                const T* after, const Matrices<T>& d, const Operands<E...>& extra, A* staged) {
  constexpr bool kPairs = std::is_same_v<R, Pair>;
  constexpr int64_t kColumns = kPanelColumns<T>, kLineBytes = kColumns * int64_t(sizeof(T));
  const int64_t columns = shape.n - n0 < kColumns ? shape.n - n0 : kColumns;
  const int64_t tiles = (m1 - m0 + kPanelRows - 1) / kPanelRows;
  const int64_t step = (kLineBytes + tiles - 1) / tiles;
  const R* const first = a.at(o, i) + m0 * a.row;
  [[maybe_unused]] A* const widened = staged + kPanelStage * kColumns;
  const int64_t most = shape.m <= kPanelFew ? kPanelShort : kPanelDepth;
  int64_t k = 0;
  do {
    const int64_t depth = shape.k - k < most ? shape.k - k : most;
    const T* const block = panel + k * kColumns;
    const bool last = k + depth == shape.k;
    const char* const next = reinterpret_cast<const char*>(last ? after : block + depth * kColumns);
    bool widens = false;
    if constexpr (kPairs) {
      pair_lines(block, depth, kColumns, reinterpret_cast<Pair*>(widened));
    } else if constexpr (is_narrow_float<T>) {
      widens = tiles > 1;
      if (widens) widen<T>(block, depth * kColumns, widened);
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t m = tile * kPanelRows;
      const int rows = int(m1 - m0 - m < kPanelRows ? m1 - m0 - m : kPanelRows);
      A* const out = staged + m * kColumns;
      for (int r = 0; last && r < rows; ++r) {
        const char* const to = reinterpret_cast<const char*>(d.at(o, i) + (m0 + m + r) * d.row + n0 * d.col);
        for (int64_t at = 0; at < columns * int64_t(sizeof(T)); at += 64) __builtin_prefetch(to + at, 1, 3);
        extra.fetch(o, i, m0 + m + r, n0, columns);
      }
      const char* const fetched = next + tile * depth * step;
      if constexpr (kPairs) {
        multiply_rows<Pair>(rows, columns, first + m * a.row + k / 2, a.row, reinterpret_cast<const Pair*>(widened), (depth + 1) / 2, k > 0, out, fetched,
                            2 * step);
      } else if (widens) {
        multiply_rows<A>(rows, columns, first + m * a.row + k, a.row, widened, depth, k > 0, out, fetched, step);
      } else {
        multiply_rows<T>(rows, columns, first + m * a.row + k, a.row, block, depth, k > 0, out, fetched, step);
      }
      if (last) finish_rows<F>(extra, d, o, i, m0 + m, rows, n0, columns, out, kColumns);
    }
    k += depth;
  } while (k < shape.k);
}

}  // namespace ait::cpu::detail
#endif  // AIT_KERNELS_CPU_GEMM_STAGE_H_
