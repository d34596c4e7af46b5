/// @file scatter_wide_rows.cuh
/// @brief Values combined with elements of rows by index, as in `scatter_rows.cuh`, for longer rows: a block has a row, or a range of its elements, in
/// shared memory, and takes the places of the row in order, several for each thread at a time.
///
/// Places of a step that name one element are combined in rounds: all that are left write their number to a tag of the element, and the one with the
/// lowest number is combined. If some are left after a few rounds, those of a warp that name one element are combined together, one after the other. So
/// the result is that of one place after the other.
#ifndef AIT_KERNELS_GPU_SCATTER_WIDE_ROWS_CUH_
#define AIT_KERNELS_GPU_SCATTER_WIDE_ROWS_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kWideRowThreads = 512, kWideRowEach = 8, kWideRowStep = kWideRowThreads * kWideRowEach;
inline constexpr int kWideRowBits = 12;    ///< of the number of a place in a step
inline constexpr int kWideRowTags = 8192;  ///< elements may share a tag, which costs time only
inline constexpr int kWideRowRounds = 6;   ///< before the places of a warp are combined together
inline constexpr uint32_t kWideRowLast = 512;   ///< rounds after which the tags begin anew
static_assert(kWideRowStep == 1 << kWideRowBits, "a tag has the number of a place and that of a round");
static_assert(kWideRowLast + kWideRowRounds + kWideRowStep < 1u << (32 - kWideRowBits), "a step may need a round for each place");

/// @brief How rows are cut: each into `ranges` of at most `elements`.
struct WideRowsPlan {
  uint32_t places, targets;
  int ranges, elements, bits;  ///< `bits` of the number of an element in its range
  bool wide;                   ///< whether elements are read and written in words of 16 bytes
};

/// @brief The part of a thread in the places of its block.
template <class Space>
struct WideRow {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  using Id = typename Space::Index;
  static constexpr int kEach = kWideRowEach, kWord = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  static constexpr uint32_t kNone = ~0u;

  const Space& space;
  const WideRowsPlan& plan;
  A* elements;
  uint32_t *tags, *left;  ///< `left`: whether places are left, of this round and of the next one
  uint32_t first, here, round = 0;
  int64_t starts[Space::kNumbers], dense = 0, whole = 0;
  Id ids[kEach][Space::kNumbers];

  /// @brief Calls visit(the element in memory, in shared memory) for words of `kVec` elements.
  template <int kVec, class Visit>
  __device__ __forceinline__ void each_word(Visit visit) const {
#pragma unroll 4
    for (uint32_t i = threadIdx.x * kVec; i < here; i += kWideRowThreads * kVec) {
      visit(space.out + whole + space.whole_of_target(static_cast<int64_t>(first) + i), elements + i);
    }
  }
  template <int kVec>
  __device__ __forceinline__ void read() const {
    each_word<kVec>([](const T* from, A* to) {
      T word[kVec];
      load<kVec>(from, word);
#pragma unroll
      for (int j = 0; j < kVec; ++j) to[j] = convert<A>(word[j]);
    });
  }
  template <int kVec>
  __device__ __forceinline__ void write() const {
    each_word<kVec>([](T* to, const A* from) {
      T word[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) word[j] = convert<T>(from[j]);
      store<kVec>(to, word);
    });
  }

  static __device__ __forceinline__ uint32_t number(int u) { return u * kWideRowThreads + threadIdx.x; }
  /// @brief Asks for the indices of the places from `begin` on.
  __device__ __forceinline__ void request(uint32_t begin) {
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (begin + number(u) < plan.places) space.ids_at(starts, begin + number(u), ids[u]);
    }
  }

  /// @brief Clears the tags if their rounds have become many. All threads call, between two steps.
  __device__ __forceinline__ void begin_anew() {
    if (round < kWideRowLast) return;
    for (int t = threadIdx.x; t < kWideRowTags; t += kWideRowThreads) tags[t] = 0;
    round = 0;
    __syncthreads();
  }

  /// @brief One round of the places of the mask `open`; returns those that won. All threads call.
  __device__ __forceinline__ uint32_t won(const uint32_t (&named)[kEach], uint32_t open) {
    ++round;
    const auto tag = [&](int u) { return round << kWideRowBits | (kWideRowStep - 1 - number(u)); };
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (open >> u & 1) atomicMax(tags + named[u] % kWideRowTags, tag(u));
    }
    __syncthreads();
    if (threadIdx.x == 0) left[(round + 1) % 2] = 0;
    uint32_t found = 0;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if ((open >> u & 1) && tags[named[u] % kWideRowTags] == tag(u)) found |= 1u << u;
    }
    return found;
  }
  /// @brief Ends a round; returns whether places are left in the block.
  __device__ __forceinline__ bool ended(uint32_t open) const {
    if (const lanes_t lanes = ballot(open != 0); lanes != 0 && threadIdx.x % kWarpSize == 0) atomicOr(left + round % 2, 1u);
    __syncthreads();
    return left[round % 2] != 0;
  }

  /// @brief Combines the values of the places in `open`, in order.
  __device__ __forceinline__ void combine(const uint32_t (&named)[kEach], const T (&values)[kEach], uint32_t open) {
    for (int turn = 0; turn < kWideRowRounds; ++turn) {
      const uint32_t now = won(named, open);
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        if (now >> u & 1) elements[named[u]] = Space::Combine::template apply<A>(elements[named[u]], convert<A>(values[u]));
      }
      open &= ~now;
      if (!ended(open)) return;
    }
    lanes_t same[kEach];
    uint32_t leading = 0;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const uint32_t numbers[1] = {named[u]};
      lanes_t found[1];
      detail::lanes_with(numbers, plan.bits, found);
      same[u] = found[0] & ballot((open >> u & 1) != 0);
      if ((open >> u & 1) && (same[u] & lanes_below()) == 0) leading |= 1u << u;
    }
    bool goes_on = true;
    while (goes_on) {
      const uint32_t now = won(named, leading);
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        const bool leads = (now >> u & 1) != 0;
        A sum = leads ? elements[named[u]] : A{};
        for (lanes_t rest = leads ? same[u] : 0; ballot(rest != 0) != 0; rest &= rest - 1) {
          const A given = detail::ScatterPart<1, Space>::of_lane(convert<A>(values[u]), detail::lowest_lane(rest, kWarpSize - 1));
          if (rest != 0) sum = Space::Combine::template apply<A>(sum, given);
        }
        if (leads) elements[named[u]] = sum;
      }
      leading &= ~now;
      goes_on = ended(leading);
    }
  }
};

template <class Space>
__global__ void __launch_bounds__(kWideRowThreads, 2) scatter_wide_rows_kernel(Space space, WideRowsPlan plan) {
  using Row = WideRow<Space>;
  using T = typename Space::Value;
  AIT_DYNAMIC_SHARED(16, scatter_wide_rows);
  __shared__ uint32_t left[2];
  wait_for_previous();
  allow_next();
  const int64_t of = static_cast<int64_t>(blockIdx.x) / plan.ranges;
  const uint32_t first = static_cast<uint32_t>(blockIdx.x % plan.ranges) * plan.elements;
  const uint32_t here = plan.targets - first < static_cast<uint32_t>(plan.elements) ? plan.targets - first : plan.elements;
  uint32_t* const tags = reinterpret_cast<uint32_t*>(scatter_wide_rows);
  Row row{space, plan, reinterpret_cast<typename Row::A*>(tags + kWideRowTags), tags, left, first, here};
  space.template step<Space::kSerial, Space::kKeyed>(of, row.dense, row.whole);
  space.index_starts(of, row.starts);
  row.request(0);
  for (int t = threadIdx.x; t < kWideRowTags; t += kWideRowThreads) tags[t] = 0;
  if (threadIdx.x < 2) left[threadIdx.x] = 0;
  if (plan.wide) {
    row.template read<Row::kWord>();
  } else {
    row.template read<1>();
  }
  __syncthreads();
  for (uint32_t begin = 0; begin < plan.places; begin += kWideRowStep) {
    uint32_t named[kWideRowEach], open = 0;
    T values[kWideRowEach] = {};
#pragma unroll
    for (int u = 0; u < kWideRowEach; ++u) {
      const bool there = begin + Row::number(u) < plan.places;
      const int64_t target = there ? space.target_of(row.ids[u]) - first : -1;
      const bool inside = target >= 0 && target < static_cast<int64_t>(here);
      named[u] = inside ? static_cast<uint32_t>(target) : 0;
      if (inside) open |= 1u << u;
    }
#pragma unroll
    for (int u = 0; u < kWideRowEach; ++u) {
      if (open >> u & 1) values[u] = space.values[row.dense + space.dense_of_place(begin + Row::number(u))];
    }
    if (plan.places - begin > kWideRowStep) row.request(begin + kWideRowStep);
    row.begin_anew();
    row.combine(named, values, open);
  }
  if (plan.wide) {
    row.template write<Row::kWord>();
  } else {
    row.template write<1>();
  }
}

namespace detail {
/// @brief Combines values in rows of which a block has one, or a range of one, in shared memory, if these are many and long enough.
/// @param fits becomes whether they are
template <class Space>
int32_t scatter_wide_rows(const Context& ctx, const Space& space, bool& fits) {
  using A = typename Space::Sum;
  constexpr int64_t kLeastBytes = 8 * 1024, kLeastPlaces = 1024, kMostPlaces = 1 << 24, kMostRanges = 8, kReserved = 1024;
  constexpr int64_t kTagBytes = kWideRowTags * static_cast<int64_t>(sizeof(uint32_t));
  const int64_t places = space.places(), targets = space.targets(), rows = space.rows();
  const int64_t most = (static_cast<int64_t>(shared_limit()) - kTagBytes - kReserved) / static_cast<int64_t>(sizeof(A)) / 16 * 16;
  fits = most > 0 && targets * static_cast<int64_t>(sizeof(A)) >= kLeastBytes && places >= kLeastPlaces && places <= kMostPlaces &&
         targets <= kMostRanges * most;
  if (!fits) return 0;
  WideRowsPlan plan = {};
  plan.places = static_cast<uint32_t>(places);
  plan.targets = static_cast<uint32_t>(targets);
  plan.ranges = static_cast<int>((targets + most - 1) / most);
  plan.elements = static_cast<int>(((targets + plan.ranges - 1) / plan.ranges + 15) / 16 * 16);
  plan.ranges = static_cast<int>((targets + plan.elements - 1) / plan.elements);
  plan.bits = key_bits(static_cast<uint64_t>(plan.elements - 1));
  plan.wide = space.may_access_rows(WideRow<Space>::kWord, false);
  LaunchConfig config;
  config.block = dim3(kWideRowThreads);
  config.grid = dim3(grid_size(rows * plan.ranges));
  config.dependent = true;
  config.shared_bytes = static_cast<uint32_t>(kTagBytes + plan.elements * static_cast<int64_t>(sizeof(A)));
  return launch(ctx, config, scatter_wide_rows_kernel<Space>, space, plan);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_WIDE_ROWS_CUH_
