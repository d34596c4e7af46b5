/// @file row_tile.cuh
/// @brief Rows that a block has in shared memory and reads in the order of memory, along the rows or across them.
#ifndef AIT_KERNELS_GPU_ROW_TILE_CUH_
#define AIT_KERNELS_GPU_ROW_TILE_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kRowTileThreads = 256;

/// @brief The elements of some rows, and where each row begins in the input.
template <class T>
struct TileOfRows {
  int rows, length, pitch;
  bool columns;  ///< whether neighbours in the memory of the input belong to neighbouring rows
  int64_t* starts;
  T* elements;

  static AIT_FN int64_t bytes(int rows, int length) {
    return (rows * (int64_t(sizeof(int64_t)) + bank_pitch<T>(length) * int64_t(sizeof(T))) + 15) / 16 * 16;
  }
  __device__ __forceinline__ TileOfRows(char* memory, int most, int64_t left, int length_, bool columns_)
      : rows(left < most ? static_cast<int>(left) : most), length(length_), pitch(bank_pitch<T>(length_)), columns(columns_) {
    starts = reinterpret_cast<int64_t*>(memory);
    elements = reinterpret_cast<T*>(starts + most);
  }
  __device__ __forceinline__ T& at(int row, int place) const { return elements[row * pitch + place]; }

  /// @brief This thread's elements, in the order of a memory whose neighbours belong to neighbouring rows, or to one row.
  struct Walk {
    int inner, at, other;
    bool columns;
    __device__ __forceinline__ Walk(const TileOfRows& tile, bool across) : Walk(tile, across, tile.length) {}
    /// The first `length` places of each row.
    __device__ __forceinline__ Walk(const TileOfRows& tile, bool across, int length) : inner(across ? tile.rows : length), columns(across) {
      at = static_cast<int>(threadIdx.x) % inner;
      other = static_cast<int>(threadIdx.x) / inner;
    }
    __device__ __forceinline__ int row() const { return columns ? at : other; }
    __device__ __forceinline__ int place() const { return columns ? other : at; }
    __device__ __forceinline__ void next() {
      at += kRowTileThreads % inner;
      other += kRowTileThreads / inner;
      if (at >= inner) at -= inner, ++other;
    }
  };

  /// @brief Reads the rows from `first` on. @tparam Rows has `start(row)` and `element(start, place)`
  template <class Rows>
  __device__ __forceinline__ void read(const Rows& from, int64_t first) const {
    constexpr int kBatch = 8;
    for (int r = threadIdx.x; r < rows; r += kRowTileThreads) starts[r] = from.start(first + r);
    __syncthreads();
    Walk walk(*this, columns);
    const int outer = columns ? length : rows;
    while (walk.other < outer) {
      T read[kBatch];
      int to[kBatch];
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        to[u] = walk.other < outer ? walk.row() * pitch + walk.place() : -1;
        if (to[u] >= 0) read[u] = from.element(starts[walk.row()], walk.place());
        walk.next();
      }
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        if (to[u] >= 0) elements[to[u]] = read[u];
      }
    }
    __syncthreads();
  }
};

/// @brief How many rows a block of groups should have: more than one a group where neighbours in memory, of a sector, are more rows.
template <class T>
int rows_of_tile(int groups, bool columns) {
  constexpr int kSector = 32 / static_cast<int>(sizeof(T));
  return columns && groups < kSector ? kSector : groups;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ROW_TILE_CUH_
