/// @file update.h
/// @brief Rows written over a tensor at places that another tensor says.
#ifndef AIT_KERNELS_CPU_UPDATE_H_
#define AIT_KERNELS_CPU_UPDATE_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/update_space.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief Writes rows over `out`: `space.sizes[space.axis]` of them along one dim, to the places that `positions` says.
///
/// Each innermost run has `space.width` elements, contiguous on both sides. Fails with the first place outside of the dim; nothing is
/// written then.
template <int kRank, class T, class P>
int32_t update_slice(const Context& ctx, const UpdateSpace<kRank>& space, const T* rows, const P* positions, T* out) {
  int64_t count = 1;
  for (int d = 0; d < kRank; ++d) count *= space.sizes[d];
  if (count <= 0 || space.width <= 0) return 0;
  for (int64_t row = 0; row < space.sizes[space.axis]; ++row) {
    const int64_t place = space.place(positions, row);
    if (place >= 0 && place < space.extent) continue;
    char message[200];
    snprintf(message, sizeof message, "update_slice: place %lld of row %lld is outside of the dim, which has %lld",
             static_cast<long long>(place), static_cast<long long>(row), static_cast<long long>(space.extent));
    return ctx.fail(message);
  }
  parallel_for(count, count * space.width * static_cast<int64_t>(sizeof(T)) >= 256 * 1024, [=](int64_t i) {
    int64_t coordinate[kRank];
    coordinates<kRank>(i, space.sizes, coordinate);
    const int64_t place = space.place(positions, coordinate[space.axis]);
    int64_t from = 0, to = place * space.place_stride;
    for (int d = 0; d < kRank; ++d) {
      from += coordinate[d] * space.row_strides[d];
      to += coordinate[d] * space.out_strides[d];
    }
    memcpy(out + to, rows + from, static_cast<size_t>(space.width) * sizeof(T));
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_UPDATE_H_
