/// @file scatter_atomic.cuh
/// @brief Values added to elements of a tensor by index with atomic operations: the order of the additions differs from run to run.
#ifndef AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
#define AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"

namespace ait::gpu {

/// A thread adds a value.
template <class Space>
__global__ void __launch_bounds__(256) scatter_atomic_kernel(Space space, int64_t places, int64_t columns, int64_t count) {
  using T = typename Space::Value;
  using Word = std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t column = i % columns, rest = i / columns, place = rest % places, row = rest / places;
    const int64_t target = space.target(row, place);
    if (target < 0) continue;
    int64_t dense = space.dense_of_place(place), whole = space.whole_of_target(target);
    space.template step<Space::kSerial, Space::kKeyed>(row, dense, whole);
    space.template step<Space::kSerial + Space::kKeyed, Space::kFree>(column, dense, whole);
    atomicAdd(reinterpret_cast<Word*>(space.out + whole), static_cast<Word>(space.values[dense]));
  }
}

/// @brief Adds values to the elements of `out` that a space names; the groups of loops are those of `scatter`. A place with an index outside of its dim
/// is skipped. `T` has 32 or 64 bits.
template <int kSerial, int kKeyed, int kRank, int kIndices, class Id, class T>
int32_t scatter_atomic(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const T* values, T* out) {
  using Space = ScatterSpace<AddElement, kSerial, kKeyed, kRank, kIndices, Id, T>;
  const Space all{space, values, out};
  const int64_t places = all.places(), columns = all.columns(), count = all.rows() * places * columns;
  if (count <= 0 || all.targets() <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(count, 256, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, scatter_atomic_kernel<Space>, all, places, columns, count);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
