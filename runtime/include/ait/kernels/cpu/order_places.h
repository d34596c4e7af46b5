/// @file order_places.h
/// @brief The places of index tensors in the order of the elements that they name.
#ifndef AIT_KERNELS_CPU_ORDER_PLACES_H_
#define AIT_KERNELS_CPU_ORDER_PLACES_H_

#include <stdint.h>

#include <algorithm>
#include <memory>

#include "ait/context.h"
#include "ait/kernels/cpu/take.h"
#include "ait/kernels/indexed_space.h"

namespace ait::cpu {

/// @brief Keys, the row-major numbers of the elements that indices name, in ascending order, and the places that name them, in order for equal keys.
///
/// At most 2^31 - 1 places and elements. Fails with the first index outside of its dim; nothing is written then.
template <int kRank, int kIndices, class Id>
int32_t order_places(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, int32_t* keys, int32_t* places) {
  const int64_t count = space.count();
  if (count <= 0) return 0;
  if (const int32_t status = check_indices(ctx, "order", space)) return status;
  const std::unique_ptr<uint64_t[]> pairs(new uint64_t[count]);  // a key, and below it the place
  for (int64_t i = 0; i < count; ++i) {
    int64_t coordinate[kRank], number = 0;
    coordinates<kRank>(i, space.sizes, coordinate);
    bool known = true;
    for (int k = 0; k < kIndices; ++k) number = number * space.extents[k] + space.index(k, coordinate, known);
    pairs[i] = static_cast<uint64_t>(number) << 32 | static_cast<uint64_t>(i);
  }
  std::sort(pairs.get(), pairs.get() + count);
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = static_cast<int32_t>(pairs[i] >> 32);
    places[i] = static_cast<int32_t>(pairs[i] & 0xffffffffu);
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_ORDER_PLACES_H_
