/// @file gemm_mfma.cuh
/// @brief Gemm on the matrix cores of AMD's CDNA cards (gfx90a, gfx942).
///
/// A block computes one tile. Both operands lie in shared memory with k contiguous, so that a lane reads its four elements at once; the next
/// step's are on their way to registers meanwhile. The accumulators pass through shared memory, as in gemm_mma.cuh.
#ifndef AIT_KERNELS_GPU_GEMM_MFMA_CUH_
#define AIT_KERNELS_GPU_GEMM_MFMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/mfma.cuh"

#if defined(AIT_HIP)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kM_, kN_ tile of the result
/// @tparam kWavesM_, kWavesN_ waves along both dims of the tile
/// @tparam kSize_ rows and columns of the matrix instruction: 32 or 16
template <int kM_, int kN_, int kWavesM_, int kWavesN_, int kSize_>
struct MfmaTile {
  static constexpr int kM = kM_, kN = kN_, kK = 32, kWavesM = kWavesM_, kWavesN = kWavesN_, kSize = kSize_;
  static constexpr int kThreads = 64 * kWavesM * kWavesN;
  static constexpr int kWaveM = kM / kWavesM, kWaveN = kN / kWavesN;
  static constexpr int kMmaM = kWaveM / kSize, kMmaN = kWaveN / kSize;
  static constexpr int kPitch = kK + 8;        ///< elements from row to row of an operand: rows start on different banks
  static constexpr int kStagedPitch = kN + 4;  ///< floats from row to row of the staged accumulators
  static constexpr int kStagedRows = kWavesM * kSize;
  static constexpr int kOperandBytes = (kM + kN) * kPitch * 2, kStagedBytes = kStagedRows * kStagedPitch * 4;
  static constexpr int kSharedBytes = kOperandBytes > kStagedBytes ? kOperandBytes : kStagedBytes;
  static_assert(kWaveM % kSize == 0 && kWaveN % kSize == 0 && kN % kSpan == 0, "a wave computes whole squares");
  static_assert(kThreads <= 1024 && kSharedBytes <= 64 * 1024, "it fits on a compute unit");
};

/// @brief The part of a tile of `kRows` lines along k that a thread brings: pieces of 8 elements along the contiguous dim.
/// @tparam kAlongK whether that is k
/// @tparam Word the bits of an element
template <class Tile, class Word, int kRows, bool kAlongK>
struct MfmaFetch {
  static constexpr int kPieces8 = kRows * Tile::kK / 8, kEach = (kPieces8 + Tile::kThreads - 1) / Tile::kThreads;
  struct alignas(8 * sizeof(Word)) Chunk {
    Word v[8];
  };
  Chunk chunks[kEach];

  static __device__ __forceinline__ void place(int piece, int& line, int& k) {
    constexpr int kAcross = kAlongK ? Tile::kK / 8 : kRows / 8;
    line = kAlongK ? piece / kAcross : piece % kAcross * 8;
    k = kAlongK ? piece % kAcross * 8 : piece / kAcross;
  }

  /// Reads from `from`, `pitch` elements from line to line, or from k to k. What does not exist is zero.
  template <class T>
  __device__ __forceinline__ void load(const T* from, int64_t pitch, int lines_left, int k_left, bool aligned) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int piece = i * Tile::kThreads + int(threadIdx.x);
      if (kPieces8 % Tile::kThreads != 0 && piece >= kPieces8) continue;
      int line, k;
      place(piece, line, k);
      const T* at = from + (kAlongK ? line * pitch + k : k * pitch + line);
      const bool exists = line < lines_left && k < k_left;
      const int valid = !exists ? 0 : kAlongK ? k_left - k : lines_left - line;
      if (aligned && valid >= 8) {
        chunks[i] = *reinterpret_cast<const Chunk*>(at);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) chunks[i].v[e] = e < valid ? reinterpret_cast<const Word*>(at)[e] : Word(0);
      }
    }
  }

  /// Writes to the tile, in which k is contiguous.
  __device__ __forceinline__ void store(Word* tile) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int piece = i * Tile::kThreads + int(threadIdx.x);
      if (kPieces8 % Tile::kThreads != 0 && piece >= kPieces8) continue;
      int line, k;
      place(piece, line, k);
      if constexpr (kAlongK) {
        *reinterpret_cast<Chunk*>(tile + line * Tile::kPitch + k) = chunks[i];
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) tile[(line + e) * Tile::kPitch + k] = chunks[i].v[e];
      }
    }
  }
};

/// @brief One tile of `d = epilogue(a @ b)`; grid: batches * tiles, block: Tile::kThreads.
/// @tparam kAK, kBK whether k is the contiguous dim of the operand; the other one is if not
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads) gemm_mfma_kernel(const GemmArgs<T, D, E...> args) {
  using Matrix = std::conditional_t<is_byte<T>, MfmaBytes<Tile::kSize>, Mfma<T, Tile::kSize>>;
  using Word = Bits<T>;
  using Four = typename Matrix::Four;
  AIT_DYNAMIC_SHARED(16, mfma_shared);
  Word* a_tile = reinterpret_cast<Word*>(mfma_shared);
  Word* b_tile = a_tile + Tile::kM * Tile::kPitch;

  wait_for_previous();
  const TileIndex tile(blockIdx.x, args.tiles_m, args.tiles_n);
  const int64_t outer = tile.batch / args.inner, inner = tile.batch % args.inner;
  const int m0 = tile.m * Tile::kM, n0 = tile.n * Tile::kN;
  const int lane = int(threadIdx.x) % kWarpSize, wave = int(threadIdx.x) / kWarpSize;
  const int wave_m = wave / Tile::kWavesN, wave_n = wave % Tile::kWavesN;
  const T* a = args.a.data + outer * args.a.outer + inner * args.a.inner + m0 * args.a.row;
  const T* b = args.b.data + outer * args.b.outer + inner * args.b.inner + n0 * args.b.col;

  typename Matrix::Accumulators acc[Tile::kMmaM][Tile::kMmaN];
#pragma unroll
  for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kMmaN; ++j)
#pragma unroll
      for (int e = 0; e < Matrix::kElements; ++e) acc[i][j][e] = 0;

  MfmaFetch<Tile, Word, Tile::kM, kAK> fetch_a;
  MfmaFetch<Tile, Word, Tile::kN, kBK> fetch_b;
  auto load = [&](int k0) {
    fetch_a.load(a + k0 * args.a.col, kAK ? args.a.row : args.a.col, args.m - m0, args.k - k0, args.a_aligned);
    fetch_b.load(b + k0 * args.b.row, kBK ? args.b.col : args.b.row, args.n - n0, args.k - k0, args.b_aligned);
  };
  load(0);
  // Where this lane's elements of the first square and the first step are.
  const int first = Matrix::line(lane) * Tile::kPitch + Matrix::k(lane);
  const Word* a_from = a_tile + wave_m * Tile::kWaveM * Tile::kPitch + first;
  const Word* b_from = b_tile + wave_n * Tile::kWaveN * Tile::kPitch + first;
  for (int k0 = 0; k0 < args.k; k0 += Tile::kK) {
    fetch_a.store(a_tile);
    fetch_b.store(b_tile);
    __syncthreads();
    if (k0 + Tile::kK < args.k) load(k0 + Tile::kK);
#pragma unroll
    for (int k = 0; k < Tile::kK; k += Matrix::kDepth) {
      Four a_quads[Tile::kMmaM], b_quads[Tile::kMmaN];
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i) a_quads[i] = *reinterpret_cast<const Four*>(a_from + i * Tile::kSize * Tile::kPitch + k);
#pragma unroll
      for (int j = 0; j < Tile::kMmaN; ++j) b_quads[j] = *reinterpret_cast<const Four*>(b_from + j * Tile::kSize * Tile::kPitch + k);
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kMmaN; ++j) Matrix::run(acc[i][j], a_quads[i], b_quads[j]);
    }
    __syncthreads();
  }
  allow_next();

  using Sum = sum_t<T>;
  Sum* staged = reinterpret_cast<Sum*>(mfma_shared);
#pragma unroll
  for (int i = 0; i < Tile::kMmaM; ++i) {  // a square of rows of each wave at a time
    if (i > 0) __syncthreads();
#pragma unroll
    for (int j = 0; j < Tile::kMmaN; ++j) {
#pragma unroll
      for (int e = 0; e < Matrix::kElements; ++e) {
        const int row = wave_m * Tile::kSize + Matrix::row(lane, e);
        staged[row * Tile::kStagedPitch + wave_n * Tile::kWaveN + j * Tile::kSize + Matrix::line(lane)] = acc[i][j][e];
      }
    }
    __syncthreads();
    constexpr int kSpans = Tile::kN / kSpan;
    for (int id = int(threadIdx.x); id < Tile::kStagedRows * kSpans; id += Tile::kThreads) {
      const int staged_row = id / kSpans, col = n0 + id % kSpans * kSpan;
      const int row = m0 + staged_row / Tile::kSize * Tile::kWaveM + i * Tile::kSize + staged_row % Tile::kSize;
      if (row >= args.m || col >= args.n) continue;
      typename Operands<E...>::Raw raw;
      args.operands.fetch(outer, inner, row, col, args.n - col, raw);
      const Sum* from = staged + staged_row * Tile::kStagedPitch + id % kSpans * kSpan;
      Span<Sum> sum;
#pragma unroll
      for (int e = 0; e < kSpan; ++e) sum.v[e] = from[e];
      args.template finish<F>(outer, inner, row, col, sum, raw);
    }
  }
}

/// @brief Launches `gemm_mfma_kernel`: half or bfloat16 operands, or signed bytes on gfx90a, each contiguous along k or along its other dim.
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E, std::enable_if_t<!are_bytes<T, T>, int> = 0>
int32_t gemm_mfma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                  Operands<E...> operands) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const GemmArgs<T, D, E...> args{int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + Tile::kM - 1) / Tile::kM),
                                  int((shape.n + Tile::kN - 1) / Tile::kN), a, b, d,
                                  kAK ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col),
                                  kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row), rows_aligned(d, d.col, d.row), operands};
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * shape.inner * args.tiles_m * args.tiles_n));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  return launch(ctx, config, gemm_mfma_kernel<Tile, kAK, kBK, F, T, D, E...>, args);
}

/// @brief The same for int8_t.
template <class Tile, bool kAK, bool kBK, class F, class D, class... E>
int32_t gemm_mfma(const Context& ctx, const GemmShape& shape, Matrices<const int8_t> a, Matrices<const int8_t> b, Matrices<D> d,
                  Operands<E...> operands) {
  using T = Byte<int8_t, int8_t>;
  return gemm_mfma<Tile, kAK, kBK, F, T>(ctx, shape, as_bytes<T>(a), as_bytes<T>(b), d, operands);
}

}  // namespace ait::gpu
#endif  // AIT_HIP
#endif  // AIT_KERNELS_GPU_GEMM_MFMA_CUH_
