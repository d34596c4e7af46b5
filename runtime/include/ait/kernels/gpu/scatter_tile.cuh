/// @file scatter_tile.cuh
/// @brief Values combined with elements of many rows by index, one or several rows a block, whose elements lie in shared memory.
///
/// A block reads indices and values of its rows in the order of memory. If values are combined, each element has a list of the places that name it, which
/// threads extend in any order; then a thread looks for the places of an element in order and combines their values, and a warp does so for an element
/// with many places. If values replace elements, a word stands for each element: the place that names it and, below, the bits of that place's value; the
/// largest word is that of the last place. So both results are those of one place after the other.
#ifndef AIT_KERNELS_GPU_SCATTER_TILE_CUH_
#define AIT_KERNELS_GPU_SCATTER_TILE_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kScatterTileThreads = 512, kScatterTileRows = 64;      ///< the most rows of a block
inline constexpr int kScatterTileEach = kWarpSize == 64 ? 4 : 8;            ///< places that a thread reads at a time
inline constexpr int kScatterTilePlaces = kScatterTileThreads * kScatterTileEach;
inline constexpr int kScatterTileFew = 16;                                  ///< the most places of an element that one thread combines

/// @brief The distance of the elements of neighbouring rows in shared memory: an odd number of words, so that they are in different banks.
AIT_FN int64_t tile_pitch(int64_t targets) { return targets | 1; }

/// @brief The rows of a block: where they begin, in shared memory, and which of their numbers a thread has.
template <class Space>
struct TileRows {
  int row_bits, rows, here;  ///< `here` of them exist
  bool columns;              ///< whether neighbouring indices in memory belong to neighbouring rows
  int64_t *index_starts, *dense_starts, *whole_starts;

  /// @brief The bytes of `count` rows.
  static AIT_FN int64_t bytes(int64_t count) { return count * int64_t(sizeof(int64_t)) * (Space::kNumbers + 2); }
  __device__ __forceinline__ TileRows(const Space& space, char* memory, int row_bits_, bool columns_)
      : row_bits(row_bits_), rows(1 << row_bits_), columns(columns_) {
    index_starts = reinterpret_cast<int64_t*>(memory);
    dense_starts = index_starts + Space::kNumbers * rows;
    whole_starts = dense_starts + rows;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * rows, left = space.rows() - first;
    here = left < rows ? static_cast<int>(left) : rows;
    const int row = threadIdx.x;
    if (row >= here) return;
    int64_t dense = 0, whole = 0;
    space.template step<Space::kSerial, Space::kKeyed>(first + row, dense, whole);
    dense_starts[row] = dense;
    whole_starts[row] = whole;
    space.index_starts(first + row, index_starts + row * Space::kNumbers);
  }
  /// @brief How many numbers there are if each row has `count`.
  __device__ __forceinline__ uint32_t all(uint32_t count) const { return static_cast<uint32_t>(columns ? rows : here) * count; }
  /// @brief Calls visit(row, number) for number i: neighbouring threads have neighbours in memory.
  template <class Visit>
  __device__ __forceinline__ void visit(uint32_t i, uint32_t count, const Visit& visit) const {
    const uint32_t row = columns ? i & (rows - 1) : i / count, number = columns ? i >> row_bits : i - row * count;
    if (row < static_cast<uint32_t>(here) && number < count) visit(static_cast<int>(row), number);
  }
  __device__ __forceinline__ int64_t target(const Space& space, int row, int64_t place) const {
    return space.target_at(index_starts + row * Space::kNumbers, place);
  }
  __device__ __forceinline__ const typename Space::Value& value(const Space& space, int row, int64_t place) const {
    return space.values[dense_starts[row] + space.dense_of_place(place)];
  }
  __device__ __forceinline__ typename Space::Value& out(const Space& space, int row, int64_t target) const {
    return space.out[whole_starts[row] + space.whole_of_target(target)];
  }
};

// ** values that are combined **

/// @brief The elements of the rows of a block in shared memory, and of some places values, elements and lists.
template <class Space>
struct ScatterLists {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  static constexpr uint16_t kNone = 0xffff;
  static constexpr int kMostMany = kScatterTilePlaces / (kScatterTileFew + 1);
  A* elements;
  T* values;
  uint32_t *first, *many_count;  ///< of each element a place that names it; kNone if there is none
  uint16_t *next, *named, *many; ///< of each place the next one with its element, and the element; elements with many places

  /// @param memory aligned to 16 bytes
  AIT_FN ScatterLists(char* memory, int64_t count) {
    elements = reinterpret_cast<A*>(memory);
    values = reinterpret_cast<T*>(memory + aligned(count * int64_t(sizeof(A))));
    first = reinterpret_cast<uint32_t*>(values + kScatterTilePlaces);
    many_count = first + count;
    next = reinterpret_cast<uint16_t*>(many_count + 1);
    named = next + kScatterTilePlaces;
    many = named + kScatterTilePlaces;
  }
  static AIT_FN int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }
  /// @brief The bytes for `count` elements.
  static AIT_FN int64_t bytes(int64_t count) {
    return aligned(count * int64_t(sizeof(A))) + kScatterTilePlaces * int64_t(sizeof(T) + 4) + (count + 1) * 4 + kMostMany * 2;
  }

  /// @brief Combines the values of the places that name an element; false, without any, if they are many.
  __device__ __forceinline__ bool combine(int element) const {
    const uint32_t begin = first[element];
    int count = 0;
    for (uint32_t at = begin; at != kNone; at = next[at]) {
      if (++count > kScatterTileFew) return false;
    }
    if (count == 0) return true;
    A sum = elements[element];
    int last = -1;
    for (int i = 0; i < count; ++i) {
      int lowest = kScatterTilePlaces;
      for (uint32_t at = begin; at != kNone; at = next[at]) {
        const int place = static_cast<int>(at);
        if (place > last && place < lowest) lowest = place;
      }
      sum = Space::Combine::template apply<A>(sum, convert<A>(values[lowest]));
      last = lowest;
    }
    elements[element] = sum;
    return true;
  }
  /// @brief Combines the values of those of `count` places, `step` apart, that name an element. A warp calls.
  __device__ __forceinline__ void combine_many(uint16_t element, int from, int step, int count) const {
    const int lane = threadIdx.x % kWarpSize;
    A sum = elements[element];
    for (int begin = 0; begin < count; begin += kWarpSize) {
      const int place = from + (begin + lane) * step;
      const bool names = begin + lane < count && named[place] == element;
      const A value = names ? convert<A>(values[place]) : A{};
      for (lanes_t left = ballot(names); left != 0; left &= left - 1) {
        sum = Space::Combine::template apply<A>(sum, detail::ScatterPart<1, Space>::of_lane(value, detail::lowest_lane(left, kWarpSize)));
      }
    }
    sync_warp();  // all lanes have read the element
    if (lane == 0) elements[element] = sum;
  }
};

/// A block has `1 << row_bits` rows, up to kScatterTileRows, and kScatterTilePlaces of their places at a time.
template <class Space>
__global__ void __launch_bounds__(kScatterTileThreads) scatter_tile_kernel(Space space, int row_bits, bool columns) {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  using Lists = ScatterLists<Space>;
  AIT_DYNAMIC_SHARED(16, scatter_tile);
  const TileRows<Space> rows(space, scatter_tile, row_bits, columns);
  const int thread = threadIdx.x, targets = static_cast<int>(space.targets()), pitch = static_cast<int>(tile_pitch(targets));
  const Lists lists(scatter_tile + Lists::aligned(rows.bytes(rows.rows)), int64_t(rows.rows) * pitch);
  const int64_t places = space.places();
  const uint32_t each = kScatterTilePlaces >> row_bits, elements = rows.all(targets);
  wait_for_previous();
  allow_next();
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = thread; i < elements; i += kScatterTileThreads) {
    rows.visit(i, targets, [&](int row, uint32_t target) { lists.elements[row * pitch + target] = convert<A>(rows.out(space, row, target)); });
  }
  for (int64_t begin = 0; begin < places; begin += each) {
    for (int t = thread; t < rows.rows * pitch; t += kScatterTileThreads) lists.first[t] = Lists::kNone;
    if (thread == 0) *lists.many_count = 0;
    int element[kScatterTileEach];
    T value[kScatterTileEach];
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      element[u] = -1;
      rows.visit(u * kScatterTileThreads + thread, each, [&](int row, uint32_t at) {
        if (begin + at >= places) return;
        const int64_t target = rows.target(space, row, begin + at);
        value[u] = rows.value(space, row, begin + at);
        if (target >= 0) element[u] = row * pitch + static_cast<int>(target);
      });
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      const int place = u * kScatterTileThreads + thread;
      lists.named[place] = element[u] < 0 ? Lists::kNone : static_cast<uint16_t>(element[u]);
      if (element[u] < 0) continue;
      lists.values[place] = value[u];
      lists.next[place] = static_cast<uint16_t>(atomicExch(lists.first + element[u], static_cast<uint32_t>(place)));
    }
    __syncthreads();
    for (int t = thread; t < rows.here * pitch; t += kScatterTileThreads) {
      if (!lists.combine(t)) lists.many[atomicAdd(lists.many_count, 1u)] = static_cast<uint16_t>(t);
    }
    __syncthreads();
    const int many = static_cast<int>(*lists.many_count);
    for (int i = thread / kWarpSize; i < many; i += kScatterTileThreads / kWarpSize) {
      const int named = lists.many[i], row = named / pitch;
      lists.combine_many(static_cast<uint16_t>(named), columns ? row : row * static_cast<int>(each), columns ? rows.rows : 1, static_cast<int>(each));
    }
    __syncthreads();
  }
#pragma unroll 4
  for (uint32_t i = thread; i < elements; i += kScatterTileThreads) {
    rows.visit(i, targets, [&](int row, uint32_t target) { rows.out(space, row, target) = convert<T>(lists.elements[row * pitch + target]); });
  }
}

// ** values that replace elements **

/// @tparam Word whose upper half has room for 1 more than the number of a place, and whose lower half for the bits of a value
template <class Word, class Space>
__global__ void __launch_bounds__(kScatterTileThreads) scatter_tile_last_kernel(Space space, int row_bits, bool columns) {
  using T = typename Space::Value;
  using Bits = word_t<sizeof(T)>;
  constexpr int kHalf = 4 * sizeof(Word);
  static_assert(sizeof(T) * 2 <= sizeof(Word), "a value lies in the lower half");
  AIT_DYNAMIC_SHARED(16, scatter_tile_last);
  const TileRows<Space> rows(space, scatter_tile_last, row_bits, columns);
  Word* const words = reinterpret_cast<Word*>(scatter_tile_last + rows.bytes(rows.rows));
  const int thread = threadIdx.x, targets = static_cast<int>(space.targets()), pitch = static_cast<int>(tile_pitch(targets));
  for (int i = thread; i < rows.here * pitch; i += kScatterTileThreads) words[i] = 0;
  wait_for_previous();
  allow_next();
  __syncthreads();
  const uint32_t places = static_cast<uint32_t>(space.places()), all = rows.all(places), elements = rows.all(targets);
  for (uint32_t begin = thread; begin < all; begin += kScatterTilePlaces) {
    int element[kScatterTileEach];
    Word word[kScatterTileEach];
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      element[u] = -1;
      rows.visit(begin + u * kScatterTileThreads, places, [&](int row, uint32_t place) {
        const int64_t target = rows.target(space, row, place);
        word[u] = Word(place + 1) << kHalf | static_cast<Word>(bit_cast<Bits>(rows.value(space, row, place)));
        if (target >= 0) element[u] = row * pitch + static_cast<int>(target);
      });
    }
#pragma unroll
    for (int u = 0; u < kScatterTileEach; ++u) {
      if (element[u] >= 0) atomicMax(words + element[u], word[u]);
    }
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = thread; i < elements; i += kScatterTileThreads) {
    rows.visit(i, targets, [&](int row, uint32_t target) {
      const Word word = words[row * pitch + target];
      T& out = rows.out(space, row, target);
      out = word == 0 ? out : bit_cast<T>(static_cast<Bits>(word));  // whole sectors are written
    });
  }
}

namespace detail {
/// @brief How many rows a block has, of which each takes `bytes(rows)` of shared memory; 0 if they do not fit.
template <class Space, class Bytes>
int tile_rows(const Space& space, bool columns, const Bytes& bytes) {
  constexpr int64_t kFew = 4, kSector = 32 / sizeof(typename Space::Value), kBytes = 48 * 1024;
  const int64_t places = space.places(), most = shared_limit();
  if (space.targets() > most || places > INT32_MAX / kScatterTileRows) return 0;
  int64_t rows = columns ? kSector : 1;  // of each sector a block has all, or a part that is not too small
  while (columns && rows > kFew && bytes(rows) > most) rows /= 2;
  if (bytes(rows) > most) return 0;
  while (rows < kScatterTileRows && 2 * rows * places <= kScatterTilePlaces && bytes(2 * rows) <= kBytes) rows *= 2;
  return static_cast<int>(rows);
}

template <class Space, class Kernel>
int32_t launch_tile(const Context& ctx, const Space& space, int rows, bool columns, int64_t bytes, const Kernel& kernel) {
  LaunchConfig config;
  config.block = dim3(kScatterTileThreads);
  config.grid = dim3(grid_size((space.rows() + rows - 1) / rows));
  config.dependent = true;
  config.shared_bytes = static_cast<uint32_t>(bytes);
  return launch(ctx, config, kernel, space, key_bits(static_cast<uint64_t>(rows)) - 1, columns);
}

/// @brief Launches `scatter_tile_last_kernel` if the rows fit.
template <class Word, class Space>
int32_t scatter_tile_last(const Context& ctx, const Space& space, bool columns, bool& fits) {
  const auto bytes = [&](int64_t rows) { return TileRows<Space>::bytes(rows) + rows * tile_pitch(space.targets()) * int64_t(sizeof(Word)); };
  const int rows = space.places() < (int64_t(1) << (4 * sizeof(Word))) - 1 ? tile_rows(space, columns, bytes) : 0;
  fits = rows > 0;
  return fits ? launch_tile(ctx, space, rows, columns, bytes(rows), scatter_tile_last_kernel<Word, Space>) : 0;
}

/// @brief Combines values in tiles of rows if these fit.
/// @param columns whether neighbouring indices in memory belong to neighbouring rows
/// @param fits becomes whether they do
template <class Space>
int32_t scatter_tile(const Context& ctx, const Space& space, bool columns, bool& fits) {
  using T = typename Space::Value;
  if constexpr (std::is_same_v<typename Space::Combine, SetElement>) {
    if constexpr (sizeof(T) <= 2) {
      const int32_t status = scatter_tile_last<unsigned>(ctx, space, columns, fits);
      if (fits) return status;
    }
    if constexpr (sizeof(T) <= 4) return scatter_tile_last<unsigned long long>(ctx, space, columns, fits);
    fits = false;
    return 0;
  } else {
    using Lists = ScatterLists<Space>;
    const auto bytes = [&](int64_t rows) { return Lists::aligned(TileRows<Space>::bytes(rows)) + Lists::bytes(rows * tile_pitch(space.targets())); };
    const int rows = tile_rows(space, columns, bytes);
    fits = rows > 0 && rows * tile_pitch(space.targets()) < Lists::kNone;
    return fits ? launch_tile(ctx, space, rows, columns, bytes(rows), scatter_tile_kernel<Space>) : 0;
  }
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_TILE_CUH_
