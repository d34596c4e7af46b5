/// @file cumulative.h
/// @brief Sums, products, extremes and so on of all elements up to each one, along one dim of any strides; comments say sums.
#ifndef AIT_KERNELS_CPU_CUMULATIVE_H_
#define AIT_KERNELS_CPU_CUMULATIVE_H_

#include <stdint.h>

#include <memory>
#include <type_traits>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {
/// Sums of f32 are kept in f64: thousands of roundings in a row would show.
template <class R, class Op>
using running_t = typename R::template Acc<std::conditional_t<std::is_same_v<typename Op::Value, float>, double, typename Op::Compute>>;

/// What no elements come to.
template <class R, class Op>
inline running_t<R, Op> nothing() {
  return R::template start<typename Op::Value, running_t<R, Op>>();
}

/// Few rows are cut into segments of so many elements, which are summed at the same time.
inline constexpr int64_t kFewRows = 16, kSegment = 1 << 15;

template <class R, class Op>
inline running_t<R, Op> term(typename Op::Value x) {
  return state_of<running_t<R, Op>>(static_cast<typename Op::Compute>(x));
}

/// The sum of `count` elements.
template <class R, class In>
inline running_t<R, In> sum_of(const typename In::Value* from, int64_t step, int64_t count) {
  running_t<R, In> sum = nothing<R, In>();
  for (int64_t i = 0; i < count; ++i) sum = R::join(sum, term<R, In>(from[i * step]));
  return sum;
}

/// The sums of `count` elements, given that of those before.
template <class R, bool kExclusive, class In, class Out>
inline void sum_up(const typename In::Value* from, int64_t step, typename Out::Value* to, int64_t out_step, int64_t count, running_t<R, In> sum) {
  for (int64_t i = 0; i < count; ++i) {
    const running_t<R, In> before = sum;
    sum = R::join(sum, term<R, In>(from[i * step]));
    to[i * out_step] = static_cast<typename Out::Value>(element_of<typename In::Compute>(kExclusive ? before : sum));
  }
}

/// The same elements along the last dim, from the last to the first.
template <class Op>
inline Op reversed(Op operand, int64_t length) {
  int64_t& step = operand.strides[Op::kRank - 1];
  operand.data += (length - 1) * step;
  step = -step;
  return operand;
}

/// Columns side by side, row by row.
template <class R, bool kExclusive, class In, class Out>
inline void sum_columns(const typename In::Value* from, int64_t step, typename Out::Value* to, int64_t out_step, int64_t width, int64_t length) {
  using C = typename In::Compute;
  C x[kBlock];
  running_t<R, In> sums[kBlock];
  for (int64_t c = 0; c < width; ++c) sums[c] = nothing<R, In>();
  for (int64_t i = 0; i < length; ++i, from += step, to += out_step) {
    widen(from, width, x);
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      const running_t<R, In> before = sums[c];
      sums[c] = R::join(sums[c], state_of<running_t<R, In>>(x[c]));
      x[c] = element_of<C>(kExclusive ? before : sums[c]);
    }
    narrow(x, width, to);
  }
}
}  // namespace detail

/// @brief out[..., i] = R over in[..., 0] to in[..., i] along the last of `sizes`. Floats are combined in a wider type; integers wrap.
/// @tparam R of `ait/kernels/reduction.h`
/// @tparam kExclusive without in[..., i] itself
/// @tparam kReverse from the last element to the first
/// @tparam kColumns whether the last but one dim has neighbours in memory, in both operands, and not the last
template <class R, bool kExclusive, bool kReverse, bool kColumns, size_t kRank, class In, class Out>
int32_t cumulative(const Context&, const int64_t (&sizes)[kRank], const In& input, const Out& output) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  const int64_t length = sizes[kOuter];
  int64_t rows = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d];
  if (rows <= 0 || length <= 0) return 0;
  const In in = kReverse ? detail::reversed(input, length) : input;
  const Out out = kReverse ? detail::reversed(output, length) : output;
  const int64_t step = in.strides[kOuter], out_step = out.strides[kOuter];
  if constexpr (kColumns) {
    const int64_t columns = sizes[kOuter - 1], parts = (columns + kBlock - 1) / kBlock;
    parallel_for(rows / columns * parts, rows * length >= kParallelElements, [=](int64_t task) {
      int64_t coordinate[kRank] = {};
      if constexpr (kOuter > 1) coordinates<kOuter - 1>(task / parts, sizes, coordinate);
      const int64_t first = coordinate[kOuter - 1] = task % parts * kBlock, left = columns - first;
      detail::sum_columns<R, kExclusive, In, Out>(at(in, coordinate, kOuter), step, at(out, coordinate, kOuter), out_step,
                                               left < kBlock ? left : kBlock, length);
    });
    return 0;
  }
  const int64_t segments = rows < detail::kFewRows ? (length + detail::kSegment - 1) / detail::kSegment : 1;
  const int64_t size = segments == 1 ? length : detail::kSegment;
  /// visit(segment of all rows, in, out, elements)
  const auto each = [&](auto visit) {
    parallel_for(rows * segments, rows * length >= kParallelElements, [=](int64_t task) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(task / segments, sizes, coordinate);
      const int64_t first = task % segments * size;
      visit(task, at(in, coordinate, kOuter) + first * step, at(out, coordinate, kOuter) + first * out_step,
            length - first < size ? length - first : size);
    });
  };
  const std::unique_ptr<detail::running_t<R, In>[]> before(new detail::running_t<R, In>[rows * segments]);
  for (int64_t i = 0; i < rows * segments; ++i) before[i] = detail::nothing<R, In>();
  if (segments > 1) {
    each([&](int64_t task, const auto* from, auto*, int64_t count) { before[task] = detail::sum_of<R, In>(from, step, count); });
    for (int64_t row = 0; row < rows; ++row) {
      detail::running_t<R, In> sum = detail::nothing<R, In>();
      for (int64_t task = row * segments; task < (row + 1) * segments; ++task) {
        const auto own = before[task];
        before[task] = sum;
        sum = R::join(sum, own);
      }
    }
  }
  each([&](int64_t task, const auto* from, auto* to, int64_t count) {
    detail::sum_up<R, kExclusive, In, Out>(from, step, to, out_step, count, before[task]);
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CUMULATIVE_H_
