/// @file attention_scores.cuh
/// @brief The change of the scaled scores before the softmax: a functor of a score and of elements of tensors that broadcast to the scores.
///
/// A functor adds a mask, a bias of each head or a slope times a distance, or caps the score. The same functor works on all GPU kernels;
/// these classes read its operands in the layouts that the kernels have: `ScoreLine` for one row, `ScoreFragment` for the results of a
/// tensor-core product.
#ifndef AIT_KERNELS_GPU_ATTENTION_SCORES_CUH_
#define AIT_KERNELS_GPU_ATTENTION_SCORES_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/attention_scores.h"
#include "ait/types.h"

namespace ait::gpu {

/// @brief Operands of a functor: [batch, head, row, column] tensors in which a stride of 0 broadcasts.
/// @tparam kRows_ whether the elements of different rows differ
/// @tparam kColumns_ how the elements of a row lie
template <class E, bool kRows_, ScoreColumns kColumns_>
struct ScoreOperand {
  using Element = E;
  static constexpr bool kRows = kRows_;
  static constexpr ScoreColumns kColumns = kColumns_;
  const E* data;
  int64_t batch, head, row, col;

  __device__ __forceinline__ const E* line(int64_t at_batch, int64_t at_head, int64_t at_row) const {
    return data + at_batch * batch + at_head * head + (kRows ? at_row * row : 0);
  }
  __device__ __forceinline__ int64_t step() const { return kColumns == ScoreColumns::kUnit ? 1 : col; }
  /// @brief Whether two neighbouring columns from an even one on can be read at once.
  bool paired() const {
    return kColumns == ScoreColumns::kUnit && reinterpret_cast<uintptr_t>(data) % (2 * sizeof(E)) == 0 && batch % 2 == 0 && head % 2 == 0 &&
           (!kRows || row % 2 == 0);
  }
};

template <class... O>
struct ScoreOperands {
  bool paired() const { return true; }
};
template <class O, class... Rest>
struct ScoreOperands<O, Rest...> {
  O first;
  ScoreOperands<Rest...> rest;
  /// @brief Whether all operands with contiguous columns can be read in pairs.
  bool paired() const { return (O::kColumns != ScoreColumns::kUnit || first.paired()) && rest.paired(); }
};

/// @brief The operands of a functor as an argument of a kernel.
inline ScoreOperands<> score_operands() { return {}; }
template <class O, class... Rest>
inline ScoreOperands<O, Rest...> score_operands(const O& first, const Rest&... rest) {
  return {first, score_operands(rest...)};
}

/// @brief Scores that are only scaled.
struct PlainScores {
  static constexpr bool kChanged = false, kSoftmax = true;
  bool paired() const { return true; }
};

/// @brief Scores that a functor changes. @tparam F `apply(score, elements..., result&)` in the type in which the kernel computes
template <class F, class... O>
struct ChangedScores {
  static constexpr bool kChanged = true, kSoftmax = kHasSoftmax<F>;
  ScoreOperands<O...> operands;
  bool paired() const { return operands.paired(); }
};
template <class F, class... O>
inline ChangedScores<F, O...> changed_scores(const O&... operands) {
  return {score_operands(operands...)};
}

namespace detail {

template <class... O>
struct Lines {
  __device__ __forceinline__ void place(const ScoreOperands<O...>&, int64_t, int64_t, int64_t) {}
  template <class F, class A, class... X>
  __device__ __forceinline__ void apply(int64_t, A score, A& out, X... x) const { F::apply(score, x..., out); }
};
template <class O, class... Rest>
struct Lines<O, Rest...> {
  const typename O::Element* at;
  int64_t step;
  Lines<Rest...> rest;

  __device__ __forceinline__ void place(const ScoreOperands<O, Rest...>& from, int64_t batch, int64_t head, int64_t row) {
    at = from.first.line(batch, head, row), step = from.first.step();
    rest.place(from.rest, batch, head, row);
  }
  template <class F, class A, class... X>
  __device__ __forceinline__ void apply(int64_t col, A score, A& out, X... x) const {
    using E = typename O::Element;
    rest.template apply<F>(col, score, out, x..., convert<compute_t<E>>(at[O::kColumns == ScoreColumns::kNone ? 0 : col * step]));
  }
};

/// @brief Two neighbouring elements of a row, in one register if they are narrow.
template <class E, bool kNarrow = sizeof(E) == 2>
struct Two {
  struct alignas(2 * sizeof(E)) Pair {
    E of[2];
  } pair;
  __device__ __forceinline__ void read(const E* at) { pair = *reinterpret_cast<const Pair*>(at); }
  __device__ __forceinline__ void set(E a, E b) { pair.of[0] = a, pair.of[1] = b; }
  __device__ __forceinline__ E get(int i) const { return pair.of[i]; }
};
template <class E>
struct Two<E, true> {
  uint32_t word;
  __device__ __forceinline__ void read(const E* at) { word = *reinterpret_cast<const uint32_t*>(at); }
  __device__ __forceinline__ void set(E a, E b) { word = bits(a) | bits(b) << 16; }
  __device__ __forceinline__ E get(int i) const {
    const uint16_t half_word = uint16_t(word >> (16 * i));
    E e;
    copy_bytes(&e, &half_word, sizeof e);
    return e;
  }
  static __device__ __forceinline__ uint32_t bits(E e) {
    uint16_t to;
    copy_bytes(&to, &e, sizeof to);
    return to;
  }
};

template <int kBlocks, class... O>
struct Fragments {
  __device__ __forceinline__ void place(const ScoreOperands<O...>&, int64_t, int64_t, int, int) {}
  __device__ __forceinline__ void fetch(int, int, bool) {}
  template <class F, class... X>
  __device__ __forceinline__ void apply(int, float score, float& out, X... x) const { F::apply(score, x..., out); }
};
template <int kBlocks, class O, class... Rest>
struct Fragments<kBlocks, O, Rest...> {
  using E = typename O::Element;
  static constexpr int kLines = O::kRows ? 2 : 1, kHeld = O::kColumns == ScoreColumns::kNone ? 1 : kBlocks;
  const E* at[kLines];
  int64_t step;
  Two<E> held[kHeld][kLines];
  Fragments<kBlocks, Rest...> rest;

  __device__ __forceinline__ void place(const ScoreOperands<O, Rest...>& from, int64_t batch, int64_t head, int row, int rows) {
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      at[r] = from.first.line(batch, head, row + 8 * r < rows ? row + 8 * r : rows - 1);
      if constexpr (O::kColumns == ScoreColumns::kNone) held[0][r].set(*at[r], *at[r]);
    }
    step = from.first.step();
    rest.place(from.rest, batch, head, row, rows);
  }
  __device__ __forceinline__ void fetch(int col, int cols, bool whole_pairs) {
    if constexpr (O::kColumns != ScoreColumns::kNone) {
      if (O::kColumns == ScoreColumns::kUnit && whole_pairs) {
#pragma unroll
        for (int j = 0; j < kBlocks; ++j)
#pragma unroll
          for (int r = 0; r < kLines; ++r) held[j][r].read(at[r] + col + 8 * j);
      } else {
#pragma unroll
        for (int j = 0; j < kBlocks; ++j) {
          const int a = col + 8 * j < cols ? col + 8 * j : cols - 1, b = a + 1 < cols ? a + 1 : cols - 1;
#pragma unroll
          for (int r = 0; r < kLines; ++r) held[j][r].set(at[r][a * step], at[r][b * step]);
        }
      }
    }
    rest.fetch(col, cols, whole_pairs);
  }
  template <class F, class... X>
  __device__ __forceinline__ void apply(int i, float score, float& out, X... x) const {
    const Two<E>& two = held[O::kColumns == ScoreColumns::kNone ? 0 : i / 4][O::kRows ? i / 2 % 2 : 0];
    rest.template apply<F>(i, score, out, x..., convert<compute_t<E>>(two.get(O::kColumns == ScoreColumns::kNone ? 0 : i % 2)));
  }
};

}  // namespace detail

/// @brief `score * unit` for a unit below 2, but a finite score stays finite: models hide columns by the least number of a type, and a row in
/// which all are hidden so has equal weights.
__device__ __forceinline__ float finite_times(float score, float unit) { return score * (score < -1.5e38f ? 1.f : unit); }

/// @brief One row of scores. @param row must exist
template <class S>
struct ScoreLine {
  __device__ __forceinline__ ScoreLine(const S&, int64_t, int64_t, int64_t) {}
  ScoreLine() = default;
  template <class A>
  __device__ __forceinline__ A changed(A score, int64_t) const { return score; }
};
template <class F, class... O>
struct ScoreLine<ChangedScores<F, O...>> {
  detail::Lines<O...> lines;

  ScoreLine() = default;
  __device__ __forceinline__ ScoreLine(const ChangedScores<F, O...>& from, int64_t batch, int64_t head, int64_t row) {
    lines.place(from.operands, batch, head, row);
  }
  /// @brief The changed score for a scaled score; the column must exist.
  template <class A>
  __device__ __forceinline__ A changed(A score, int64_t col) const {
    A out;
    lines.template apply<F>(col, score, out);
    return out;
  }
};

/// @brief The scores that a thread has of a product of 16 rows and `kBlocks` times 8 columns: number 4 j + 2 r + e is of row 8 r and column
/// 8 j + e from the thread's first on.
template <class S, int kBlocks>
struct ScoreFragment {
  __device__ __forceinline__ void place(const S&, int64_t, int64_t, int, int) {}
  __device__ __forceinline__ void fetch(int, int, int, bool) {}
};
template <class F, class... O, int kBlocks>
struct ScoreFragment<ChangedScores<F, O...>, kBlocks> {
  detail::Fragments<kBlocks, O...> operands;

  /// @param row the thread's first, of `rows`, of which there is at least one
  __device__ __forceinline__ void place(const ChangedScores<F, O...>& from, int64_t batch, int64_t head, int row, int rows) {
    operands.place(from.operands, batch, head, row, rows);
  }
  /// @brief Starts to read the operands. @param col,col0 the first column of the thread, of the product @param paired `ChangedScores::paired`
  __device__ __forceinline__ void fetch(int col, int col0, int cols, bool paired) { operands.fetch(col, cols, paired && col0 + 8 * kBlocks <= cols); }
  /// @brief The changed score for the scaled score number `i`; without meaning for columns that do not exist.
  __device__ __forceinline__ float changed(int i, float score) const {
    float out;
    operands.template apply<F>(i, score, out);
    return out;
  }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ATTENTION_SCORES_CUH_
