/// @file gather.h
/// @brief Rows of a table, chosen by ids.
#ifndef AIT_KERNELS_CPU_GATHER_H_
#define AIT_KERNELS_CPU_GATHER_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/operand.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief out[..., :] = table[ids[...], :] over ids of shape `sizes`.
///
/// Rows have `width` elements, contiguous on both sides; `table_stride` separates the rows of the table. `ids` and `out` have a stride for
/// each dim of `sizes`. Fails with the smallest place whose id is outside of the table; the rows of other ids are written.
template <size_t kRank, class T, class Id>
int32_t gather(const Context& ctx, const int64_t (&sizes)[kRank], const T* table, int64_t rows, int64_t width, int64_t table_stride,
               const Id* ids, const int64_t (&id_strides)[kRank], T* out, const int64_t (&out_strides)[kRank]) {
  int64_t count = 1;
  for (size_t d = 0; d < kRank; ++d) count *= sizes[d];
  if (count <= 0) return 0;
  Smallest first_wrong(count);
  parallel_for(count, count * width * static_cast<int64_t>(sizeof(T)) >= 256 * 1024, [=, &first_wrong](int64_t i) {
    int64_t coordinate[kRank];
    coordinates<static_cast<int>(kRank)>(i, sizes, coordinate);
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < kRank; ++d) {
      from += coordinate[d] * id_strides[d];
      to += coordinate[d] * out_strides[d];
    }
    const int64_t id = static_cast<int64_t>(ids[from]);
    if (id < 0 || id >= rows) {
      first_wrong.note(i);
    } else if (width > 0) {
      memcpy(out + to, table + id * table_stride, static_cast<size_t>(width) * sizeof(T));
    }
  });
  const int64_t wrong = first_wrong.get();
  if (wrong == count) return 0;
  int64_t coordinate[kRank];
  coordinates<static_cast<int>(kRank)>(wrong, sizes, coordinate);
  int64_t from = 0;
  for (size_t d = 0; d < kRank; ++d) from += coordinate[d] * id_strides[d];
  char message[200];
  snprintf(message, sizeof message, "embedding: id %lld at place %lld of the ids is outside of the table, which has %lld rows",
           static_cast<long long>(ids[from]), static_cast<long long>(wrong), static_cast<long long>(rows));
  return ctx.fail(message);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GATHER_H_
