/// @file scatter_atomic.cuh
/// @brief Values added to elements of a tensor by index with atomic operations: the order of the additions differs from run to run.
#ifndef AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
#define AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

/// @brief The type in which an atomic operation adds elements of `T`.
template <class T>
using atomic_word_t = std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>>;

inline constexpr int kScatterAtomicThreads = 256, kScatterAtomicAhead = 4;
inline constexpr int kScatterCounterThreads = 1024, kScatterCountersAhead = 8;  ///< places of a thread that are read while those before are added

/// @brief How the elements of one row are cut: a block has `part` of them in shared memory, each `copies` times, so that few lanes add to one word.
struct ScatterCounters {
  int part, parts, copies;
};

/// @brief Adds neighbours, at an address aligned to their size up to 16 bytes.
template <int kVec, class T>
__device__ __forceinline__ void add_atomically(T* to, const T (&values)[kVec]) {
#if defined(AIT_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<T, float> && kVec == 4) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(values[0]), "f"(values[1]),
                 "f"(values[2]), "f"(values[3])
                 : "memory");
    return;
  }
#endif
  using Word = atomic_word_t<T>;
#pragma unroll
  for (int j = 0; j < kVec; ++j) atomicAdd(reinterpret_cast<Word*>(to) + j, static_cast<Word>(values[j]));
}

/// A thread adds `kVec` columns of some places, which it reads before it adds the first.
template <int kVec, class Space>
__global__ void __launch_bounds__(kScatterAtomicThreads) scatter_atomic_kernel(Space space, int64_t places, int64_t chunks, int64_t count) {
  using T = typename Space::Value;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; begin < count; begin += stride * kScatterAtomicAhead) {
    T values[kScatterAtomicAhead][kVec];
    T* to[kScatterAtomicAhead];
#pragma unroll
    for (int u = 0; u < kScatterAtomicAhead; ++u) {
      to[u] = nullptr;
      const int64_t i = begin + u * stride;
      if (i >= count) continue;
      const auto [number, chunk] = detail::divide(i, chunks);
      const auto [row, place] = detail::divide(number, places);
      const int64_t target = space.target(row, place);
      if (target < 0) continue;
      int64_t dense = space.dense_of_place(place), whole = space.whole_of_target(target);
      space.template step<Space::kSerial, Space::kKeyed>(row, dense, whole);
      space.template step<Space::kSerial + Space::kKeyed, Space::kFree>(chunk * kVec, dense, whole);
      load<kVec>(space.values + dense, values[u]);
      to[u] = space.out + whole;
    }
#pragma unroll
    for (int u = 0; u < kScatterAtomicAhead; ++u) {
      if (to[u] != nullptr) add_atomically<kVec>(to[u], values[u]);
    }
  }
}

/// Few elements of one row: a block adds the values of its part of the elements in shared memory first, so that blocks seldom wait for each other.
/// @param same whether all places have one value
template <class Space>
__global__ void __launch_bounds__(kScatterCounterThreads)
    scatter_counters_kernel(Space space, int64_t places, int targets, ScatterCounters cut, bool same) {
  using T = typename Space::Value;
  using Word = atomic_word_t<T>;
  AIT_DYNAMIC_SHARED(16, scatter_counters);
  Word* const sums = reinterpret_cast<Word*>(scatter_counters);
  const int first = static_cast<int>(blockIdx.x) % cut.parts * cut.part, here = targets - first < cut.part ? targets - first : cut.part;
  const int copy = static_cast<int>(threadIdx.x) & (cut.copies - 1);
  for (int t = threadIdx.x; t < here * cut.copies; t += kScatterCounterThreads) sums[t] = Word(0);
  wait_for_previous();
  allow_next();
  __syncthreads();
  constexpr int64_t kEach = int64_t(kScatterCounterThreads) * kScatterCountersAhead;
  const T one = same ? space.values[0] : T{};
  int64_t starts[Space::kNumbers];
  space.index_starts(0, starts);
  typename Space::Index ids[kScatterCountersAhead][Space::kNumbers];
  T asked[kScatterCountersAhead];
  const auto request = [&](int64_t from) {
#pragma unroll
    for (int u = 0; u < kScatterCountersAhead; ++u) {
      const int64_t place = from + u * kScatterCounterThreads + threadIdx.x;
      if (place >= places) continue;
      space.ids_at(starts, place, ids[u]);
      if (!same) asked[u] = space.values[space.dense_of_place(place)];
    }
  };
  const int64_t step = gridDim.x / cut.parts * kEach;
  int64_t begin = blockIdx.x / cut.parts * kEach;
  request(begin);
  for (; begin < places; begin += step) {
    int element[kScatterCountersAhead];
    T values[kScatterCountersAhead];
#pragma unroll
    for (int u = 0; u < kScatterCountersAhead; ++u) {
      const bool there = begin + u * kScatterCounterThreads + threadIdx.x < places;
      const int64_t target = there ? space.target_of(ids[u]) - first : -1;
      element[u] = target < 0 || target >= here ? -1 : static_cast<int>(target) * cut.copies + copy;
      values[u] = there && !same ? asked[u] : one;
    }
    request(begin + step);
#pragma unroll
    for (int u = 0; u < kScatterCountersAhead; ++u) {
      if (element[u] >= 0) atomicAdd(sums + element[u], static_cast<Word>(values[u]));
    }
  }
  __syncthreads();
  for (int t = threadIdx.x; t < here; t += kScatterCounterThreads) {
    Word sum = Word(0);
    for (int c = 0; c < cut.copies; ++c) sum += sums[t * cut.copies + c];
    if (sum != Word(0)) atomicAdd(reinterpret_cast<Word*>(space.out + space.whole_of_target(first + t)), sum);
  }
}

namespace detail {
/// @brief How the elements of one row are cut if blocks have them in shared memory; no parts if each block would have too few.
template <class T>
ScatterCounters scatter_counters(int64_t places, int64_t targets) {
  constexpr int64_t kMostParts = 4, kCopied = 4096, kMostCopies = 32;
  const int64_t room = shared_limit() / sizeof(T), parts = (targets + room - 1) / room;
  if (places < 4 * targets || parts > kMostParts) return {0, 0, 0};
  int copies = 1;
  while (copies < kMostCopies && 2 * copies * targets <= kCopied) copies *= 2;
  return {static_cast<int>((targets + parts - 1) / parts), static_cast<int>(parts), copies};
}
}  // namespace detail

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
  if (count == places) {
    const ScatterCounters cut = detail::scatter_counters<T>(places, targets);
    if (cut.parts > 0) {
      // Blocks that fill the card, but no more than have as many places as elements, which each of them adds in the end.
      const int64_t bytes = int64_t(cut.part) * cut.copies * int64_t(sizeof(T)), resident = 2 * bytes <= shared_limit() ? 2 : 1;
      const int64_t fill = multiprocessors() * resident / cut.parts, needed = places / targets;
      const int64_t most = fill < needed ? fill : needed;
      bool same = true;
      for (int d = 0; d < kRank; ++d) same = same && (space.sizes[d] == 1 || space.dense_strides[d] == 0);
      config.block = dim3(kScatterCounterThreads);
      config.grid = dim3(cut.parts * ceil_div(places, kScatterCounterThreads * kScatterCountersAhead, most < 1 ? 1 : static_cast<uint32_t>(most)));
      config.shared_bytes = static_cast<uint32_t>(bytes);
      return launch(ctx, config, scatter_counters_kernel<Space>, all, places, static_cast<int>(targets), cut, same);
    }
  }
  constexpr int kVec = 16 / sizeof(T);
  const bool wide = all.may_access(kVec);
  const int64_t chunks = wide ? columns / kVec : columns, words = count / columns * chunks;
  config.grid = dim3(ceil_div(words, kScatterAtomicThreads * kScatterAtomicAhead, 1 << 20));
  return launch(ctx, config, wide ? scatter_atomic_kernel<kVec, Space> : scatter_atomic_kernel<1, Space>, all, places, chunks, words);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_ATOMIC_CUH_
