/// @file select.h
/// @brief The largest or smallest elements of rows and where they are: argmax and topk.
#ifndef AIT_KERNELS_CPU_SELECT_H_
#define AIT_KERNELS_CPU_SELECT_H_

#include <stdint.h>

#include <algorithm>
#include <memory>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief The `count` largest elements along the last of `sizes`, in descending order, or if kSmallest the smallest, in ascending order: their
/// places in `indices` and, if kValues, themselves in `values`. NaN comes before any number if kNanFirst, else after; of equal ones the first comes
/// first.
/// @param values,indices have `count` elements along the last dim
template <bool kValues, bool kSmallest, bool kNanFirst, size_t kRank, class In, class Values, class Indices>
int32_t select(const Context&, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  using C = typename In::Compute;
  const int64_t n = sizes[kOuter];
  int64_t rows = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d];
  if (rows <= 0 || count <= 0) return 0;
  parallel_ranges(rows, rows * n >= kParallelElements, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<C[]> row(new C[n]);
    const std::unique_ptr<int64_t[]> order(new int64_t[n]);
    const auto before = [&](int64_t i, int64_t j) {
      const C a = row[i], b = row[j];
      if ((a != a) != (b != b)) return kNanFirst == (a != a);
      const bool above = kSmallest ? a < b : a > b, below = kSmallest ? b < a : b > a;
      return above || (!below && i < j);
    };
    for (int64_t r = begin; r < end; ++r) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(r, sizes, coordinate);
      const auto* from = at(in, coordinate, kOuter);
      for (int64_t i = 0; i < n; ++i) row[i] = static_cast<C>(from[i * in.strides[kOuter]]), order[i] = i;
      if (count == 1) {
        for (int64_t i = 1; i < n; ++i) order[0] = before(i, order[0]) ? i : order[0];
      } else {
        std::partial_sort(order.get(), order.get() + count, order.get() + n, before);
      }
      auto* places = at(indices, coordinate, kOuter);
      [[maybe_unused]] auto* largest = at(values, coordinate, kOuter);
      for (int64_t k = 0; k < count; ++k) {
        places[k * indices.strides[kOuter]] = static_cast<typename Indices::Value>(order[k]);
        if constexpr (kValues) largest[k * values.strides[kOuter]] = from[order[k] * in.strides[kOuter]];
      }
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_SELECT_H_
