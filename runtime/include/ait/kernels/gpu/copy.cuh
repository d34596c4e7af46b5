/// @file copy.cuh
/// @brief Copies between strided buffers: permute, slice, concat, expand; in accesses of 16 bytes wherever rows are contiguous on both sides.
#ifndef AIT_KERNELS_GPU_COPY_CUH_
#define AIT_KERNELS_GPU_COPY_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

/// A copy of words, the strides in words.
template <bool kWide>
struct StridedCopy {
  int rank;
  int64_t words;
  CopyDim dims[kMaxCopyRank];
  Divider sizes[kMaxCopyRank];

  /// The plan with its last dim counted in words of `factor` elements, the other strides divided by it.
  StridedCopy(const CopyPlan& plan, int64_t factor) : rank(plan.rank), words(1) {
    for (int d = 0; d < rank; ++d) {
      const bool inner = d == rank - 1;
      const CopyDim dim = plan.dims[d];
      dims[d] = factor == 1 ? dim : CopyDim{inner ? dim.size / factor : dim.size, inner ? 1 : dim.in / factor, inner ? 1 : dim.out / factor};
      words *= dims[d].size;
      if constexpr (!kWide) sizes[d] = Divider(static_cast<uint32_t>(dims[d].size));
    }
  }
};

template <class Word, bool kWide>
__global__ void copy_strided_kernel(StridedCopy<kWide> plan, const Word* in, Word* out) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t word = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; word < plan.words; word += stride) {
    int64_t from = 0, to = 0;
    if constexpr (kWide) {
      int64_t linear = word;
      for (int d = plan.rank - 1; d >= 0; --d) {
        const int64_t quotient = linear / plan.dims[d].size;
        const int64_t coordinate = linear - quotient * plan.dims[d].size;
        from += coordinate * plan.dims[d].in;
        to += coordinate * plan.dims[d].out;
        linear = quotient;
      }
    } else {
      uint32_t linear = static_cast<uint32_t>(word);
      for (int d = plan.rank - 1; d > 0; --d) {
        const uint32_t quotient = plan.sizes[d].divide(linear);
        const int64_t coordinate = linear - quotient * plan.sizes[d].divisor;
        from += coordinate * plan.dims[d].in;
        to += coordinate * plan.dims[d].out;
        linear = quotient;
      }
      from += linear * plan.dims[0].in;
      to += linear * plan.dims[0].out;
    }
    out[to] = in[from];
  }
}

/// Rows are contiguous in the input, columns in the output; both go through shared memory in square tiles.
struct TiledCopy {
  int rank;  // of the outer dims
  int64_t tiles, row_tiles, column_tiles;
  CopyDim rows, columns;
  CopyDim outer[kMaxCopyRank];
};

/// Where the rows and columns of a tile begin on both sides, in elements.
struct TilePlace {
  int64_t row, column, from, to;

  __device__ __forceinline__ TilePlace(const TiledCopy& plan, int64_t index, int tile_rows, int tile_columns) {
    int64_t linear = index / plan.column_tiles;
    column = (index - linear * plan.column_tiles) * tile_columns;
    const int64_t batch = linear / plan.row_tiles;
    row = (linear - batch * plan.row_tiles) * tile_rows;
    from = row * plan.rows.in + column * plan.columns.in;
    to = row * plan.rows.out + column * plan.columns.out;
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

inline constexpr int kTileThreads = 256;

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
      if (r < rows && lane < columns) out[to + r * plan.rows.out + lane] = tile[lane][r];
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
      memcpy(&low, &columns[j][i / 2 * 2], 4);
      memcpy(&high, &columns[j + 1][i / 2 * 2], 4);
      words[j / 2] = i % 2 == 0 ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
    }
    memcpy(&row, &words, sizeof(row));
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
      memcpy(&value, &element, 2);
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
  memcpy(&to, &words, sizeof(to));
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
      memcpy(&run, &turned, sizeof(run));
      tile[square_row * kN + i][square_column ^ square_row] = run;
    }
    __syncthreads();
    for (int k = 0; k < kRunsOfThread; ++k) {
      const int row = k * kSide + threadIdx.x / kSide, column = threadIdx.x % kSide;
      const int64_t left = all_columns - column * kN;
      if (row >= all_rows || left <= 0) continue;
      const Run run = tile[row][column ^ (row / kN)];
      Word* to = out + place.to + row * plan.rows.out + column * kN;
      if (left >= kN) {
        *reinterpret_cast<Run*>(to) = run;
      } else {
        Word turned[kN];
        memcpy(&turned, &run, sizeof(run));
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
  bool aligned = reinterpret_cast<uintptr_t>(data) % bytes == 0 && along.*side * element % bytes == 0;
  for (int d = 0; d < plan.rank; ++d) aligned = aligned && plan.outer[d].*side * element % bytes == 0;
  return aligned;
}

template <class Word>
int32_t launch_tiled(const Context& ctx, const CopyPlan& plan, int unit, const void* in, void* out) {
  constexpr int kTile = sizeof(Word) <= 2 ? 64 : 32, kN = kSquare<Word>;
  TiledCopy tiled;
  tiled.rank = 0;
  int64_t batches = 1;
  for (int d = 0; d + 1 < plan.rank; ++d) {
    if (d == unit) continue;
    tiled.outer[tiled.rank++] = plan.dims[d];
    batches *= plan.dims[d].size;
  }
  tiled.rows = plan.dims[unit];
  tiled.columns = plan.dims[plan.rank - 1];
  const auto cut = [&](int rows, int columns) {
    tiled.row_tiles = (tiled.rows.size + rows - 1) / rows;
    tiled.column_tiles = (tiled.columns.size + columns - 1) / columns;
    tiled.tiles = batches * tiled.row_tiles * tiled.column_tiles;
  };
  LaunchConfig config;
  config.dependent = true;
  const Word* from = static_cast<const Word*>(in);
  Word* to = static_cast<Word*>(out);
  constexpr int64_t kSize = sizeof(Word), kBytes = kSize * kN;
  if constexpr (sizeof(Word) < 16) {
    if (tiled.rows.size >= kN && tiled.columns.size >= kN && runs_aligned(tiled, out, kBytes, kSize, &CopyDim::out, tiled.rows)) {
      cut(kSquaresOfSide * kN, kSquaresOfSide * kN);
      config.block = dim3(kTileThreads);
      config.grid = dim3(ceil_div(tiled.tiles, 1, 1 << 20));
      const bool aligned = runs_aligned(tiled, in, kBytes, kSize, &CopyDim::in, tiled.columns);
      return launch(ctx, config, aligned ? copy_squares_kernel<Word, true> : copy_squares_kernel<Word, false>, tiled, from, to);
    }
  }
  cut(kTile, kTile);
  config.block = dim3(kTileThreads);
  config.grid = dim3(ceil_div(tiled.tiles, 1, 1 << 20));
  return launch(ctx, config, copy_tiled_kernel<Word, kTile>, tiled, from, to);
}

template <class Word, bool kWide = false>
int32_t launch_strided(const Context& ctx, const CopyPlan& plan, int64_t factor, const void* in, void* out) {
  const StridedCopy<kWide> strided(plan, factor);
  LaunchConfig config;
  config.block = dim3(strided.words >= 65536 ? 256 : 128);
  config.grid = dim3(ceil_div(strided.words, config.block.x, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, copy_strided_kernel<Word, kWide>, strided, static_cast<const Word*>(in), static_cast<Word*>(out));
}

/// Rows that are contiguous on both sides, wherever they begin: their number, their elements, and the dims that they lie in.
struct RowCopy {
  int rank;
  uint32_t total;  ///< chunks of all rows
  int64_t length;
  Divider chunks;  ///< of a row
  CopyDim dims[kMaxCopyRank];
  Divider sizes[kMaxCopyRank];
};

/// A chunk is what 16 bytes hold, cut where the output is aligned; what lies around it in the input is read and shifted.
template <class T>
__global__ void __launch_bounds__(256) copy_rows_kernel(RowCopy plan, const T* in, T* out) {
  constexpr int kVec = 16 / sizeof(T), kUnroll = 4, kLine = 128;
  wait_for_previous();
  allow_next();
  struct Chunk {
    const T* from;
    T* to;
    int64_t i;
    uint32_t live;
  };
  const auto locate = [&](uint32_t index) {
    uint32_t linear = plan.chunks.divide(index);
    Chunk chunk{in, out, 0, 0};
    chunk.i = static_cast<int64_t>(index - linear * plan.chunks.divisor) * kVec;
    for (int d = plan.rank - 1; d >= 0; --d) {
      const uint32_t quotient = plan.sizes[d].divide(linear);
      const int64_t coordinate = linear - quotient * plan.sizes[d].divisor;
      chunk.from += coordinate * plan.dims[d].in;
      chunk.to += coordinate * plan.dims[d].out;
      linear = quotient;
    }
    chunk.i -= static_cast<int64_t>(reinterpret_cast<uintptr_t>(chunk.to) % kLine / sizeof(T));
    chunk.from += chunk.i, chunk.to += chunk.i;
    const int64_t first = chunk.i < 0 ? -chunk.i : 0, last = plan.length - chunk.i;
    if (first < kVec && last > first) {
      chunk.live = ((1u << kVec) - 1) & ~((1u << first) - 1);
      if (last < kVec) chunk.live &= (1u << last) - 1;
    }
    return chunk;
  };
  const auto deep = [&](const Chunk& chunk) { return chunk.i >= kVec && chunk.i + 2 * kVec <= plan.length; };
  const uint32_t block = blockDim.x * kUnroll;
  for (uint32_t base = blockIdx.x * block + threadIdx.x; base < plan.total; base += gridDim.x * block) {
    Words<T, kVec, true> words[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint32_t index = base + u * blockDim.x;
      if (index >= plan.total) continue;
      const Chunk chunk = locate(index);
      words[u].read(chunk.from, deep(chunk));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint32_t index = base + u * blockDim.x;
      if (index >= plan.total) continue;
      const Chunk chunk = locate(index);
      if (chunk.live == 0) continue;
      T elements[kVec];
      words[u].elements(chunk.from, deep(chunk), chunk.live, elements);
      store_within<kVec>(chunk.to, chunk.i, plan.length - chunk.i, elements);
    }
  }
}

/// Rows shorter than this many bytes are not worth cutting.
inline constexpr int64_t kShortRow = 256;

template <class T>
int32_t launch_rows(const Context& ctx, const CopyPlan& plan, int64_t rows, const void* in, void* out) {
  constexpr int64_t kVec = 16 / sizeof(T), kLead = 128 / sizeof(T) - 1;
  RowCopy copy;
  copy.rank = plan.rank - 1;
  copy.length = plan.dims[plan.rank - 1].size;
  const int64_t chunks = (copy.length + kLead + kVec - 1) / kVec;
  copy.chunks = Divider(static_cast<uint32_t>(chunks));
  copy.total = static_cast<uint32_t>(rows * chunks);
  for (int d = 0; d < copy.rank; ++d) {
    copy.dims[d] = plan.dims[d];
    copy.sizes[d] = Divider(static_cast<uint32_t>(plan.dims[d].size));
  }
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(copy.total, 256 * 4, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, copy_rows_kernel<T>, copy, static_cast<const T*>(in), static_cast<T*>(out));
}

/// The widest access, in bytes, that both sides allow along a contiguous last dim.
inline int64_t access_bytes(const CopyPlan& plan, int64_t element, const void* in, const void* out) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out) | 16;
  for (int d = 0; d < plan.rank; ++d) {
    const CopyDim& dim = plan.dims[d];
    if (d == plan.rank - 1) {
      if (dim.in != 1 || dim.out != 1) return element;
      bits |= static_cast<uintptr_t>(dim.size * element);
    } else {
      bits |= static_cast<uintptr_t>(dim.in * element) | static_cast<uintptr_t>(dim.out * element);
    }
  }
  return static_cast<int64_t>(bits & (~bits + 1));  // the lowest bit
}
}  // namespace detail

/// @brief out[i, j, ...] = in[i, j, ...], bit for bit; strides in elements, 0 in the input where it is broadcast.
template <class T, size_t kRank>
int32_t copy(const Context& ctx, const int64_t (&sizes)[kRank], const T* in, const int64_t (&in_strides)[kRank], T* out,
             const int64_t (&out_strides)[kRank]) {
  using Element = word_t<sizeof(T)>;
  constexpr int64_t kElement = sizeof(T);
  CopyPlan plan = plan_copy(sizes, in_strides, out_strides);
  if (plan.empty) return 0;
  if (plan.rank == 0) plan.dims[plan.rank++] = {1, 1, 1};
  int64_t elements = 1;
  for (int d = 0; d < plan.rank; ++d) elements *= plan.dims[d].size;
  if (elements >= int64_t(1) << 31) return detail::launch_strided<Element, true>(ctx, plan, 1, in, out);
  const CopyDim& inner = plan.dims[plan.rank - 1];
  const int unit = plan.input_unit_dim();
  if (inner.out == 1 && inner.in != 1 && inner.in != 0 && unit >= 0) return detail::launch_tiled<Element>(ctx, plan, unit, in, out);
  const int64_t bytes = detail::access_bytes(plan, kElement, in, out);
  if constexpr (kElement < 16) {
    const bool rows = bytes < 16 && inner.in == 1 && inner.out == 1 && inner.size * kElement >= detail::kShortRow;
    if (rows) return detail::launch_rows<Element>(ctx, plan, elements / inner.size, in, out);
  }
  if (bytes >= 16) return detail::launch_strided<uint4>(ctx, plan, 16 / kElement, in, out);
  if (bytes >= 8 && kElement < 8) return detail::launch_strided<uint2>(ctx, plan, 8 / kElement, in, out);
  if (bytes >= 4 && kElement < 4) return detail::launch_strided<uint32_t>(ctx, plan, 4 / kElement, in, out);
  return detail::launch_strided<Element>(ctx, plan, 1, in, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_CUH_
