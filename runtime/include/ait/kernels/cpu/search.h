/// @file search.h
/// @brief The places of values in sorted rows.
#ifndef AIT_KERNELS_CPU_SEARCH_H_
#define AIT_KERNELS_CPU_SEARCH_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief out = the number of the `length` elements of the sorted row that are before each value, including equal elements if kRight.
/// @param rows the first element of the row for each value; `step` separates its elements
template <bool kRight, size_t kRank, class Rows, class Values, class Out>
int32_t search(const Context&, const int64_t (&sizes)[kRank], const Rows& rows, int64_t length, int64_t step, const Values& values, const Out& out) {
  int64_t count = 1;
  for (size_t d = 0; d < kRank; ++d) count *= sizes[d];
  parallel_for(count, count >= kParallelElements / 16, [=](int64_t i) {
    int64_t coordinate[kRank];
    coordinates<static_cast<int>(kRank)>(i, sizes, coordinate);
    const int64_t found = search_sorted<kRight>(at(rows, coordinate, kRank), length, step, *at(values, coordinate, kRank));
    *at(out, coordinate, kRank) = static_cast<typename Out::Value>(found);
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_SEARCH_H_
