/// @file take.h
/// @brief Elements of a tensor by index along some of its dims.
#ifndef AIT_KERNELS_CPU_TAKE_H_
#define AIT_KERNELS_CPU_TAKE_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/indexed_space.h"
#include "ait/kernels/operand.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief Fails for the first place of the space, in row-major order, with an index outside of its dim; `says` is the error,
///        if it is not null.
template <int kRank, int kIndices, class Id>
int32_t check_indices(const Context& ctx, const char* op, IndexedSpace<kRank, kIndices, Id> space, const char* says = nullptr) {
  if (space.count() <= 0) return 0;
  for (int d = 0; d < kRank; ++d) {
    bool varies = false;
    for (int k = 0; k < kIndices; ++k) varies = varies || space.index_strides[k][d] != 0;
    if (!varies) space.sizes[d] = 1;
  }
  const int64_t count = space.count();
  Smallest first_wrong(count);
  parallel_for(count, count >= 64 * 1024, [=, &first_wrong](int64_t i) {
    int64_t coordinate[kRank], dense, whole;
    coordinates<kRank>(i, space.sizes, coordinate);
    if (!space.offsets(coordinate, dense, whole)) first_wrong.note(i);
  });
  const int64_t wrong = first_wrong.get();
  if (wrong == count) return 0;
  if (says != nullptr) return ctx.fail(says);
  int64_t coordinate[kRank];
  coordinates<kRank>(wrong, space.sizes, coordinate);
  for (int k = 0; k < kIndices; ++k) {
    bool known = true;
    (void)space.index(k, coordinate, known);
    if (known) continue;
    char message[200];
    snprintf(message, sizeof message, "%s: index %lld of index tensor %d is outside of its dim, which has %lld", op,
             static_cast<long long>(space.stored(k, coordinate)), k, static_cast<long long>(space.extents[k]));
    return ctx.fail(message);
  }
  return 0;
}

/// @brief out = the elements of `whole` at the places of the space, in runs of `width` contiguous elements.
///
/// Indices may have any strides. Fails with the first index outside of its dim; nothing is written then.
template <int kRank, int kIndices, class Id, class T>
int32_t take(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, int64_t width, const T* whole, T* out,
             const char* says = nullptr) {
  const int64_t count = space.count();
  if (count <= 0 || width <= 0) return 0;
  if (const int32_t status = check_indices(ctx, "gather", space, says)) return status;
  parallel_for(count, count * width * static_cast<int64_t>(sizeof(T)) >= 256 * 1024, [=](int64_t i) {
    int64_t coordinate[kRank], to, from;
    coordinates<kRank>(i, space.sizes, coordinate);
    (void)space.offsets(coordinate, to, from);
    memcpy(out + to, whole + from, static_cast<size_t>(width) * sizeof(T));
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_TAKE_H_
