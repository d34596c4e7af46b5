/// @file order_places.cuh
/// @brief The places of index tensors in the order of the elements that they name, for scatters by the same indices.
#ifndef AIT_KERNELS_GPU_ORDER_PLACES_CUH_
#define AIT_KERNELS_GPU_ORDER_PLACES_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix.cuh"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/indexed_space.h"

namespace ait::gpu {

/// @brief Takes what a sort gives: keys and places of one row.
struct OrderedPlaces {
  uint32_t *keys, *places;
  __device__ __forceinline__ void store(int64_t, int64_t i, uint32_t key, uint32_t place) const {
    keys[i] = key;
    places[i] = place;
  }
};

/// A block sorts at most kRadixTile places.
template <class Space>
__global__ void __launch_bounds__(kRadixThreads) order_block_kernel(Space space, int each, int passes, OrderedPlaces to) {
  __shared__ RadixCounters counters;
  __shared__ uint32_t exchanged[kRadixTile];
  wait_for_previous();
  allow_next();
  uint32_t keys[kRadixEach];
  uint16_t places[kRadixEach];
  detail::sort_places(counters, exchanged, space, 0, each, passes, keys, places);
  const int count = static_cast<int>(space.places());
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    if (i >= each || at >= count) continue;
    const bool skipped = (places[i] & detail::kSkipped<uint16_t>) != 0;
    const uint32_t place = places[i] & static_cast<uint16_t>(~detail::kSkipped<uint16_t>);
    to.store(0, at, keys[i], place | (skipped ? detail::kSkipped<uint32_t> : 0));
  }
}

/// @brief Keys, the row-major numbers of the elements that indices name, in ascending order, and the places that name them, in order for equal keys.
///
/// The loops of the space but the last two, of size 1, are the places. One with an index outside of its dim has the key 0, and its highest bit is set.
/// @param each as of `radix_sort`
/// @param workspace of `ait_mlir/lowering/kernels/radix.py: radix_bytes`
template <int kRank, int kIndices, class Id>
int32_t order_places(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, int32_t* keys, int32_t* places, int each, void* workspace) {
  using Space = ScatterSpace<SetElement, kRank - 2, 1, kRank, kIndices, Id, uint8_t>;
  const Space of{space, nullptr, nullptr};
  const int64_t count = of.places(), targets = of.targets();
  if (count <= 0) return 0;
  if (count > INT32_MAX || targets > INT32_MAX) return ctx.fail("order: more than 2^31 - 1 places or elements");
  const int bits = key_bits(targets > 0 ? static_cast<uint64_t>(targets - 1) : 0);
  const OrderedPlaces to{reinterpret_cast<uint32_t*>(keys), reinterpret_cast<uint32_t*>(places)};
  if (count > kRadixTile) {
    return radix_sort<uint32_t>(ctx, 1, count, each, bits, detail::ScatterKeys<uint32_t, Space>{of}, to, workspace);
  }
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.dependent = true;
  const int held = static_cast<int>((count + kRadixThreads - 1) / kRadixThreads);
  return launch(ctx, config, order_block_kernel<Space>, of, held, radix_passes(bits), to);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ORDER_PLACES_CUH_
