/// @file sort.h
/// @brief Rows in ascending or descending order, with equal elements in their original order.
#ifndef AIT_KERNELS_CPU_SORT_H_
#define AIT_KERNELS_CPU_SORT_H_

#include <stdint.h>

#include <algorithm>
#include <memory>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief The first `count` elements along the last of `sizes` in the order of `sort_key`, and their places.
/// @tparam kFar whether rows may have 2^32 - 1 elements or more
template <bool kDescending, bool kFar, size_t kRank, class In, class Values, class Indices>
int32_t sort(const Context&, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices, void*) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  using Pair = sort_pair_t<typename In::Value, kFar>;
  const int64_t n = sizes[kOuter];
  int64_t rows = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d];
  if (rows <= 0 || n <= 0) return 0;
  parallel_ranges(rows, rows * n >= kParallelElements, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<Pair[]> pairs(new Pair[n]);
    for (int64_t r = begin; r < end; ++r) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(r, sizes, coordinate);
      const auto* from = at(in, coordinate, kOuter);
      for (int64_t i = 0; i < n; ++i) pairs[i] = Pair::of(sort_key<kDescending>(from[i * in.strides[kOuter]]), i);
      if (count < n) {
        std::partial_sort(pairs.get(), pairs.get() + count, pairs.get() + n);
      } else {
        std::sort(pairs.get(), pairs.get() + n);
      }
      auto to = at(values, coordinate, kOuter);
      auto places = at(indices, coordinate, kOuter);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = pairs[i].place();
        to[i * values.strides[kOuter]] = from[place * in.strides[kOuter]];
        places[i * indices.strides[kOuter]] = static_cast<typename Indices::Value>(place);
      }
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_SORT_H_
