/// @file recurrence.h
/// @brief All steps of a recurrence in one launch on the CPU: threads keep their columns of the state from step to step.
///
/// A piece owns some columns of the state with all of their gates: it multiplies the whole h of the step before with its rows of the weight and computes the
/// new elements of its columns. Pieces are read in one order in even steps and in the other order in odd ones, so that a step finds the rows of the
/// weight that the last one read in the end in its cache, where not all of them fit.
#ifndef AIT_KERNELS_CPU_RECURRENCE_H_
#define AIT_KERNELS_CPU_RECURRENCE_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/gemm_few.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/operand.h"
#include "ait/math.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// Columns of the state that are finished together.
inline constexpr int64_t kCellColumns = 32;
static_assert(kCellColumns <= kGemmColumns, "their products are summed at once");

/// @brief Elements of a row of an operand in their compute type.
template <class Op>
struct CellRun {
  using C = typename Op::Compute;
  static constexpr int kLast = Op::kRank - 1;
  alignas(64) C values[kCellColumns];

  static auto place(const Op& x, int64_t step, int64_t row, int64_t col) {
    int64_t offset = row * x.strides[kLast - 1] + col * x.strides[kLast];
    if constexpr (Op::kRank == 3) offset += step * x.strides[0];
    return x.data + offset;
  }
  void read(const Op& x, int64_t step, int64_t row, int64_t col, int64_t count) {
    const auto* const from = place(x, step, row, col);
    if constexpr (Op::kInner == Inner::unit) {
      widen(from, count, values);
    } else {
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<C>(from[i * x.strides[kLast]]);
    }
  }
  void write(const Op& x, int64_t step, int64_t row, int64_t col, int64_t count) const {
    store_run<typename Op::Value>(values, count, place(x, step, row, col), x.strides[kLast]);
  }
};

/// @brief One call.
/// @tparam T the type of the weight and of h
template <class F, int kGates, class T, class Init, class In, class State, class Stacked>
struct Recurrence;
template <class F, int kGates, class T, class... Init, class... In, class... State, class... Stacked>
struct Recurrence<F, kGates, T, Pack<Init...>, Pack<In...>, Pack<State...>, Pack<Stacked...>> {
  using A = compute_t<T>;
  using States = std::index_sequence_for<State...>;
  static_assert(sizeof...(Init) == sizeof...(State), "each state has a value before the first step");

  int64_t steps, batch, hidden;
  bool backward;
  const T* weight;
  Pack<Init...> init;
  Pack<In...> in;
  Pack<State...> state;
  Pack<Stacked...> stacked;
  T* h;  ///< two matrices, in turns: of the step before, and of this one

  T* row_of_h(int64_t step, int64_t row) const { return h + (step % 2 * batch + row) * hidden; }

  /// The states before the first step.
  void begin() const { begin_all(States{}); }
  template <size_t... I>
  void begin_all(std::index_sequence<I...>) const {
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t c = 0; c < hidden; c += kCellColumns) {
        const int64_t count = hidden - c < kCellColumns ? hidden - c : kCellColumns;
        (begin_one<I>(row, c, count), ...);
      }
    }
  }
  template <size_t kIndex>
  void begin_one(int64_t row, int64_t c, int64_t count) const {
    CellRun<std::decay_t<decltype(get<kIndex>(init))>> before;
    before.read(get<kIndex>(init), 0, row, c, count);
    CellRun<std::decay_t<decltype(get<kIndex>(state))>> after;
    for (int64_t i = 0; i < count; ++i) after.values[i] = before.values[i];
    after.write(get<kIndex>(state), 0, row, c, count);
    if constexpr (kIndex == 0) store_run<T>(before.values, count, row_of_h(0, row) + c, 1);
  }

  /// Columns [c0, c1) of a step, from the first to the last or the other way round.
  void piece(int64_t step, int64_t c0, int64_t c1) const {
    const int64_t runs = (c1 - c0 + kCellColumns - 1) / kCellColumns;
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t c = c0 + (step % 2 == 0 ? i : runs - 1 - i) * kCellColumns, count = c1 - c < kCellColumns ? c1 - c : kCellColumns;
      int64_t row = 0;
      for (; row + kDotRows <= batch; row += kDotRows) rows<int(kDotRows)>(step, row, c, count);
      for (; row < batch; ++row) rows<1>(step, row, c, count);
    }
  }
  template <int kRows>
  void rows(int64_t step, int64_t row, int64_t c, int64_t count) const {
    A products[kGates][kRows][kGemmColumns];
    for (int g = 0; g < kGates; ++g) {
      dot_products<kRows, T>(row_of_h(step, row), hidden, weight + (g * hidden + c) * hidden, hidden, count, hidden, products[g]);
    }
    for (int r = 0; r < kRows; ++r) {
      const A* gates[kGates];
      for (int g = 0; g < kGates; ++g) gates[g] = products[g][r];
      cells(step, row + r, c, count, gates, std::make_index_sequence<kGates>{}, std::index_sequence_for<In...>{}, States{},
            std::index_sequence_for<Stacked...>{});
    }
  }

  /// New elements of a row of the state.
  template <size_t... G, size_t... I, size_t... S, size_t... O>
  void cells(int64_t step, int64_t row, int64_t c, int64_t count, const A* const (&gates)[kGates], std::index_sequence<G...>,
             std::index_sequence<I...>, std::index_sequence<S...>, std::index_sequence<O...>) const {
    const int64_t place = backward ? steps - 1 - step : step;
    Pack<CellRun<In>...> now;
    Pack<CellRun<State>...> before, after;
    Pack<CellRun<Stacked>...> results;
    (get<I>(now).read(get<I>(in), place, row, c, count), ...);
    (read_state<S>(step, row, c, count, get<S>(before).values), ...);
    const auto values = pack(gates[G]..., static_cast<const typename In::Compute*>(get<I>(now).values)...,
                             static_cast<const typename State::Compute*>(get<S>(before).values)...);
    const auto made = pack(&get<S>(after).values[0]..., &get<O>(results).values[0]...);
    apply_run<F>(values, std::make_index_sequence<kGates + sizeof...(I) + sizeof...(S)>{}, made,
                 std::make_index_sequence<sizeof...(S) + sizeof...(O)>{}, count);
    store_run<T>(get<0>(after).values, count, row_of_h(step + 1, row) + c, 1);
    if (step + 1 == steps) get<0>(after).write(get<0>(state), 0, row, c, count);
    (write_state<S>(row, c, count, get<S>(after)), ...);
    (get<O>(results).write(get<O>(stacked), place, row, c, count), ...);
  }
  /// A state of the step before: the first one is h, the others lie where their last values go.
  template <size_t kIndex, class C>
  void read_state(int64_t step, int64_t row, int64_t c, int64_t count, C* to) const {
    if constexpr (kIndex == 0) {
      widen<T>(row_of_h(step, row) + c, count, to);
    } else {
      CellRun<std::decay_t<decltype(get<kIndex>(state))>> run;
      run.read(get<kIndex>(state), 0, row, c, count);
      for (int64_t i = 0; i < count; ++i) to[i] = run.values[i];
    }
  }
  template <size_t kIndex, class Run>
  void write_state(int64_t row, int64_t c, int64_t count, const Run& after) const {
    if constexpr (kIndex > 0) after.write(get<kIndex>(state), 0, row, c, count);
  }
};

}  // namespace detail

/// @brief The steps of `ait.recurrence`: gates = h weight^T, and F(gates..., inputs..., states..., new states..., stacked results...) for each
/// element of [batch, hidden]. `weight` is [kGates * hidden, hidden], row-major. Results must not overlap inputs.
/// @param backward whether the first step is the last one of the inputs
/// @param in,stacked [steps, batch, hidden]; @param init,state [batch, hidden], h first
template <class F, int kGates, class T, class... Init, class... In, class... State, class... Stacked>
int32_t recurrence(const Context& ctx, int64_t steps, int64_t batch, int64_t hidden, bool backward, const T* weight, const Pack<Init...>& init,
                   const Pack<In...>& in, const Pack<State...>& state, const Pack<Stacked...>& stacked) {
  if (batch == 0 || hidden == 0) return 0;
  static thread_local Scratch scratch;
  T* const h = static_cast<T*>(scratch.get(size_t(2 * batch * hidden) * sizeof(T)));
  if (h == nullptr) return ctx.fail("recurrence: no memory for the state");
  const detail::Recurrence<F, kGates, T, Pack<Init...>, Pack<In...>, Pack<State...>, Pack<Stacked...>> work{
      steps, batch, hidden, backward, weight, init, in, state, stacked, h};
  work.begin();
  const int threads = threads_for(batch * kGates * hidden * hidden);
  constexpr int64_t kRun = detail::kCellColumns;
  parallel_steps(steps, (hidden + kRun - 1) / kRun, threads, [&work](int64_t step, int64_t first, int64_t last) {
    work.piece(step, first * kRun, last * kRun < work.hidden ? last * kRun : work.hidden);
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_RECURRENCE_H_
