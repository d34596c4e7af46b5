/// @file copy_tiled.cuh
/// @brief Copies whose rows are contiguous in the input and whose columns are in the output: tiles that shared memory turns.
#ifndef AIT_KERNELS_GPU_COPY_TILED_CUH_
#define AIT_KERNELS_GPU_COPY_TILED_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/copy_few.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

/// Rows are contiguous in the input, columns in the output; both go through shared memory in square tiles. Rows may be two dims that are one in the
/// input, of which the inner one has `period` rows: a step of the outer one is `out_of_period` in the output.
struct TiledCopy {
  int rank;  // of the outer dims
  int64_t tiles, row_tiles, column_tiles;
  CopyDim rows, columns;
  CopyDim outer[kMaxCopyRank];
  int period = 0;  // 0 where rows are one dim
  int64_t out_of_period = 0;

  /// @brief The copy of a plan whose rows are along the dim `unit`, its columns along the last dim.
  TiledCopy(const CopyPlan& plan, int unit) : rank(0), rows(plan.dims[unit]), columns(plan.dims[plan.rank - 1]) {
    for (int d = 0; d + 1 < plan.rank; ++d) {
      if (d != unit) outer[rank++] = plan.dims[d];
    }
  }

  /// Where a row begins in the output.
  AIT_FN int64_t out_of(int64_t row) const {
    if (period == 0) return row * rows.out;
    const uint32_t number = static_cast<uint32_t>(row) / static_cast<uint32_t>(period);
    return number * out_of_period + (row - static_cast<int64_t>(number) * period) * rows.out;
  }

  /// @brief Lets rows that are fewer than `wanted` continue along an outer dim that follows them in the input, if they are then more than `few`, for which
  /// there is a kernel whose rows are one dim.
  void extend_rows(int64_t wanted, int64_t few) {
    for (int d = 0; d < rank && rows.size < wanted; ++d) {
      if (outer[d].in != rows.size || rows.size * outer[d].size <= few) continue;
      period = static_cast<int>(rows.size), out_of_period = outer[d].out;
      rows.size *= outer[d].size;
      for (--rank; d < rank; ++d) outer[d] = outer[d + 1];
      return;
    }
  }
};

/// Where the rows and columns of a tile begin in the input, and the columns in the output, in elements.
struct TilePlace {
  int64_t row, column, from, to;

  __device__ __forceinline__ TilePlace(const TiledCopy& plan, int64_t index, int tile_rows, int tile_columns) {
    int64_t linear = index / plan.column_tiles;
    column = (index - linear * plan.column_tiles) * tile_columns;
    const int64_t batch = linear / plan.row_tiles;
    row = (linear - batch * plan.row_tiles) * tile_rows;
    from = row * plan.rows.in + column * plan.columns.in;
    to = column * plan.columns.out;
    linear = batch;
    for (int d = plan.rank - 1; d >= 0; --d) {
      const int64_t quotient = linear / plan.outer[d].size;
      const int64_t coordinate = linear - quotient * plan.outer[d].size;
      from += coordinate * plan.outer[d].in;
      to += coordinate * plan.outer[d].out;
      linear = quotient;
    }
  }
};

template <class Word, int kTile>
__global__ void __launch_bounds__(kTileThreads) copy_tiled_kernel(TiledCopy plan, const Word* in, Word* out) {
  __shared__ Word tile[kTile][kTile + (sizeof(Word) < 4 ? 4 / sizeof(Word) : 1)];
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kTile;
  const int group = threadIdx.x / kTile;
  constexpr int kGroups = kTileThreads / kTile;
  for (int64_t index = blockIdx.x; index < plan.tiles; index += gridDim.x) {
    const TilePlace place(plan, index, kTile, kTile);
    const int64_t from = place.from, to = place.to;
    const int64_t rows = plan.rows.size - place.row, columns = plan.columns.size - place.column;
    for (int c = group; c < kTile; c += kGroups) {
      if (c < columns && lane < rows) tile[c][lane] = in[from + c * plan.columns.in + lane];
    }
    __syncthreads();
    for (int r = group; r < kTile; r += kGroups) {
      if (r < rows && lane < columns) out[to + plan.out_of(place.row + r) + lane] = tile[lane][r];
    }
    __syncthreads();
  }
}

/// A thread turns a square of this many elements a side, whose rows are one access each.
template <class Word>
inline constexpr int kSquare = sizeof(Word) == 1 ? 8 : 16 / static_cast<int>(sizeof(Word));

/// Squares of a tile along either side, one a thread.
inline constexpr int kSquaresOfSide = 16;

/// Row `i` of the square whose columns are `columns`.
template <class Word, int kN>
__device__ __forceinline__ void turn(const Word (&columns)[kN][kN], int i, Word (&row)[kN]) {
  if constexpr (sizeof(Word) == 2) {
    uint32_t words[kN / 2];
#pragma unroll
    for (int j = 0; j < kN; j += 2) {
      uint32_t low, high;
      copy_bytes(&low, &columns[j][i / 2 * 2], 4);
      copy_bytes(&high, &columns[j + 1][i / 2 * 2], 4);
      words[j / 2] = i % 2 == 0 ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
    }
    copy_bytes(&row, &words, sizeof(row));
  } else {
#pragma unroll
    for (int j = 0; j < kN; ++j) row[j] = columns[j][i];
  }
}

/// Reads neighbours of two bytes, in pairs; the first of all is alone where it is `kOdd`, the second of its pair.
template <bool kOdd, class Word, int kN>
__device__ __forceinline__ void read_pairs(const Word* from, Word (&to)[kN]) {
  static_assert(sizeof(Word) == 2 && kN % 2 == 0, "pairs of 4 bytes");
  uint32_t words[kN / 2];
  if constexpr (kOdd) {
    const auto bits = [](const Word& element) {
      uint16_t value;
      copy_bytes(&value, &element, 2);
      return static_cast<uint32_t>(value);
    };
    uint32_t last = bits(from[0]) << 16;
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) {
      const uint32_t next = 2 * i + 2 < kN ? *reinterpret_cast<const uint32_t*>(from + 2 * i + 1) : bits(from[kN - 1]);
      words[i] = last >> 16 | next << 16;
      last = next;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) words[i] = *reinterpret_cast<const uint32_t*>(from + 2 * i);
  }
  copy_bytes(&to, &words, sizeof(to));
}

/// Reads the columns of a square, `step` apart, that begin at no boundary of 16 bytes. Squares of a warp lie alike in pairs: no branch diverges.
template <class Word, int kN>
__device__ __forceinline__ void read_square(const Word* from, int64_t step, Word (&square)[kN][kN]) {
  if constexpr (sizeof(Word) == 2) {
    const auto read = [&](auto odd, auto alternate) {
      constexpr bool kOdd = decltype(odd)::value, kAlternate = decltype(alternate)::value;
#pragma unroll
      for (int j = 0; j < kN; j += 2) {
        read_pairs<kOdd>(from + j * step, square[j]);
        read_pairs<kOdd != kAlternate>(from + (j + 1) * step, square[j + 1]);
      }
    };
    const bool odd = reinterpret_cast<uintptr_t>(from) % 4 != 0;
    if (step % 2 != 0) {
      odd ? read(std::true_type{}, std::true_type{}) : read(std::false_type{}, std::true_type{});
    } else {
      odd ? read(std::true_type{}, std::false_type{}) : read(std::false_type{}, std::false_type{});
    }
  } else {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
#pragma unroll
      for (int i = 0; i < kN; ++i) square[j][i] = from[j * step + i];
    }
  }
}

/// Rows that are contiguous in the input, columns that are in the output, in squares that the registers of a thread turn: accesses of 16 bytes on
/// both sides (8 of bytes), of which that of the output is aligned; the input is read by pairs or elements unless `kAligned`. What the squares of a
/// tile make is exchanged in shared memory, so that neighbours of both sides are accessed together, 256 bytes of them.
template <class Word, bool kAligned>
__global__ void __launch_bounds__(kTileThreads) copy_squares_kernel(TiledCopy plan, const Word* in, Word* out) {
  constexpr int kN = kSquare<Word>, kSide = kSquaresOfSide, kTile = kSide * kN, kRunsOfThread = kTile * kSide / kTileThreads;
  static_assert(kSide * kSide == kTileThreads, "a square a thread");
  using Run = word_t<kN * static_cast<int>(sizeof(Word))>;
  __shared__ Run tile[kTile][kSide];  // the run `c` of a row is at c ^ its square's row, so that no two of a warp meet in a bank
  wait_for_previous();
  allow_next();
  const int square_row = threadIdx.x % kSide, square_column = threadIdx.x / kSide;
  for (int64_t index = blockIdx.x; index < plan.tiles; index += gridDim.x) {
    const TilePlace place(plan, index, kTile, kTile);
    const int64_t all_rows = plan.rows.size - place.row, all_columns = plan.columns.size - place.column;
    const int64_t rows = all_rows - square_row * kN, columns = all_columns - square_column * kN;
    const Word* from = in + place.from + square_row * kN + square_column * kN * plan.columns.in;
    Word square[kN][kN];
    if (rows >= kN && columns >= kN) {
      if constexpr (kAligned) {
#pragma unroll
        for (int j = 0; j < kN; ++j) load<kN>(from + j * plan.columns.in, square[j]);
      } else {
        read_square(from, plan.columns.in, square);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
#pragma unroll
        for (int i = 0; i < kN; ++i) square[j][i] = i < rows && j < columns ? from[j * plan.columns.in + i] : Word{};
      }
    }
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      Word turned[kN];
      turn(square, i, turned);
      Run run;
      copy_bytes(&run, &turned, sizeof(run));
      tile[square_row * kN + i][square_column ^ square_row] = run;
    }
    __syncthreads();
    for (int k = 0; k < kRunsOfThread; ++k) {
      const int row = k * kSide + threadIdx.x / kSide, column = threadIdx.x % kSide;
      const int64_t left = all_columns - column * kN;
      if (row >= all_rows || left <= 0) continue;
      const Run run = read_word(&tile[row][column ^ (row / kN)]);
      Word* to = out + place.to + plan.out_of(place.row + row) + column * kN;
      if (left >= kN) {
        store_word(reinterpret_cast<Run*>(to), run);
      } else {
        Word turned[kN];
        copy_bytes(&turned, &run, sizeof(run));
#pragma unroll
        for (int j = 0; j < kN; ++j) {
          if (j < left) to[j] = turned[j];
        }
      }
    }
    __syncthreads();
  }
}

/// Whether every run of `bytes` along the contiguous dim of a side is aligned; `along` is the dim of the other side's.
inline bool runs_aligned(const TiledCopy& plan, const void* data, int64_t bytes, int64_t element, int64_t CopyDim::*side, const CopyDim& along) {
  bool aligned = reinterpret_cast<uintptr_t>(data) % bytes == 0 && along.*side * element % bytes == 0 && plan.out_of_period * element % bytes == 0;
  for (int d = 0; d < plan.rank; ++d) aligned = aligned && plan.outer[d].*side * element % bytes == 0;
  return aligned;
}

template <class Word>
inline constexpr int kTileOf = sizeof(Word) <= 2 ? 64 : 32;

/// @brief The launch of a kernel that copies tiles of so many rows and columns.
inline LaunchConfig cut_tiles(TiledCopy& tiled, int side) {
  tiled.row_tiles = (tiled.rows.size + side - 1) / side;
  tiled.column_tiles = (tiled.columns.size + side - 1) / side;
  tiled.tiles = tiled.row_tiles * tiled.column_tiles;
  for (int d = 0; d < tiled.rank; ++d) tiled.tiles *= tiled.outer[d].size;
  LaunchConfig config;
  config.dependent = true;
  config.block = dim3(kTileThreads);
  config.grid = dim3(ceil_div(tiled.tiles, 1, 1 << 20));
  return config;
}

/// @brief Turns tiles of words in shared memory.
template <class Word>
int32_t launch_tiles(const Context& ctx, TiledCopy& tiled, const Word* in, Word* out) {
  const LaunchConfig config = cut_tiles(tiled, kTileOf<Word>);
  return launch(ctx, config, copy_tiled_kernel<Word, kTileOf<Word>>, tiled, in, out);
}

/// With `kLean`, squares are not made of columns that begin at no boundary of 16 bytes.
template <class Word, bool kLean>
int32_t launch_tiled(const Context& ctx, const CopyPlan& plan, int unit, const void* in, void* out) {
  constexpr int kN = kSquare<Word>;
  TiledCopy tiled(plan, unit);
  if (tiled.columns.size > kFew) tiled.extend_rows(kTileOf<Word>, kFew);
  const Word* from = static_cast<const Word*>(in);
  Word* to = static_cast<Word*>(out);
  constexpr int64_t kSize = sizeof(Word), kBytes = kSize * kN;
  if (tiled.rows.size <= kFew || tiled.columns.size <= kFew) {
    const bool rows = tiled.rows.size <= tiled.columns.size;
    const CopyDim few = rows ? tiled.rows : tiled.columns, many = rows ? tiled.columns : tiled.rows;
    return launch_few<kLean>(ctx, FewDims{tiled.rank, tiled.outer, few, many}, from, to);
  }
  if constexpr (sizeof(Word) < 16) {
    const bool aligned = runs_aligned(tiled, in, kBytes, kSize, &CopyDim::in, tiled.columns);
    const bool written = tiled.rows.size >= kN && tiled.columns.size >= kN && runs_aligned(tiled, out, kBytes, kSize, &CopyDim::out, tiled.rows);
    if (written && (aligned || !kLean)) {
      const LaunchConfig config = cut_tiles(tiled, kSquaresOfSide * kN);
      return launch(ctx, config, aligned || kLean ? copy_squares_kernel<Word, true> : copy_squares_kernel<Word, kLean>, tiled, from, to);
    }
  }
  return launch_tiles(ctx, tiled, from, to);
}

}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_TILED_CUH_
