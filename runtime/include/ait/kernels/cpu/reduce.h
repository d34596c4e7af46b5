/// @file reduce.h
/// @brief Sums, means, extremes and variances over any dims.
#ifndef AIT_KERNELS_CPU_REDUCE_H_
#define AIT_KERNELS_CPU_REDUCE_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/row.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// visit(block, count) for the elements of the dims from kKept on, at most kBlock at once, in the type A.
template <int kKept, class A, size_t kRank, class In, class Visit>
inline void visit_reduced(const int64_t (&sizes)[kRank], const In& in, int64_t (&coordinate)[kRank], Visit visit) {
  constexpr int kInner = static_cast<int>(kRank) - 1;
  const int64_t n = sizes[kInner], stride = in.strides[kInner];
  int64_t segments = 1;
  for (int d = kKept; d < kInner; ++d) segments *= sizes[d];
  A block[kBlock];
  for (int64_t segment = 0; segment < segments; ++segment) {
    if constexpr (kInner > kKept) coordinates<kInner - kKept>(segment, sizes + kKept, coordinate + kKept);
    const auto* from = at(in, coordinate, kInner);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = n - first < kBlock ? n - first : kBlock;
      if constexpr (In::kInner == Inner::unit && std::is_same_v<A, typename In::Compute>) {
        widen(from + first, count, block);
      } else {
        for (int64_t i = 0; i < count; ++i) block[i] = static_cast<A>(static_cast<typename In::Compute>(from[(first + i) * stride]));
      }
      visit(block, count);
    }
  }
}

/// One result from rows of elements.
template <class R, int kKept, size_t kRank, class In>
inline auto reduce_row(const int64_t (&sizes)[kRank], const In& in, int64_t (&coordinate)[kRank], int64_t length, double correction) {
  using T = typename In::Value;
  using A = typename R::template Acc<typename In::Compute>;
  const auto join = [](auto a, auto b) { return R::join(a, b); };
  A total = R::template start<T, A>();
  visit_reduced<kKept, A>(sizes, in, coordinate, [&](const A* x, int64_t n) {
    total = R::join(total, reduce(x, n, R::template start<T, A>(), join, join));
  });
  const A count = static_cast<A>(length);
  if constexpr (R::kCentred) {
    const A mean = total / count;
    Moments<A> all{A(0), A(0)};
    visit_reduced<kKept, A>(sizes, in, coordinate, [&](const A* x, int64_t n) {
      const Moments<A> part = row_moments(x, n, mean);
      all.differences += part.differences, all.squares += part.squares;
    });
    return R::finish_centred(all.differences, all.squares, count, correction);
  } else {
    return R::finish(total, count, correction);
  }
}

/// Joins all rows into `total`, where `add(i, sums)` joins row i to sums: kRun rows at a time, and so many of their sums at a time, since long
/// chains of additions lose more than short ones.
template <class A, class Start, class Add, class Join>
inline void join_rows(int64_t width, int64_t rows, Start start, Add add, Join join, A* total) {
  constexpr int64_t kRun = 16;
  A part[kBlock], middle[kBlock];
  start(total);
  for (int64_t begin = 0; begin < rows; begin += kRun * kRun) {
    start(middle);
    const int64_t end = begin + kRun * kRun < rows ? begin + kRun * kRun : rows;
    for (int64_t first = begin; first < end; first += kRun) {
      start(part);
      for (int64_t i = first; i < first + kRun && i < end; ++i) add(i, part);
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) middle[c] = join(middle[c], part[c]);
    }
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) total[c] = join(total[c], middle[c]);
  }
}

/// Results side by side along the last kept dim, whose elements are neighbours in memory too.
template <class R, int kKept, size_t kRank, class In, class Out>
inline void reduce_columns(const int64_t (&sizes)[kRank], const In& in, const Out& out, int64_t (&coordinate)[kRank], int64_t width,
                           int64_t length, double correction) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  constexpr int kReduced = static_cast<int>(kRank) - kKept;
  C x[kBlock];
  A total[kBlock];
  const auto row = [&](int64_t i) {
    coordinates<kReduced>(i, sizes + kKept, coordinate + kKept);
    widen(at(in, coordinate, static_cast<int>(kRank)), width, x);
  };
  const auto join = [](A a, A b) { return R::join(a, b); };
  const auto start = [&](A* sums) {
    for (int64_t c = 0; c < width; ++c) sums[c] = R::template start<T, A>();
  };
  const auto add = [&](int64_t i, A* sums) {
    row(i);
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) sums[c] = R::join(sums[c], static_cast<A>(x[c]));
  };
  join_rows(width, length, start, add, join, total);
  const A count = static_cast<A>(length);
  if constexpr (R::kCentred) {
    A differences[kBlock], squares[kBlock];
    for (int64_t c = 0; c < width; ++c) total[c] /= count, differences[c] = A(0);
    const auto add_square = [&](int64_t i, A* sums) {
      row(i);
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        const A d = static_cast<A>(x[c]) - total[c];
        differences[c] += d;
        sums[c] += d * d;
      }
    };
    join_rows(width, length, start, add_square, join, squares);
    for (int64_t c = 0; c < width; ++c) total[c] = R::finish_centred(differences[c], squares[c], count, correction);
  } else {
    for (int64_t c = 0; c < width; ++c) total[c] = R::finish(total[c], count, correction);
  }
  auto* to = at(out, coordinate, kKept);
  for (int64_t c = 0; c < width; ++c) to[c * out.strides[kKept - 1]] = static_cast<typename Out::Value>(static_cast<C>(total[c]));
}
}  // namespace detail

/// @brief out = R over the dims of `sizes` from kKept on; `out` has stride 0 along them.
/// @tparam kColumns whether the last kept dim, not the last reduced one, has neighbours in memory
/// @param correction what Var takes off the number of elements that it divides by
template <class R, int kKept, bool kColumns, size_t kRank, class In, class Out>
int32_t reduce(const Context&, const int64_t (&sizes)[kRank], const In& in, const Out& out, double correction) {
  int64_t results = 1, length = 1;
  for (int d = 0; d < kKept; ++d) results *= sizes[d];
  for (int d = kKept; d < static_cast<int>(kRank); ++d) length *= sizes[d];
  if (results <= 0) return 0;
  if constexpr (kColumns) {
    const int64_t columns = sizes[kKept - 1], parts = (columns + kBlock - 1) / kBlock;
    parallel_for(results / columns * parts, results * length >= kParallelElements, [=](int64_t task) {
      int64_t coordinate[kRank] = {};
      if constexpr (kKept > 1) coordinates<kKept - 1>(task / parts, sizes, coordinate);
      const int64_t first = task % parts * kBlock;
      coordinate[kKept - 1] = first;
      detail::reduce_columns<R, kKept>(sizes, in, out, coordinate, columns - first < kBlock ? columns - first : kBlock, length, correction);
    });
  } else {
    parallel_for(results, results * length >= kParallelElements, [=](int64_t r) {
      int64_t coordinate[kRank] = {};
      coordinates<kKept>(r, sizes, coordinate);
      const auto value = detail::reduce_row<R, kKept>(sizes, in, coordinate, length, correction);
      *at(out, coordinate, kKept) = static_cast<typename Out::Value>(static_cast<typename In::Compute>(value));
    });
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_REDUCE_H_
