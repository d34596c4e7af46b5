/// @file gemm_mma.cuh
/// @brief Gemm on the tensor cores of CUDA devices (sm_80 and later): a multistage pipeline of asynchronous copies around mma.sync.
///
/// A block computes one tile. Operand tiles lie in shared memory in 16-byte chunks, permuted so that ldmatrix is free of bank conflicts.
/// The accumulators pass through shared memory, so that the epilogue sees whole spans of a row and its global accesses are 16 bytes wide;
/// with `split` > 1 the blocks of a cluster share the K range of one tile and add up there (sm_90 and later).
///
/// Bytes lie as half the number of elements of 2 bytes would. The sums of integers are int32_t. Those of 8-bit floats have few bits in the tensor
/// cores: each product of 32 steps along K is added to them in float. Operands of f32 are rounded to TF32. A chunk has four of them, and a matrix of ldmatrix, eight rows of 16 bytes, is what mma.m16n8k8 wants
/// where K is contiguous; where it is not, elements are read one by one.
#ifndef AIT_KERNELS_GPU_GEMM_MMA_CUH_
#define AIT_KERNELS_GPU_GEMM_MMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kM_, kN_, kK_ tile of the result, and the step along K in elements of 2 bytes; of f32 it is half as long
/// @tparam kWarpsM_, kWarpsN_ warps along both dims of the tile
/// @tparam kStages_ tiles in flight, the one in use included
/// @tparam kBlocks_ blocks that should fit on a multiprocessor
/// @tparam kGated_ whether a result is made of two columns, one of either half of b; the tile is `kN / 2` results wide
template <int kM_, int kN_, int kK_, int kWarpsM_, int kWarpsN_, int kStages_, int kBlocks_ = 1, bool kGated_ = false>
struct Tile {
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kWarpsM = kWarpsM_, kWarpsN = kWarpsN_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kHalves = kGated_ ? 2 : 1, kCols = kN / kHalves;  ///< columns of results
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kStageBytes = (kM + kN) * kK * 2;
  static constexpr int kPipelineBytes = kStageBytes * kStages;
  /// Elements of a step along K.
  template <class T>
  static constexpr int kDepth = kK * 2 / int(sizeof(T));
  static constexpr int kPitch = kN + 8;  ///< floats from row to row of the staged accumulators

  static constexpr int phases() {
    int p = 1;
    while (p < kMmaM && kWarpsM * 16 * (kMmaM / p) * kPitch * 4 > kPipelineBytes) p *= 2;
    return p;
  }
  static constexpr int kPhases = phases();  ///< in how many pieces the accumulators pass through shared memory
  static constexpr int kPhaseM = kMmaM / kPhases;
  static constexpr int kStagedRows = kWarpsM * 16 * kPhaseM;
  static constexpr int kSharedBytes = kStagedRows * kPitch * 4 > kPipelineBytes ? kStagedRows * kPitch * 4 : kPipelineBytes;

  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kK % 32 == 0, "a warp computes whole 16 x 16 x 16 steps");
  static_assert(kMmaM % kPhases == 0 && kStages >= 2 && kSharedBytes <= 227 * 1024);
};

/// @brief 16 bytes of elements.
template <class Word>
struct alignas(16) Chunk16 {
  Word v[16 / sizeof(Word)];
};

/// @brief Tiles of an operand in shared memory, `kCols` contiguous elements a row, in permuted 16-byte chunks; and where a thread's part of
/// the next tile lies in memory. A thread always copies the same chunk of rows that are `kStep` apart.
/// @tparam kAlongCols whether tiles follow one another along the columns, else along the rows
template <class T, int kRows, int kCols, int kThreads, bool kAlongCols>
struct OperandTile {
  static constexpr int kChunk = 16 / int(sizeof(T)), kChunks = kCols / kChunk, kStep = kThreads / kChunks;
  static_assert(kChunks == 4 || kChunks % 8 == 0, "the permutation is written for rows of 64 bytes or multiples of 128");
  static_assert(kThreads % kChunks == 0 && kRows % kStep == 0, "a thread copies one chunk of every kStep-th row");

  const T* from;        ///< the first chunk of this thread in the next tile
  int64_t pitch;
  int rows, cols;       ///< how many rows and columns exist from there on
  uint32_t to;          ///< where that chunk goes in a tile
  int access;           ///< the bytes of which all chunks of the tiles start on multiples: 16, 4, or fewer

  /// The byte offset of a chunk.
  static __device__ __forceinline__ uint32_t offset(int row, int chunk) {
    const int swizzled = kChunks == 4 ? chunk ^ ((row >> 1) & 3) : chunk ^ (row & 7);
    return uint32_t(row * kChunks + swizzled) * 16u;
  }

  /// The byte offset of an element, for matrices that are read one element at a time.
  static __device__ __forceinline__ uint32_t element(int row, int col) {
    return offset(row, col / kChunk) + uint32_t(col % kChunk) * uint32_t(sizeof(T));
  }

  __device__ __forceinline__ OperandTile(const T* data, int64_t pitch_, int rows_, int cols_) : pitch(pitch_) {
    const int row = int(threadIdx.x) / kChunks, chunk = int(threadIdx.x) % kChunks;
    from = data + row * pitch + chunk * kChunk;
    rows = rows_ - row;
    cols = cols_ - chunk * kChunk;
    to = offset(row, chunk);
    const uintptr_t starts = reinterpret_cast<uintptr_t>(data) | uintptr_t(pitch * int64_t(sizeof(T)));
    access = starts % 16 == 0 ? 16 : starts % 4 == 0 ? 4 : 1;
  }

  /// Starts the copy of the next tile to `tile`, and steps on. What does not exist is zero.
  /// @tparam kAligned whether chunks start on 16 bytes; otherwise they are copied in the largest pieces that can be, or element by element
  template <bool kAligned>
  __device__ __forceinline__ void load(char* tile) {
    const int valid = cols < 0 ? 0 : (cols > kChunk ? kChunk : cols);
    const int64_t step = kStep * pitch;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      const int count = i * kStep < rows ? valid : 0;
      uint32_t offset_here = to + uint32_t(i * kStep * kChunks * 16);  // rows that are a multiple of 8 apart are permuted alike
      if constexpr (kStep % 8 != 0) offset_here = offset(int(threadIdx.x) / kChunks + i * kStep, int(threadIdx.x) % kChunks);
      if (kAligned || access == 16) {
        copy_async_16(shared_address(tile) + offset_here, from + i * step, count * int(sizeof(T)));
      } else if (access == 4) {
        constexpr int kWord = 4 / int(sizeof(T));
#pragma unroll
        for (int e = 0; e < kChunk; e += kWord) {
          const int exist = count - e < 0 ? 0 : count - e < kWord ? count - e : kWord;
          copy_async_4(shared_address(tile) + offset_here + uint32_t(e * int(sizeof(T))), from + i * step + e, exist * int(sizeof(T)));
        }
      } else {
        using Word = Bits<T>;
        Chunk16<Word> values;
#pragma unroll
        for (int e = 0; e < kChunk; ++e) values.v[e] = e < count ? reinterpret_cast<const Word*>(from + i * step)[e] : Word(0);
        *reinterpret_cast<Chunk16<Word>*>(tile + offset_here) = values;
      }
    }
    if constexpr (kAlongCols) {
      from += kCols;
      cols -= kCols;
    } else {
      from += kRows * pitch;
      rows -= kRows;
    }
  }
};

/// @brief The factors of sums in a product without scales of blocks.
struct NoScales {};

/// @brief The scales of the rows of a thread's sums in one step along K: rows `lane / 4` and 8 below in each 16 rows of the warp, times that of
/// the tile's columns.
template <class Tile>
struct RowScales {
  float v[Tile::kMmaM][2];

  /// @param row the first row of the warp; rows from `m` on have any scale
  __device__ __forceinline__ void load(const BlockScales& from, int row, int col, int group, int m) {
    const float column = from.columns[int64_t(col / from.block) * from.groups + group];
#pragma unroll
    for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = row + i * 16 + half * 8 + int(threadIdx.x) % 32 / 4;
        v[i][half] = column * from.rows[int64_t(at < m ? at : m - 1) * from.groups + group];
      }
  }
};

/// @brief One tile of `d = epilogue(a @ b)`, gated `d = epilogue(a @ b[:, :n], a @ b[:, n:])`, by a block of Tile::kThreads.
/// @tparam kAK, kBK whether K is the contiguous dim of the operand
/// @tparam kAligned whether 16-byte reads of a and b are safe
/// @param rank which of the `split` blocks of a cluster that share the K of the tile this one is
/// @param early whether b may be read before the launch before has ended
/// @param open_a gives the tiles of a from an element of K on: an `OperandTile`, or what loads and lies as one does
/// @param scales `BlockScales` whose groups are whole steps and whose blocks are whole tiles, or `NoScales`
template <class Tile, bool kAK, bool kBK, bool kAligned, class F, class OpenA, class T, class D, class... E, class Scales = NoScales>
__device__ __forceinline__ void mma_tile_of(const GemmArgs<T, D, E...>& args, const TileWork<T>& work, int split, int rank, bool early,
                                            const OpenA& open_a, const Scales& scales = {}) {
  constexpr bool kScaled = std::is_same_v<Scales, BlockScales>;
  static_assert(!kScaled || has_short_sums<T>, "sums of 8-bit floats are scaled where they are added to the others");
  static_assert(is_narrow_float<T> || std::is_same_v<T, float> || is_byte<T>,
                "the tensor cores are used for half and bfloat16, for float as TF32, and for bytes");
  static_assert(!is_byte<T> || (kAK && kBK), "K is the contiguous dim of both operands of bytes");
  using Sum = sum_t<T>;
  constexpr bool kTf32 = std::is_same_v<T, float>;
  constexpr int kDepth = Tile::template kDepth<T>;
  using BTile = OperandTile<T, kBK ? Tile::kCols : kDepth, kBK ? kDepth : Tile::kN, Tile::kThreads, kBK>;
  static_assert(kBK || Tile::kHalves == 1, "halves of b lie one below the other where K is contiguous");
  AIT_DYNAMIC_SHARED(16, gemm_shared);
  char* const shared = gemm_shared;

  const int64_t outer = work.outer, inner = work.inner;
  const int m0 = work.m0, n0 = work.n0;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int warp_m = (warp / Tile::kWarpsN) * Tile::kWarpM, warp_n = (warp % Tile::kWarpsN) * Tile::kWarpN;

  const int all_steps = (work.k + kDepth - 1) / kDepth;
  const int share = (all_steps + split - 1) / split;
  const int begin = rank * share < all_steps ? rank * share : all_steps;
  const int steps = begin + share < all_steps ? share : all_steps - begin;

  const int k0 = begin * kDepth, cols_n = work.n - n0;
  const T* b_data = work.b + k0 * args.b.row + n0 * args.b.col;
  auto a = open_a(k0);
  using ATile = decltype(a);
  const int64_t b_pitch = kBK ? args.b.col : args.b.row;
  const int b_rows = kBK ? cols_n : work.k - k0, b_cols = kBK ? work.k - k0 : cols_n;
  BTile b(b_data, b_pitch, b_rows, b_cols), up(Tile::kHalves == 2 ? b_data + args.n * b_pitch : b_data, b_pitch, b_rows, b_cols);

  auto load_a = [&](int stage) { a.template load<kAligned>(shared + stage * Tile::kStageBytes); };
  auto load_b = [&](int stage) {
    char* const to = shared + stage * Tile::kStageBytes + Tile::kM * Tile::kK * 2;
    b.template load<kAligned>(to);
    if constexpr (Tile::kHalves == 2) up.template load<kAligned>(to + Tile::kCols * Tile::kK * 2);
  };
  if (early) {
#pragma unroll
    for (int s = 0; s < Tile::kStages - 1; ++s) {
      if (s < steps) load_b(s);
    }
  }

  Sum acc[Tile::kMmaM][Tile::kMmaN][4];
#pragma unroll
  for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kMmaN; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = Sum(0);

  wait_for_previous();
  uint32_t a_frag[2][Tile::kMmaM][4], b_frag[2][Tile::kMmaN / 2][4];
  auto read = [&](int stage, int kk, uint32_t (&fa)[Tile::kMmaM][4], uint32_t (&fb)[Tile::kMmaN / 2][4]) {
    const uint32_t at = shared_address(shared) + uint32_t(stage * Tile::kStageBytes);
    const int matrix = lane / 8, row = lane % 8;
#pragma unroll
    for (int i = 0; i < Tile::kMmaM; ++i) {
      if constexpr (kAK) {
        load_matrix_x4(fa[i], at + ATile::offset(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16));
      } else if constexpr (kTf32) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          fa[i][q] = load_matrix_word(at + ATile::element(kk * 8 + lane % 4 + q / 2 * 4, warp_m + i * 16 + lane / 4 + q % 2 * 8));
        }
      } else {
        load_matrix_x4_transposed(fa[i], at + ATile::offset(kk * 16 + (matrix / 2) * 8 + row, warp_m / 8 + i * 2 + matrix % 2));
      }
    }
    const uint32_t bt = at + Tile::kM * Tile::kK * 2;
#pragma unroll
    for (int j = 0; j < Tile::kMmaN / 2; ++j) {
      if constexpr (kBK) {
        load_matrix_x4(fb[j], bt + BTile::offset(warp_n + j * 16 + (matrix / 2) * 8 + row, kk * 2 + matrix % 2));
      } else if constexpr (kTf32) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          fb[j][q] = load_matrix_word(bt + BTile::element(kk * 8 + lane % 4 + q % 2 * 4, warp_n + j * 16 + q / 2 * 8 + lane / 4));
        }
      } else {
        load_matrix_x4_transposed(fb[j], bt + BTile::offset(kk * 16 + (matrix % 2) * 8 + row, warp_n / 8 + j * 2 + matrix / 2));
      }
    }
  };

#pragma unroll
  for (int s = 0; s < Tile::kStages - 1; ++s) {
    if (s < steps) {
      load_a(s);
      if (!early) load_b(s);
    }
    copy_async_commit();
  }
  copy_async_wait<Tile::kStages - 2>();
  __syncthreads();
  if (steps > 0) read(0, 0, a_frag[0], b_frag[0]);
  int stage = 0, next = Tile::kStages - 1;
  constexpr int kInner = Tile::kK / 16;
  std::conditional_t<kScaled, RowScales<Tile>, NoScales> row_scales;
  for (int step = 0; step < steps; ++step) {
    if constexpr (kScaled) row_scales.load(scales, m0 + warp_m, n0, (begin + step) * kDepth / scales.group, work.m);
#pragma unroll
    for (int kk = 0; kk < kInner; ++kk) {
      // The fragments of the next product are on their way while this one is computed; the last one's come from the next tile.
      if (kk == kInner - 1) {
        copy_async_wait<Tile::kStages - 2>();
        __syncthreads();
        stage = stage + 1 == Tile::kStages ? 0 : stage + 1;
      }
      read(stage, (kk + 1) % kInner, a_frag[(kk + 1) % 2], b_frag[(kk + 1) % 2]);
      if (kk == 0) {
        if (step + Tile::kStages - 1 < steps) load_a(next), load_b(next);
        copy_async_commit();
        next = next + 1 == Tile::kStages ? 0 : next + 1;
      }
      auto& fa = a_frag[kk % 2];
      auto& fb = b_frag[kk % 2];
      if constexpr (kTf32) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
#pragma unroll
          for (int i = 0; i < Tile::kMmaM; ++i) fa[i][q] = round_to_tf32(fa[i][q]);
#pragma unroll
          for (int j = 0; j < Tile::kMmaN / 2; ++j) fb[j][q] = round_to_tf32(fb[j][q]);
        }
      }
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kMmaN; ++j) {
          if constexpr (kTf32) {
            mma_16x8x8(acc[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
          } else if constexpr (has_short_sums<T>) {
            float part[4] = {};
            mma_16x8x32<typename T::First, typename T::Second>(part, fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if constexpr (kScaled) {
                acc[i][j][e] += part[e] * row_scales.v[i][e / 2];
              } else {
                acc[i][j][e] += part[e];
              }
            }
          } else if constexpr (is_byte<T>) {
            mma_16x8x32<typename T::First, typename T::Second>(acc[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
          } else {
            mma_16x8x16<T>(acc[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
          }
        }
    }
  }
  copy_async_wait<0>();
  allow_next();

  Sum* staged = reinterpret_cast<Sum*>(shared);
  constexpr int kSpans = Tile::kCols / kSpan;
#pragma unroll
  for (int phase = 0; phase < Tile::kPhases; ++phase) {
    __syncthreads();
    const int staged_row = (warp / Tile::kWarpsN) * 16 * Tile::kPhaseM;
#pragma unroll
    for (int i = 0; i < Tile::kPhaseM; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kMmaN; ++j) {
        const Sum(&c)[4] = acc[phase * Tile::kPhaseM + i][j];
        Sum* to = staged + (staged_row + i * 16 + lane / 4) * Tile::kPitch + warp_n + j * 8 + (lane % 4) * 2;
        *reinterpret_cast<SumPair<Sum>*>(to) = {{c[0], c[1]}};
        *reinterpret_cast<SumPair<Sum>*>(to + 8 * Tile::kPitch) = {{c[2], c[3]}};
      }
    }
    if (Tile::kPhases == 1 && split > 1) {
      cluster_barrier();
    } else {
      __syncthreads();
    }
    constexpr int kRows = 16 * Tile::kPhaseM, kTotal = Tile::kStagedRows * kSpans, kBatch = 4;
    const int each = Tile::kThreads * split;
    for (int first = rank * Tile::kThreads + int(threadIdx.x); first < kTotal; first += kBatch * each) {
      // The operands of several spans are read before the first is finished, so that their latencies overlap.
      typename Operands<E...>::Raw raw[kBatch];
      int rows[kBatch], cols[kBatch];
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const int id = first + u * each, row = id / kSpans;
        rows[u] = id < kTotal ? m0 + (row / kRows) * Tile::kWarpM + phase * kRows + row % kRows : work.m;
        cols[u] = n0 + (id % kSpans) * kSpan;
        if (rows[u] < work.m && cols[u] < work.n) args.operands.fetch(outer, inner, rows[u], cols[u], work.n - cols[u], raw[u]);
      }
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        if (rows[u] >= work.m || cols[u] >= work.n) continue;
        const int id = first + u * each;
        const Sum* from = staged + (id / kSpans) * Tile::kPitch + (id % kSpans) * kSpan;
        Span<Sum> sums[Tile::kHalves];
#pragma unroll
        for (int half = 0; half < Tile::kHalves; ++half) {
          const Sum* const at = from + half * Tile::kCols;
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            SumQuad<Sum> part;
            if (Tile::kPhases == 1 && split > 1) {
              part = bit_cast<SumQuad<Sum>>(load_cluster_float4(shared_address(at + 4 * h), 0));
              for (int other = 1; other < split; ++other) {
                const auto more = bit_cast<SumQuad<Sum>>(load_cluster_float4(shared_address(at + 4 * h), uint32_t(other)));
#pragma unroll
                for (int e = 0; e < 4; ++e) part.v[e] += more.v[e];
              }
            } else {
              part = reinterpret_cast<const SumQuad<Sum>*>(at)[h];
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[half].v[4 * h + e] = part.v[e];
          }
        }
        if constexpr (Tile::kHalves == 2) {
          args.template finish_some<F>(outer, inner, rows[u], cols[u], work.n - cols[u], sums[0], raw[u], sums[1]);
        } else {
          args.template finish_some<F>(outer, inner, rows[u], cols[u], work.n - cols[u], sums[0], raw[u]);
        }
      }
    }
  }
  if (Tile::kPhases == 1 && split > 1) cluster_barrier();  // others may still read what this block staged
}

/// @brief `mma_tile_of` with a matrix a.
template <class Tile, bool kAK, bool kBK, bool kAligned, class F, class T, class D, class... E, class Scales = NoScales>
__device__ __forceinline__ void mma_tile(const GemmArgs<T, D, E...>& args, const TileWork<T>& work, int split, int rank, bool early,
                                         const Scales& scales = {}) {
  constexpr int kDepth = Tile::template kDepth<T>;
  using ATile = OperandTile<T, kAK ? Tile::kM : kDepth, kAK ? kDepth : Tile::kM, Tile::kThreads, kAK>;
  mma_tile_of<Tile, kAK, kBK, kAligned, F>(args, work, split, rank, early, [&](int k0) {
    const int rows_m = work.m - work.m0;
    const T* const data = work.a + work.m0 * args.a.row + k0 * args.a.col;
    return ATile(data, kAK ? args.a.row : args.a.col, kAK ? rows_m : work.k - k0, kAK ? work.k - k0 : rows_m);
  }, scales);
}

/// @brief A launch of one product with `split` blocks for each tile.
template <class T, class D, class... E>
struct SplitProduct {
  GemmArgs<T, D, E...> args;
  int split;
  bool early;  ///< whether b may be read before the launch before has ended

  template <class Tile>
  __device__ __forceinline__ BlockTile<T> find(uint32_t block) const {
    const int rank = split > 1 ? int(block % uint32_t(split)) : 0;
    const TileIndex tile(split > 1 ? block / uint32_t(split) : block, args.tiles_m, args.tiles_n);
    return {tile.of(args, Tile::kM, Tile::kCols), 0, true, split, rank, early};
  }

  __device__ __forceinline__ const GemmArgs<T, D, E...>& product(int) const { return args; }
};

/// @brief The same with scales of blocks.
template <class T, class D, class... E>
struct ScaledProduct : SplitProduct<T, D, E...> {
  BlockScales scales;
};

/// @brief The scales of a launch, or none.
template <class Launch>
__device__ __forceinline__ NoScales scales_of(const Launch&) {
  return {};
}
template <class T, class D, class... E>
__device__ __forceinline__ const BlockScales& scales_of(const ScaledProduct<T, D, E...>& product) {
  return product.scales;
}

/// @brief Blocks for each tile of each product of `Launch`; grid: tiles * split.
template <class Tile, bool kAK, bool kBK, bool kAligned, class F, class Launch>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) gemm_mma_kernel(const __grid_constant__ Launch products) {
  const auto tile = products.template find<Tile>(blockIdx.x);
  if (!tile.exists) return;
  mma_tile<Tile, kAK, kBK, kAligned, F>(products.product(tile.number), tile.work, tile.split, tile.rank, tile.early, scales_of(products));
}

/// @brief Launches `gemm_mma_kernel`. `split` blocks, one cluster, share a tile (1, 2, 4 or 8; more than 1 needs sm_90).
/// Gated, K is contiguous in b, which has twice as many columns as d.
/// @tparam kOddPitches whether rows of a or b may start off 16-byte boundaries. If not, only a pointer can be misaligned: rare, and then slow.
template <class Tile, bool kAK, bool kBK, bool kOddPitches, class F, class T, class D, class... E,
          std::enable_if_t<!are_bytes<T, T>, int> = 0>
int32_t gemm_mma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                 Operands<E...> operands, int split = 1, bool early = false) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const bool aligned = (kAK ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col)) &&
                       (kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row));
  if (!kOddPitches && !aligned) return gemm_simt<F, Tile::kHalves>(ctx, shape, a, b, d, operands);
  const GemmArgs<T, D, E...> args{int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + Tile::kM - 1) / Tile::kM),
                                  int((shape.n + Tile::kCols - 1) / Tile::kCols), a, b, d, aligned, aligned, rows_aligned(d, d.col, d.row), operands};
  if (Tile::kPhases > 1) split = 1;
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * shape.inner * args.tiles_m * args.tiles_n * split));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  using Product = SplitProduct<T, D, E...>;
  const Product product{args, split, early};
  if constexpr (kOddPitches) {
    if (!aligned) return launch(ctx, config, gemm_mma_kernel<Tile, kAK, kBK, false, F, Product>, product);
  }
  return launch(ctx, config, gemm_mma_kernel<Tile, kAK, kBK, true, F, Product>, product);
}

/// @brief The same for numbers of 8 bits: integers, signed or not, or floats.
template <class Tile, bool kAK, bool kBK, bool kOddPitches, class F, class A, class B, class D, class... E,
          std::enable_if_t<are_bytes<A, B>, int> = 0>
int32_t gemm_mma(const Context& ctx, const GemmShape& shape, Matrices<const A> a, Matrices<const B> b, Matrices<D> d,
                 Operands<E...> operands, int split = 1, bool early = false) {
  using T = Byte<A, B>;
  return gemm_mma<Tile, kAK, kBK, kOddPitches, F, T>(ctx, shape, as_bytes<T>(a), as_bytes<T>(b), d, operands, split, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_MMA_CUH_
