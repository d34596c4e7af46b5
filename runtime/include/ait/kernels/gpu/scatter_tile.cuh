/// @file scatter_tile.cuh
/// @brief Values combined with elements of many rows by index, several rows a block, whose elements lie in shared memory.
///
/// A block reads indices and values of its rows in the order of memory, some places of each row at a time. Then a thread, or a warp, combines the
/// places of a row in order. So the result is that of one place after the other.
#ifndef AIT_KERNELS_GPU_SCATTER_TILE_CUH_
#define AIT_KERNELS_GPU_SCATTER_TILE_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kScatterTileThreads = 256, kScatterTileRows = 64;  ///< the most rows of a block
inline constexpr int kScatterTileBits = 11, kScatterTilePlaces = 1 << kScatterTileBits;  ///< places of all rows of a block, at a time
inline constexpr int kScatterTileEach = kScatterTilePlaces / kScatterTileThreads;

/// @brief The rows of a block in shared memory: where they begin, their elements, and some places.
template <class Space>
struct ScatterTile {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  int rows, places, targets, place_pitch, value_pitch, pitch;
  int64_t *index_starts, *dense_starts, *whole_starts;
  A* elements;
  int32_t* named;  ///< the target of a place; -1 if an index is outside of its dim
  T* values;

  /// @param memory aligned to 16 bytes, or nullptr to count the bytes
  AIT_FN ScatterTile(char* memory, int rows_, int targets_)
      : rows(rows_),
        places(kScatterTilePlaces / rows_),
        targets(targets_),
        place_pitch(bank_pitch<int32_t>(places)),
        value_pitch(bank_pitch<T>(places)),
        pitch(bank_pitch<A>(targets_)) {
    index_starts = reinterpret_cast<int64_t*>(memory);
    dense_starts = index_starts + Space::kNumbers * rows;
    whole_starts = dense_starts + rows;
    elements = reinterpret_cast<A*>(memory + elements_at());
    named = reinterpret_cast<int32_t*>(memory + named_at());
    values = reinterpret_cast<T*>(memory + values_at());
  }
  AIT_FN int64_t elements_at() const { return rows * int64_t(sizeof(int64_t)) * (Space::kNumbers + 2); }
  AIT_FN int64_t named_at() const { return elements_at() + aligned(rows * int64_t(pitch) * int64_t(sizeof(A))); }
  AIT_FN int64_t values_at() const { return named_at() + aligned(rows * int64_t(place_pitch) * 4); }
  AIT_FN int64_t bytes() const { return values_at() + rows * int64_t(value_pitch) * int64_t(sizeof(T)); }
  static AIT_FN int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }
};

/// A block has `1 << row_bits` rows, up to kScatterTileRows.
/// @tparam kWarps whether a warp has a row, not a thread
/// @param bits of the numbers of targets
/// @param columns whether neighbouring indices in memory belong to neighbouring rows
template <bool kWarps, class Space>
__global__ void __launch_bounds__(kScatterTileThreads, 3) scatter_tile_kernel(Space space, int row_bits, int bits, bool columns) {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  using Kind = typename Space::Combine;
  AIT_DYNAMIC_SHARED(16, scatter_tile);
  const int tile_rows = 1 << row_bits, place_bits = kScatterTileBits - row_bits;
  const ScatterTile<Space> tile(scatter_tile, tile_rows, static_cast<int>(space.targets()));
  const int thread = threadIdx.x, lane = thread % kWarpSize, warp = thread / kWarpSize, targets = tile.targets;
  constexpr int kWarpsOfBlock = kScatterTileThreads / kWarpSize;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * tile_rows, left = space.rows() - first_row, places = space.places();
  const int here = left < tile_rows ? static_cast<int>(left) : tile_rows;
  if (thread < here) {
    int64_t dense = 0, whole = 0;
    space.template step<Space::kSerial, Space::kKeyed>(first_row + thread, dense, whole);
    tile.dense_starts[thread] = dense;
    tile.whole_starts[thread] = whole;
    space.index_starts(first_row + thread, tile.index_starts + thread * Space::kNumbers);
  }
  wait_for_previous();
  allow_next();
  __syncthreads();
  // visit(element in shared memory, element of out) of each element of the rows
  const auto each_element = [&](const auto& visit) {
    if (columns) {
      const int row = thread & (tile_rows - 1);
      if (row >= here) return;
#pragma unroll 8
      for (int t = thread >> row_bits; t < targets; t += kScatterTileThreads >> row_bits) {
        visit(tile.elements[row * tile.pitch + t], space.out[tile.whole_starts[row] + space.whole_of_target(t)]);
      }
    } else {
      for (int row = warp; row < here; row += kWarpsOfBlock) {
#pragma unroll 8
        for (int t = lane; t < targets; t += kWarpSize) {
          visit(tile.elements[row * tile.pitch + t], space.out[tile.whole_starts[row] + space.whole_of_target(t)]);
        }
      }
    }
  };
  int32_t next_target[kScatterTileEach];
  T next_value[kScatterTileEach];
  const auto row_of = [&](int i) { return columns ? i & (tile_rows - 1) : i >> place_bits; };
  const auto place_of = [&](int i) { return columns ? i >> row_bits : i & (tile.places - 1); };
  const auto read = [&](int64_t first) {
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      const int i = u * kScatterTileThreads + thread, row = row_of(i);
      const int64_t place = first + place_of(i);
      next_target[u] = -1;
      if (row >= here || place >= places) continue;
      next_target[u] = static_cast<int32_t>(space.target_at(tile.index_starts + row * Space::kNumbers, place));
      next_value[u] = space.values[tile.dense_starts[row] + space.dense_of_place(place)];
    }
  };
  read(0);
  each_element([](A& element, T& out) { element = convert<A>(out); });
  for (int64_t first = 0; first < places; first += tile.places) {
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      const int i = u * kScatterTileThreads + thread, row = row_of(i), place = place_of(i);
      tile.named[row * tile.place_pitch + place] = next_target[u];
      if (next_target[u] >= 0) tile.values[row * tile.value_pitch + place] = next_value[u];
    }
    __syncthreads();
    if (first + tile.places < places) read(first + tile.places);
    if constexpr (!kWarps) {
      if (thread < here) {
        const int last = places - first < tile.places ? static_cast<int>(places - first) : tile.places;
#pragma unroll 4
        for (int place = 0; place < last; ++place) {
          const int target = tile.named[thread * tile.place_pitch + place];
          if (target < 0) continue;
          A& element = tile.elements[thread * tile.pitch + target];
          element = Kind::template apply<A>(element, convert<A>(tile.values[thread * tile.value_pitch + place]));
        }
      }
    } else {
      constexpr int kAhead = 4;
      for (int row = warp; row < here; row += kWarpsOfBlock) {
        A* const elements = tile.elements + row * tile.pitch;
        for (int begin = 0; begin < tile.places; begin += kAhead * kWarpSize) {
          uint32_t target[kAhead];
          lanes_t same[kAhead];
          const auto at = [&](int u) { return begin + u * kWarpSize + lane; };
#pragma unroll
          for (int u = 0; u < kAhead; ++u) target[u] = at(u) < tile.places ? static_cast<uint32_t>(tile.named[row * tile.place_pitch + at(u)]) : ~0u;
          detail::lanes_with(target, bits, same);
#pragma unroll
          for (int u = 0; u < kAhead; ++u) {
            const bool known = target[u] < static_cast<uint32_t>(targets);
            const T value = known ? tile.values[row * tile.value_pitch + at(u)] : T{};
            detail::combine_lanes<Kind>(elements, known, target[u], convert<A>(value), same[u] & ballot(known));
          }
        }
      }
    }
    __syncthreads();
  }
  each_element([](const A& element, T& out) { out = convert<T>(element); });
}

namespace detail {
/// @brief How many rows a block of `scatter_tile_kernel` has; 0 if another kernel is better.
/// @param warps becomes whether a warp has a row
template <class Space>
int scatter_tile_rows(const Space& space, bool columns, bool& warps) {
  constexpr int64_t kSerialPlaces = 128, kFewPlaces = 256, kBytes = 48 * 1024, kMostBytes = 100 * 1024;
  constexpr int kSector = 32 / static_cast<int>(sizeof(typename Space::Value));
  const int64_t places = space.places(), targets = space.targets(), most = shared_limit() < kMostBytes ? kBytes : kMostBytes;
  if (targets > kMostBytes || (!columns && places > kFewPlaces)) return 0;
  const auto bytes = [&](int rows) { return ScatterTile<Space>(nullptr, rows, static_cast<int>(targets)).bytes(); };
  int rows = kScatterTileRows;
  if (places <= kSerialPlaces && bytes(rows) <= kBytes) {
    warps = false;
    return rows;
  }
  warps = true;
  if (!columns) return 0;
  rows = kSector < rows ? kSector : rows;
  while (rows > 4 && bytes(rows) > most) rows /= 2;
  return bytes(rows) <= most ? rows : 0;
}

template <class Space>
int32_t scatter_tile(const Context& ctx, const Space& space, int rows, bool columns, bool warps) {
  const int64_t targets = space.targets();
  LaunchConfig config;
  config.block = dim3(kScatterTileThreads);
  config.grid = dim3(grid_size((space.rows() + rows - 1) / rows));
  config.dependent = true;
  config.shared_bytes = static_cast<uint32_t>(ScatterTile<Space>(nullptr, rows, static_cast<int>(targets)).bytes());
  const int bits = key_bits(static_cast<uint64_t>(targets - 1));
  if (warps) return launch(ctx, config, scatter_tile_kernel<true, Space>, space, key_bits(rows) - 1, bits, columns);
  return launch(ctx, config, scatter_tile_kernel<false, Space>, space, key_bits(rows) - 1, bits, columns);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_TILE_CUH_
