/// @file attention.h
/// @brief softmax(changed(q @ k^T * scale)) @ v on the CPU, or the same without the softmax, a tile of scores at a time.
///
/// Some rows of q of one head at a time walk over tiles of k and v with a running maximum and sum per row (after FlashAttention, Dao et al.,
/// 2022). Both products are the register-blocked one of the gemm.
#ifndef AIT_KERNELS_CPU_ATTENTION_H_
#define AIT_KERNELS_CPU_ATTENTION_H_

#include <math.h>
#include <stdint.h>

#include <tuple>

#include "ait/context.h"
#include "ait/kernels/attention_scores.h"
#include "ait/kernels/attention_window.h"
#include "ait/kernels/cpu/gemm.h"
#include "ait/math.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief A [batch, head, row, column] tensor whose columns are contiguous.
template <class T>
struct Heads {
  T* data;
  int64_t batch, head, row;
};

/// @brief An operand of the functor that changes scores: [batch, head, row, column], where a stride of 0 broadcasts.
/// @tparam kRows_ whether the elements of different rows differ
template <class E, bool kRows_, ScoreColumns>
struct ScoreOperand {
  static constexpr bool kRows = kRows_;
  const E* data;
  int64_t batch, head, row, col;

  /// @brief The operand of a tile: the operand from a place on.
  ScoreOperand from(int64_t at_batch, int64_t at_head, int64_t at_row, int64_t at_col) const {
    return {data + at_batch * batch + at_head * head + at_row * row + at_col * col, batch, head, row, col};
  }
};

/// @brief Scores that are only scaled.
struct PlainScores {
  static constexpr bool kSoftmax = true;
  PlainScores from(int64_t, int64_t, int64_t, int64_t) const { return {}; }
  template <int64_t kRows, class A>
  void change(A*, int64_t, int64_t) const {}
};

namespace detail {

/// @brief The elements of an operand in one column, of the rows of a tile.
template <int64_t kRows, class A, class O>
struct ScoreColumn;
template <int64_t kRows, class A, class E, bool kVaries, ScoreColumns kColumns>
struct ScoreColumn<kRows, A, ScoreOperand<E, kVaries, kColumns>> {
  compute_t<E> elements[kVaries ? kRows : 1];

  ScoreColumn(const ScoreOperand<E, kVaries, kColumns>& x, int64_t col, int64_t rows) {
    for (int64_t r = 0; r < (kVaries ? kRows : 1); ++r) elements[r] = static_cast<compute_t<E>>(x.data[(r < rows ? r : 0) * x.row + col * x.col]);
  }
  compute_t<E> of(int64_t row) const { return elements[kVaries ? row : 0]; }
};

/// @brief Applies a functor to a column of scores.
template <class F, int64_t kRows, class A, class... Columns>
inline void change_column(A* line, const Columns&... columns) {
#pragma omp simd
  for (int64_t r = 0; r < kRows; ++r) {
    A out;
    F::apply(line[r], columns.of(r)..., out);
    line[r] = out;
  }
}

}  // namespace detail

/// @brief Scores that a functor changes. @tparam F `apply(score, elements..., result&)`
template <class F, class... O>
struct ChangedScores {
  static constexpr bool kSoftmax = kHasSoftmax<F>;
  std::tuple<O...> operands;

  ChangedScores from(int64_t batch, int64_t head, int64_t row, int64_t col) const {
    return std::apply([&](const O&... x) { return ChangedScores{{x.from(batch, head, row, col)...}}; }, operands);
  }
  /// @brief Changes column `col` of a tile of kRows rows, of which `rows` exist.
  template <int64_t kRows, class A>
  void change(A* line, int64_t col, int64_t rows) const {
    std::apply([&](const O&... x) { detail::change_column<F, kRows>(line, detail::ScoreColumn<kRows, A, O>(x, col, rows)...); }, operands);
  }
};
template <class F, class... O>
inline ChangedScores<F, O...> changed_scores(const O&... operands) {
  return {{operands...}};
}

/// @brief Where the logarithm of the sum of the exponentials of each row of scores goes: [batch, head, row]; `data` is null if nobody wants it.
template <class A>
struct LogSums {
  A* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;

  LogSums from(int64_t at_batch, int64_t at_head) const { return {data == nullptr ? nullptr : data + at_batch * batch + at_head * head, batch, head, row}; }
};

/// @brief Sizes: q is [batch, heads, rows, depth], k [batch, heads / group, cols, depth], v and the result have `width` columns.
struct AttentionShape {
  int64_t batch, heads, rows, cols, depth, width;
  double scale;
  int64_t group = 1;            ///< heads of q that share one of k and v
  int64_t window = kNoWindow;   ///< a row sees columns less than this away from the one at which it stands
  bool top_left = false;        ///< whether row r stands at column r, else at r + cols - rows
  bool nan_rows = false;        ///< whether a row that sees no column becomes NaN, else 0

  int64_t shift() const { return top_left ? 0 : cols - rows; }
};

/// @brief The rows of keys and values after the first `first` rows, which are in `k` and `v`; by default there are none.
template <class T>
struct SecondPiece {
  Heads<const T> k = {}, v = {};
  int64_t first = INT64_MAX;
};

namespace detail {

/// @brief The rows of one head of k or of v: those from `first` on are in a second piece.
template <class T>
struct HeadRows {
  const T* data;
  int64_t pitch;
  const T* next = nullptr;
  int64_t next_pitch = 0, first = INT64_MAX;

  static HeadRows of(Heads<const T> x, Heads<const T> second, int64_t first, int64_t batch, int64_t head) {
    HeadRows rows{x.data + batch * x.batch + head * x.head, x.row};
    if (second.data != nullptr) rows.next = second.data + batch * second.batch + head * second.head, rows.next_pitch = second.row, rows.first = first;
    return rows;
  }
  const T* at(int64_t row) const { return row < first ? data + row * pitch : next + (row - first) * next_pitch; }
  int64_t pitch_at(int64_t row) const { return row < first ? pitch : next_pitch; }
};

/// Columns of the scores in a tile: a multiple of kGemmRows, so that the product works on whole groups, and at least 128.
inline constexpr int64_t kAttentionColumns = kGemmRows * (kGemmRows >= 14 ? 10 : 22);

/// Bytes of the keys and values of a head that are laid out anew for all of its rows; longer ones are read where they are.
inline constexpr int64_t kAttentionHead = 768 * 1024;

/// @brief A tile of scores, `count` columns of kRows rows each with the row along the vector: scaled, changed, and replaced by
/// exp(score - maximum), unless there is no softmax. Updates the maximum and sum of each row; `keep` is the factor by which what was summed before shrinks.
/// @param first,hidden row r sees the columns from `first + r` on, up to but not including `hidden + r`
template <int64_t kRows, class A, class S>
inline void softmax_step(A* scores, int64_t count, A scale, const S& changed, int64_t rows, int64_t first, int64_t hidden, A* top, A* sum, A* keep) {
  constexpr A kHidden = S::kSoftmax ? A(-INFINITY) : A(0);
  A high[kRows], base[kRows], part[kRows];
  for (int64_t r = 0; r < kRows; ++r) high[r] = top[r], part[r] = A(0);
  for (int64_t c = 0; c < count; ++c) {
    A* line = scores + c * kRows;
#pragma omp simd
    for (int64_t r = 0; r < kRows; ++r) line[r] *= scale;
    changed.template change<kRows>(line, c, rows);
    if (c - first < kRows - 1) {
      const int32_t last = int32_t(c - first > -1 ? c - first : -1);
#pragma omp simd
      for (int32_t r = 0; r < int32_t(kRows); ++r) line[r] = r > last ? kHidden : line[r];
    }
    if (c >= hidden) {
      const int32_t last = int32_t(c - hidden < kRows ? c - hidden : kRows);
#pragma omp simd
      for (int32_t r = 0; r < int32_t(kRows); ++r) line[r] = r <= last ? kHidden : line[r];
    }
#pragma omp simd
    for (int64_t r = 0; r < kRows; ++r) high[r] = line[r] > high[r] ? line[r] : high[r];
  }
  if constexpr (!S::kSoftmax) return;
#pragma omp simd
  for (int64_t r = 0; r < kRows; ++r) {
    base[r] = high[r] == A(-INFINITY) ? A(0) : high[r];
    keep[r] = ait::exp(top[r] - base[r]);
    top[r] = high[r];
  }
  for (int64_t c = 0; c < count; ++c) {
    A* line = scores + c * kRows;
#pragma omp simd
    for (int64_t r = 0; r < kRows; ++r) {
      line[r] = ait::exp(line[r] - base[r]);
      part[r] += line[r];
    }
  }
#pragma omp simd
  for (int64_t r = 0; r < kRows; ++r) sum[r] = sum[r] * keep[r] + part[r];
}

/// At most kStrip rows of a head, whose keys and values are of type S.
/// @param changed,log_sums those of the head
template <bool kCausal, class T, class S, class C>
bool attention_rows(const AttentionShape& s, const T* q, int64_t q_row, const HeadRows<S>& k, const HeadRows<S>& v, T* o, int64_t o_row,
                    const C& changed, const LogSums<compute_t<T>>& log_sums, int64_t row0, int64_t rows) {
  using A = compute_t<T>;
  constexpr int64_t kRows = kStrip<A, 2>, kCols = kAttentionColumns;
  constexpr bool kInPlace = std::is_same_v<S, A>;
  static thread_local Scratch scratch;
  const int64_t depth = s.depth, width = s.width, larger = depth > width ? depth : width;
  // Everything has the rows of q along the vector: q [depth][kRows], scores [kCols][kRows], out [width][kRows].
  const size_t count = size_t(kRows * (depth + kCols + width) + (kInPlace ? 0 : kCols * larger));
  A* q_strip = static_cast<A*>(scratch.get(count * sizeof(A)));
  if (q_strip == nullptr) return false;
  A* scores = q_strip + kRows * depth;
  A* out = scores + kRows * kCols;
  [[maybe_unused]] A* converted = out + kRows * width;

  const int64_t shift = s.shift();                   // row r stands at column r + shift
  const int64_t reach = kCausal ? 1 : s.window;      // and sees less than `reach` columns in front of it
  A top[kRows], sum[kRows], keep[kRows];
  for (int64_t r = 0; r < kRows; ++r) top[r] = A(-INFINITY), sum[r] = A(0);
  for (int64_t i = 0; i < kRows * width; ++i) out[i] = A(0);
  pack_strip<T, A>(q + row0 * q_row, q_row, 1, rows, depth, int(kRows), q_strip);
  const int64_t end = row0 + rows - 1 + shift + reach;
  const int64_t visible = end < s.cols ? end : s.cols;
  const int64_t lowest = row0 + shift - s.window + 1, start = lowest > 0 ? lowest / kCols * kCols : 0;

  for (int64_t col0 = start, cols; col0 < visible; col0 += cols) {
    const int64_t piece = (col0 < k.first && k.first < visible ? k.first : visible) - col0;  // no tile lies in both pieces
    cols = piece < kCols ? piece : kCols;
    const A* from;
    int64_t pitch;
    if constexpr (kInPlace) {
      from = k.at(col0), pitch = k.pitch_at(col0);
    } else {
      for (int64_t c = 0; c < cols; ++c) widen<S>(k.at(col0 + c), depth, converted + c * depth);
      from = converted, pitch = depth;
    }
    for (int64_t c = 0; c < cols; c += kGemmRows) {
      const int group = int(cols - c < kGemmRows ? cols - c : kGemmRows);
      multiply_strip<A, 2, true, true>(q_strip, from + c * pitch, pitch * int64_t(sizeof(A)), sizeof(A), depth, group, false,
                                       scores + c * kRows, kRows);
    }
    softmax_step<kRows, A>(scores, cols, A(s.scale), changed.from(0, 0, row0, col0), rows, lowest - col0, row0 + shift + reach - col0, top, sum, keep);
    if (C::kSoftmax && col0 > start) {
      for (int64_t d = 0; d < width; ++d) {
#pragma omp simd
        for (int64_t r = 0; r < kRows; ++r) out[d * kRows + r] *= keep[r];
      }
    }
    if constexpr (kInPlace) {
      from = v.at(col0), pitch = v.pitch_at(col0);
    } else {
      for (int64_t c = 0; c < cols; ++c) widen<S>(v.at(col0 + c), width, converted + c * width);
      from = converted, pitch = width;
    }
    for (int64_t d = 0; d < width; d += kGemmRows) {
      const int group = int(width - d < kGemmRows ? width - d : kGemmRows);
      multiply_strip<A, 2, false, true>(scores, from + d, sizeof(A), pitch * int64_t(sizeof(A)), cols, group, true, out + d * kRows, kRows);
    }
  }
  for (int64_t r = 0; log_sums.data != nullptr && r < rows; ++r) log_sums.data[(row0 + r) * log_sums.row] = top[r] + ait::log(sum[r]);
  const A unseen = s.nan_rows && s.cols > 0 ? A(NAN) : A(0);
  for (int64_t r = 0; r < kRows; ++r) sum[r] = !C::kSoftmax ? A(1) : sum[r] == A(0) ? unseen : A(1) / sum[r];
  int64_t done = 0;
  if constexpr (std::is_same_v<T, A>) {
    constexpr int64_t kBlock = kLanes<A>;
    for (; done + kBlock <= width; done += kBlock) {
      for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
        const Vector<A> scale = *reinterpret_cast<const Vector<A>*>(sum + r0);
        Vector<A> block[kBlock];
#pragma GCC unroll 16
        for (int i = 0; i < kBlock; ++i) block[i] = *reinterpret_cast<const Vector<A>*>(out + (done + i) * kRows + r0) * scale;
        transpose<A>(block);
#pragma GCC unroll 16
        for (int i = 0; i < kBlock; ++i) {
          if (r0 + i < rows) *reinterpret_cast<Vector<A>*>(o + (row0 + r0 + i) * o_row + done) = block[i];
        }
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = done; d < width; ++d) o[(row0 + r) * o_row + d] = static_cast<T>(out[d * kRows + r] * sum[r]);
  }
  return true;
}

/// Rows [row0, row1) of a head.
template <bool kCausal, class T, class C>
bool attention_head(const AttentionShape& s, const T* q, int64_t q_row, const HeadRows<T>& k, const HeadRows<T>& v, T* o, int64_t o_row,
                    const C& changed, const LogSums<compute_t<T>>& log_sums, int64_t row0, int64_t row1) {
  using A = compute_t<T>;
  constexpr int64_t kRows = kStrip<A, 2>;
  static thread_local Scratch scratch;
  const size_t bytes = size_t(s.cols * (s.depth + s.width)) * sizeof(A);
  A* keys = nullptr;
  if (row1 - row0 > kRows && bytes > 0 && bytes <= size_t(kAttentionHead)) {
    // Rows far apart in memory share few sets of the first-level cache: side by side they stay there.
    keys = static_cast<A*>(scratch.get(bytes));
    if (keys == nullptr) return false;
    for (int64_t c = 0; c < s.cols; ++c) widen<T>(k.at(c), s.depth, keys + c * s.depth);
    for (int64_t c = 0; c < s.cols; ++c) widen<T>(v.at(c), s.width, keys + s.cols * s.depth + c * s.width);
  }
  bool enough = true;
  for (int64_t row = row0; row < row1; row += kRows) {
    const int64_t rows = row1 - row < kRows ? row1 - row : kRows;
    if (keys != nullptr) {
      const HeadRows<A> side_by_side{keys, s.depth}, values{keys + s.cols * s.depth, s.width};
      enough = attention_rows<kCausal, T, A>(s, q, q_row, side_by_side, values, o, o_row, changed, log_sums, row, rows) && enough;
    } else {
      enough = attention_rows<kCausal, T, T>(s, q, q_row, k, v, o, o_row, changed, log_sums, row, rows) && enough;
    }
  }
  return enough;
}

}  // namespace detail

/// @brief Attention for any strides of batch, head and row. Scores are never stored for more than one tile.
template <bool kCausal, class T, class C>
int32_t attention(const Context& ctx, const AttentionShape& s, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                  const C& changed, const LogSums<compute_t<T>>& log_sums = {}, SecondPiece<T> second = {}) {
  constexpr int64_t kRows = kStrip<compute_t<T>, 2>;
  const int64_t blocks = (s.rows + kRows - 1) / kRows, heads = s.batch * s.heads;
  if (blocks * heads == 0 || s.width == 0) return 0;
  const int threads = threads_for(blocks * heads * s.cols * (s.depth + s.width) * kRows);
  // A head is cut only as far as the threads need work: each part lays out its keys and values again.
  const int64_t wanted = heads >= 4 * threads ? 1 : (4 * threads + heads - 1) / heads;
  const int64_t step = (blocks + (wanted < blocks ? wanted : blocks) - 1) / (wanted < blocks ? wanted : blocks) * kRows;
  const int64_t parts = (s.rows + step - 1) / step, tasks = heads * parts;
  AllOf enough;
  parallel_tasks(tasks, threads, [&](int64_t task) {
    const int64_t row0 = (parts - 1 - task % parts) * step, head = task / parts % s.heads, batch = task / parts / s.heads;
    const int64_t kv = head / s.group;
    const int64_t row1 = row0 + step < s.rows ? row0 + step : s.rows;
    enough.note(detail::attention_head<kCausal>(
        s, q.data + batch * q.batch + head * q.head, q.row, detail::HeadRows<T>::of(k, second.k, second.first, batch, kv),
        detail::HeadRows<T>::of(v, second.v, second.first, batch, kv), o.data + batch * o.batch + head * o.head, o.row, changed.from(batch, head, 0, 0),
        log_sums.from(batch, head), row0, row1));
  });
  return enough.all() ? 0 : ctx.fail("attention: no memory for a tile of scores");
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_ATTENTION_H_
