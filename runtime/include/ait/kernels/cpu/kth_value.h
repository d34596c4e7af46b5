/// @file kth_value.h
/// @brief The k-th smallest element of each row, and where it is.
#ifndef AIT_KERNELS_CPU_KTH_VALUE_H_
#define AIT_KERNELS_CPU_KTH_VALUE_H_

#include <stdint.h>

#include <algorithm>
#include <memory>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief The `k`-th smallest element, counted from 1, along the last of `sizes`, and its place; the first NaN of a row that has one if kNanFirst.
/// @param values,indices have one element for each row: the first along the last dim
template <bool kNanFirst, size_t kRank, class In, class Values, class Indices>
int32_t kth_value(const Context&, const int64_t (&sizes)[kRank], const In& in, int64_t k, const Values& values, const Indices& indices) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  const int64_t n = sizes[kOuter];
  int64_t rows = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d];
  if (rows <= 0 || n <= 0) return 0;
  parallel_ranges(rows, rows * n >= kParallelElements, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<WidePair[]> pairs(new WidePair[n]);
    for (int64_t r = begin; r < end; ++r) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(r, sizes, coordinate);
      const auto* from = at(in, coordinate, kOuter);
      int64_t place = -1;
      for (int64_t i = 0; i < n; ++i) {
        const auto element = from[i * in.strides[kOuter]];
        if constexpr (kNanFirst) {
          const auto value = convert<typename In::Compute>(element);
          if (place < 0 && value != value) place = i;
        }
        pairs[i] = WidePair::of(sort_key<false>(element), i);
      }
      if (place < 0) {
        std::nth_element(pairs.get(), pairs.get() + (k - 1), pairs.get() + n);
        place = pairs[k - 1].place();
      }
      *at(values, coordinate, kOuter) = from[place * in.strides[kOuter]];
      *at(indices, coordinate, kOuter) = static_cast<typename Indices::Value>(place);
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_KTH_VALUE_H_
