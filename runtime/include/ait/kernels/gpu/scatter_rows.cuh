/// @file scatter_rows.cuh
/// @brief Values combined with elements of many rows by index: a warp has a row, or some short ones, whose elements lie in shared memory.
///
/// A warp takes the places of its rows in order, one for each lane at a time, while the next ones are read. Lanes that name one element find this out by
/// a tag for each element; only then are they combined lane by lane. So the result is that of one place after the other.
#ifndef AIT_KERNELS_GPU_SCATTER_ROWS_CUH_
#define AIT_KERNELS_GPU_SCATTER_ROWS_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kScatterRowsThreads = 256, kScatterRowsWarps = kScatterRowsThreads / kWarpSize;  ///< the most of a block
inline constexpr int kScatterRowsAhead = 8, kScatterRowsBatch = kScatterRowsAhead * kWarpSize;        ///< places of a lane and of a warp at a time
inline constexpr int kScatterRowsEach = 32;                                                           ///< the most rows of a warp
inline constexpr int kScatterRowsTags = 2048;  ///< the most tags of a warp; elements may share one, which costs time only
inline constexpr int kScatterRowsShift = 24;

/// @brief How rows are spread over blocks.
struct ScatterRowsPlan {
  int warps, each_bits;  ///< of a block; a warp has `1 << each_bits` rows
  int pitch;             ///< from row to row in shared memory
  int tags, bits;        ///< of a warp: a power of two; of the numbers of its elements
  int stage;             ///< from row to row where blocks exchange places
  uint32_t by_places, by_targets;  ///< number * this >> kScatterRowsShift is the row of a number of a warp; 0 if it has one row
  bool columns;          ///< whether neighbouring indices in memory belong to neighbouring rows; a block reads them then, else a warp those of its rows
  bool wide;             ///< whether elements are read and written in words of 16 bytes, along the rows if `columns`
};

/// @brief The part of a thread in the rows of its warp, and of its block.
template <class Space>
struct ScatterRows {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  using Id = typename Space::Index;
  static constexpr int kNumbers = Space::kNumbers, kAhead = kScatterRowsAhead, kTagged = 32 / kAhead, kWide = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  static constexpr int kBatchBits = kScatterRowsBatch == 256 ? 8 : 9;
  static_assert(kScatterRowsBatch == 1 << kBatchBits, "rows of a batch are found by shifts");
  static constexpr bool kReplaces = std::is_same_v<typename Space::Combine, SetElement>, kExact = std::is_same_v<A, T>;

  /// Places that have been asked for.
  struct Batch {
    Id ids[kAhead][kNumbers];
    T values[kAhead];
  };

  const Space& space;
  const ScatterRowsPlan& plan;
  int lane, warp, thread, threads;  ///< `threads` read together: those of the block if `columns`, else of the warp
  int row_bits, here;               ///< these have `1 << row_bits` rows, of which `here` exist
  uint32_t places, targets, count, step;
  uint32_t batches = 0;
  int64_t *index_starts, *dense_starts, *whole_starts;
  A *elements, *own;  ///< of the rows that are read together; of those of the warp
  uint32_t* tags;
  int* staged_elements;
  T* staged_values;

  static AIT_FN int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }
  static AIT_FN int64_t starts_bytes(const ScatterRowsPlan& plan) { return aligned((int64_t(plan.warps) << plan.each_bits) * 8 * (kNumbers + 2)); }
  static AIT_FN int64_t elements_bytes(const ScatterRowsPlan& plan) {
    return aligned((int64_t(plan.warps) << plan.each_bits) * plan.pitch * int64_t(sizeof(A)));
  }
  static AIT_FN int64_t tags_bytes(const ScatterRowsPlan& plan) { return aligned(int64_t(plan.warps) * plan.tags * 4); }
  static AIT_FN int64_t staged_bytes(const ScatterRowsPlan& plan, int64_t size) {
    return plan.columns ? aligned((int64_t(plan.warps) << plan.each_bits) * plan.stage * size) : 0;
  }
  static AIT_FN int64_t bytes(const ScatterRowsPlan& plan) {
    return starts_bytes(plan) + elements_bytes(plan) + tags_bytes(plan) + staged_bytes(plan, 4) + staged_bytes(plan, sizeof(T));
  }

  __device__ __forceinline__ ScatterRows(const Space& space_, const ScatterRowsPlan& plan_, char* memory)
      : space(space_), plan(plan_), lane(threadIdx.x % kWarpSize), warp(threadIdx.x / kWarpSize) {
    const int each = 1 << plan.each_bits, warp_row = warp << plan.each_bits, first = plan.columns ? 0 : warp_row;
    index_starts = reinterpret_cast<int64_t*>(memory) + first * kNumbers;
    dense_starts = reinterpret_cast<int64_t*>(memory) + plan.warps * each * kNumbers + first;
    whole_starts = dense_starts + plan.warps * each;
    memory += starts_bytes(plan);
    own = reinterpret_cast<A*>(memory) + warp_row * plan.pitch;
    elements = reinterpret_cast<A*>(memory) + first * plan.pitch;
    memory += elements_bytes(plan);
    tags = reinterpret_cast<uint32_t*>(memory) + warp * plan.tags;
    memory += tags_bytes(plan);
    staged_elements = reinterpret_cast<int*>(memory);
    staged_values = reinterpret_cast<T*>(memory + staged_bytes(plan, 4));
    thread = plan.columns ? static_cast<int>(threadIdx.x) : lane;
    threads = plan.columns ? plan.warps * kWarpSize : kWarpSize;
    row_bits = plan.each_bits;
    for (int w = plan.warps; plan.columns && w > 1; w /= 2) ++row_bits;
    const int64_t row = (static_cast<int64_t>(blockIdx.x) * plan.warps << plan.each_bits) + first, left = space.rows() - row;
    here = left < (1 << row_bits) ? (left < 0 ? 0 : static_cast<int>(left)) : 1 << row_bits;
    places = static_cast<uint32_t>(space.places());
    targets = static_cast<uint32_t>(space.targets());
    count = plan.columns ? places : here * places;
    step = plan.columns ? kScatterRowsBatch >> plan.each_bits : kScatterRowsBatch;
    for (int t = lane; t < plan.tags; t += kWarpSize) tags[t] = 0;
    if (thread >= here) return;
    int64_t dense = 0, whole = 0;
    space.template step<Space::kSerial, Space::kKeyed>(row + thread, dense, whole);
    dense_starts[thread] = dense;
    whole_starts[thread] = whole;
    space.index_starts(row + thread, index_starts + thread * kNumbers);
  }
  /// @brief Waits for the threads that read together.
  __device__ __forceinline__ void sync() const {
    if (plan.columns) {
      __syncthreads();
    } else {
      sync_warp();
    }
  }

  // ** the elements **

  /// @brief The number of words of `kVec` elements.
  template <int kVec>
  __device__ __forceinline__ uint32_t words() const {
    return plan.columns ? (1u << row_bits) / kVec * targets : here * (targets / kVec);
  }
  /// @brief Finds word `i`: false if it does not exist; else its element in memory and in shared memory.
  template <int kVec>
  __device__ __forceinline__ bool find(uint32_t i, T*& out, A*& element) const {
    if (i >= words<kVec>()) return false;
    constexpr int kBits = kVec == 1 ? 0 : kVec == 2 ? 1 : kVec == 4 ? 2 : kVec == 8 ? 3 : 4;
    const uint32_t size = targets / kVec, in_order = i * plan.by_targets >> kScatterRowsShift;
    const uint32_t row = plan.columns ? (i << kBits) & ((1u << row_bits) - 1) : in_order;
    const uint32_t target = plan.columns ? i >> (row_bits - kBits) : (i - in_order * size) * kVec;
    if (row >= static_cast<uint32_t>(here)) return false;
    out = space.out + whole_starts[row] + space.whole_of_target(target);
    element = elements + row * plan.pitch + target;
    return true;
  }
  template <int kVec>
  __device__ __forceinline__ void read_elements() const {
    constexpr int kDepth = 8;
    for (uint32_t begin = thread; begin < words<kVec>(); begin += kDepth * threads) {
      T read[kDepth][kVec];
      A* to[kDepth];
#pragma unroll
      for (int u = 0; u < kDepth; ++u) {
        T* from = nullptr;
        if (!find<kVec>(begin + u * threads, from, to[u])) {
          to[u] = nullptr;
        } else {
          load<kVec>(from, read[u]);
        }
      }
#pragma unroll
      for (int u = 0; u < kDepth; ++u) {
        if (to[u] == nullptr) continue;
        if constexpr (kVec > 1 && kExact) {
          if (!plan.columns) {
            store<kVec, false>(to[u], read[u]);  // in shared memory
            continue;
          }
        }
#pragma unroll
        for (int j = 0; j < kVec; ++j) to[u][plan.columns ? j * plan.pitch : j] = convert<A>(read[u][j]);
      }
    }
  }
  template <int kVec>
  __device__ __forceinline__ void write_elements() const {
#pragma unroll 4
    for (uint32_t i = thread; i < words<kVec>(); i += threads) {
      T* to = nullptr;
      A* from = nullptr;
      if (!find<kVec>(i, to, from)) continue;
      T written[kVec];
      bool read = false;
      if constexpr (kVec > 1 && kExact) {
        if (!plan.columns) {
          load<kVec>(from, written);
          read = true;
        }
      }
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        if (!read) written[j] = convert<T>(from[plan.columns ? j * plan.pitch : j]);
      }
      store<kVec>(to, written);
    }
  }

  // ** the places **

  /// @brief The place of item `u` in a row of a block, from the first of the batch on.
  __device__ __forceinline__ uint32_t read_place(int u) const { return (thread >> row_bits) + u * (threads >> row_bits); }
  /// @brief Row and place of item `u` from `begin` on; false if there is none.
  __device__ __forceinline__ bool locate(int u, uint32_t begin, uint32_t& row, uint32_t& place) const {
    if (plan.columns) {
      row = thread & ((1u << row_bits) - 1);  // the same for all items
      place = begin + read_place(u);
      return row < static_cast<uint32_t>(here) && place < places;
    }
    const uint32_t i = u * kWarpSize + lane;
    row = (begin + i) * plan.by_places >> kScatterRowsShift;
    place = begin + i - row * places;
    return begin + i < count;
  }
  /// @brief Asks for the places from `begin` on.
  __device__ __forceinline__ void request(uint32_t begin, Batch& batch) const {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      uint32_t row = 0, place = 0;
      if (!locate(u, begin, row, place)) continue;
      space.ids_at(index_starts + row * kNumbers, place, batch.ids[u]);
      batch.values[u] = space.values[dense_starts[row] + space.dense_of_place(place)];
    }
  }
  /// @brief The elements that those places name, among those of the warp that owns the row; -1 for none.
  __device__ __forceinline__ void resolve(uint32_t begin, const Batch& batch, int (&named)[kAhead], T (&values)[kAhead]) const {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      uint32_t row = 0, place = 0;
      const bool there = locate(u, begin, row, place);
      const int64_t target = there ? space.target_of(batch.ids[u]) : -1;
      named[u] = target < 0 ? -1 : static_cast<int>(row & ((1u << plan.each_bits) - 1)) * plan.pitch + static_cast<int>(target);
      values[u] = there ? batch.values[u] : T{};
    }
  }
  /// @brief Hands places that a block has read to the warps that own their rows, in order.
  __device__ __forceinline__ void exchange(int (&named)[kAhead], T (&values)[kAhead]) const {
    __syncthreads();  // what was there has been read
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const uint32_t at = (thread & ((1u << row_bits) - 1)) * plan.stage + read_place(u);
      staged_elements[at] = named[u];
      staged_values[at] = values[u];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const uint32_t i = u * kWarpSize + lane, row = i >> (kBatchBits - plan.each_bits);
      const uint32_t at = ((warp << plan.each_bits) + row) * plan.stage + (i & (step - 1));
      named[u] = staged_elements[at];
      values[u] = staged_values[at];
    }
  }

  /// @brief Combines a value of each lane, some of which name one element.
  /// @param late lanes whose tag another lane had taken, perhaps for another element
  __device__ __forceinline__ void combine_clashing(int named, T value, lanes_t late) const {
    constexpr int kFew = 4;
    lanes_t lanes = lanes_t(1) << lane;  // that name the element of this one
    if (count_lanes(late) <= kFew) {
      for (; late != 0; late &= late - 1) {
        const int other = shuffle(named, detail::lowest_lane(late, kWarpSize - 1));
        const lanes_t same = ballot(named == other);
        if (named == other) lanes = same;
      }
    } else {
      const uint32_t numbers[1] = {static_cast<uint32_t>(named)};
      lanes_t same[1];
      detail::lanes_with(numbers, plan.bits, same);
      lanes = same[0] & ballot(named >= 0);
    }
    if constexpr (kReplaces) {
      if (named >= 0 && lanes >> lane == 1) own[named] = value;  // the last one
    } else {
      const bool first = named >= 0 && (lanes & lanes_below()) == 0;
      A sum = first ? own[named] : A{};
      for (lanes_t left = first ? lanes : 0; ballot(left != 0) != 0; left &= left - 1) {
        const A given = detail::ScatterPart<1, Space>::of_lane(convert<A>(value), detail::lowest_lane(left, kWarpSize - 1));
        if (left != 0) sum = Space::Combine::template apply<A>(sum, given);
      }
      if (first) own[named] = sum;
    }
  }
  /// @brief Combines a batch with the elements of the warp, in order.
  __device__ __forceinline__ void combine(const int (&named)[kAhead], const T (&values)[kAhead]) {
    // A tag has a bit for each item of a lane in some batches: lanes need not wait for each other.
    const uint32_t first = batches % kTagged * kAhead;
    if (first == 0 && batches > 0) {
      for (int t = lane; t < plan.tags; t += kWarpSize) tags[t] = 0;
      sync_warp();
    }
    ++batches;
    uint32_t clashes = 0;
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const uint32_t bit = 1u << u << first;
      if (named[u] >= 0 && (atomicOr(tags + (named[u] & (plan.tags - 1)), bit) & bit) != 0) clashes |= 1u << u;
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (const lanes_t late = ballot((clashes >> u & 1) != 0)) {
        combine_clashing(named[u], values[u], late);
      } else if (named[u] >= 0) {
        A& element = own[named[u]];
        element = Space::Combine::template apply<A>(kReplaces ? A{} : element, convert<A>(values[u]));
      }
      sync_warp();
    }
  }
};

template <class Space>
__global__ void __launch_bounds__(kScatterRowsThreads, 2) scatter_rows_kernel(Space space, ScatterRowsPlan plan) {
  using Rows = ScatterRows<Space>;
  AIT_DYNAMIC_SHARED(16, scatter_rows);
  Rows rows(space, plan, scatter_rows);
  wait_for_previous();
  allow_next();
  rows.sync();
  typename Rows::Batch batch;
  rows.request(0, batch);
  if (plan.wide) {
    rows.template read_elements<Rows::kWide>();
  } else {
    rows.template read_elements<1>();
  }
  rows.sync();
  for (uint32_t begin = 0; begin < rows.count; begin += rows.step) {
    int named[Rows::kAhead];
    typename Rows::T values[Rows::kAhead];
    rows.resolve(begin, batch, named, values);
    if (rows.count - begin > rows.step) rows.request(begin + rows.step, batch);
    if (plan.columns) rows.exchange(named, values);
    rows.combine(named, values);
  }
  rows.sync();
  if (plan.wide) {
    rows.template write_elements<Rows::kWide>();
  } else {
    rows.template write_elements<1>();
  }
}

namespace detail {
/// @brief The number by which rows of `count` numbers are found for `rows` of them, up to 2^24 / count numbers in all.
inline uint32_t row_multiplier(int rows, int64_t count) {
  constexpr int64_t kOne = int64_t(1) << kScatterRowsShift;
  return rows == 1 ? 0 : static_cast<uint32_t>((kOne + count - 1) / count);
}

/// @brief The plan with so many warps and rows of a warp.
template <class Space>
ScatterRowsPlan scatter_rows_plan(const Space& space, bool columns, int warps, int each_bits) {
  constexpr int kWide = ScatterRows<Space>::kWide;
  const int64_t targets = space.targets(), places = space.places();
  const int each = 1 << each_bits, rows = warps * each;
  ScatterRowsPlan plan = {};
  plan.warps = warps;
  plan.each_bits = each_bits;
  plan.columns = columns;
  plan.wide = space.may_access_rows(kWide, columns) && (!columns || rows % kWide == 0);
  plan.pitch = static_cast<int>(plan.wide && !columns ? targets : targets | 1);
  plan.tags = 32;
  plan.bits = key_bits(static_cast<uint64_t>(each) * plan.pitch - 1);
  while (plan.tags < kScatterRowsTags && plan.tags < each * plan.pitch) plan.tags *= 2;
  plan.stage = (kScatterRowsBatch >> each_bits) + (rows < 32 ? 32 / rows : 1);  // other banks
  plan.by_places = row_multiplier(each, places);
  plan.by_targets = row_multiplier(each, plan.wide ? targets / kWide : targets);
  return plan;
}

/// @brief Combines values in rows in shared memory if these fit.
/// @param columns whether neighbouring indices in memory belong to neighbouring rows
/// @param fits becomes whether they do
template <class Space>
int32_t scatter_rows(const Context& ctx, const Space& space, bool columns, bool& fits) {
  constexpr int64_t kSector = 32 / sizeof(typename Space::Value), kMostTargets = 1 << 20, kShortRows = 2048, kFewBytes = 48 * 1024;
  const int64_t places = space.places(), targets = space.targets(), most = shared_limit();
  const auto bytes = [&](int warps, int bits) { return ScatterRows<Space>::bytes(scatter_rows_plan(space, columns, warps, bits)); };
  fits = false;
  if (targets > kMostTargets || places > INT32_MAX / kScatterRowsEach) return 0;
  int warps = kScatterRowsWarps, bits = 0;
  if (columns) {
    while (warps > 2 && bytes(warps, 0) > most) warps /= 2;
    while ((int64_t(warps) << bits) < kSector && bytes(warps, bits + 1) <= most / 2) ++bits;
  } else {
    const auto resident = [&](int count) { return (most + 1024) / (bytes(count, 0) + 1024) * count; };
    for (int fewer = warps / 2; fewer > 0; fewer /= 2) {
      if (resident(fewer) > resident(warps)) warps = fewer;
    }
  }
  // Several short rows: a warp reads all of their places at once.
  while ((2 << bits) <= kScatterRowsEach && (2 << bits) * places <= kScatterRowsBatch && (2 << bits) * targets <= kShortRows &&
         bytes(warps, bits + 1) <= kFewBytes) {
    ++bits;
  }
  const ScatterRowsPlan plan = scatter_rows_plan(space, columns, warps, bits);
  const int64_t shared = ScatterRows<Space>::bytes(plan), rows = int64_t(warps) << bits;
  fits = shared <= most;
  if (!fits) return 0;
  LaunchConfig config;
  config.block = dim3(warps * kWarpSize);
  config.grid = dim3(grid_size((space.rows() + rows - 1) / rows));
  config.dependent = true;
  config.shared_bytes = static_cast<uint32_t>(shared);
  return launch(ctx, config, scatter_rows_kernel<Space>, space, plan);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_ROWS_CUH_
