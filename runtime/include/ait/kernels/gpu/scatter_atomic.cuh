/// @file scatter_atomic.cuh
/// @brief Values added to elements of a tensor by index with atomic operations: the order of the additions differs from run to run.
#ifndef AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
#define AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"

namespace ait::gpu {

/// @brief The type in which an atomic operation adds elements of `T`.
template <class T>
using atomic_word_t = std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>>;

inline constexpr int kScatterAtomicThreads = 256;
inline constexpr int kScatterCountersBytes = 48 * 1024;  ///< of the sums that a block keeps in shared memory

/// A thread adds a value.
template <class Space>
__global__ void __launch_bounds__(kScatterAtomicThreads) scatter_atomic_kernel(Space space, int64_t places, int64_t columns, int64_t count) {
  using Word = atomic_word_t<typename Space::Value>;
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

/// Few elements of one row: a block adds its values in shared memory first, so that blocks seldom wait for each other.
template <class Space>
__global__ void __launch_bounds__(kScatterAtomicThreads) scatter_counters_kernel(Space space, int64_t places, int targets) {
  using Word = atomic_word_t<typename Space::Value>;
  AIT_DYNAMIC_SHARED(16, scatter_counters);
  Word* const sums = reinterpret_cast<Word*>(scatter_counters);
  for (int t = threadIdx.x; t < targets; t += kScatterAtomicThreads) sums[t] = Word(0);
  wait_for_previous();
  allow_next();
  __syncthreads();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kScatterAtomicThreads;
#pragma unroll 4
  for (int64_t place = static_cast<int64_t>(blockIdx.x) * kScatterAtomicThreads + threadIdx.x; place < places; place += stride) {
    const int64_t target = space.target(0, place);
    if (target >= 0) atomicAdd(sums + target, static_cast<Word>(space.values[space.dense_of_place(place)]));
  }
  __syncthreads();
  for (int t = threadIdx.x; t < targets; t += kScatterAtomicThreads) {
    if (sums[t] != Word(0)) atomicAdd(reinterpret_cast<Word*>(space.out + space.whole_of_target(t)), sums[t]);
  }
}

/// @brief Adds values to the elements of `out` that a space names; the groups of loops are those of `scatter`. A place with an index outside of its dim
/// is skipped. `T` has 32 or 64 bits.
template <int kSerial, int kKeyed, int kRank, int kIndices, class Id, class T>
int32_t scatter_atomic(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const T* values, T* out) {
  using Space = ScatterSpace<AddElement, kSerial, kKeyed, kRank, kIndices, Id, T>;
  const Space all{space, values, out};
  const int64_t places = all.places(), columns = all.columns(), count = all.rows() * places * columns, targets = all.targets();
  if (count <= 0 || targets <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(kScatterAtomicThreads);
  config.dependent = true;
  constexpr int64_t kEach = 16, kBlocks = 512;  // values of a thread, at least; blocks that fill a card
  const int64_t bytes = targets * int64_t(sizeof(T));
  if (count == places && bytes <= kScatterCountersBytes && places >= 4 * targets && places >= kEach * kScatterAtomicThreads) {
    config.grid = dim3(ceil_div(places, kEach * kScatterAtomicThreads, kBlocks));
    config.shared_bytes = static_cast<uint32_t>(bytes);
    return launch(ctx, config, scatter_counters_kernel<Space>, all, places, static_cast<int>(targets));
  }
  config.grid = dim3(ceil_div(count, kScatterAtomicThreads, 1 << 20));
  return launch(ctx, config, scatter_atomic_kernel<Space>, all, places, columns, count);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
