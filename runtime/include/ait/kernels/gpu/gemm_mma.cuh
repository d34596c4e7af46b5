/// @file gemm_mma.cuh
/// @brief Gemm on the tensor cores of CUDA devices (sm_80 and later): a multistage pipeline of asynchronous copies around mma.sync.
///
/// A block computes one tile. Operand tiles lie in shared memory in 16-byte chunks, permuted so that ldmatrix is free of bank conflicts.
/// The accumulators pass through shared memory, so that the epilogue sees whole spans of a row and its global accesses are 16 bytes wide;
/// with `split` > 1 the blocks of a cluster share the K range of one tile and add up there (sm_90 and later).
#ifndef AIT_KERNELS_GPU_GEMM_MMA_CUH_
#define AIT_KERNELS_GPU_GEMM_MMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kM_, kN_, kK_ tile of the result, and the step along K
/// @tparam kWarpsM_, kWarpsN_ warps along both dims of the tile
/// @tparam kStages_ tiles in flight, the one in use included
/// @tparam kBlocks_ blocks that should fit on a multiprocessor
template <int kM_, int kN_, int kK_, int kWarpsM_, int kWarpsN_, int kStages_, int kBlocks_ = 1>
struct Tile {
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kWarpsM = kWarpsM_, kWarpsN = kWarpsN_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kStageBytes = (kM + kN) * kK * 2;
  static constexpr int kPipelineBytes = kStageBytes * kStages;
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

/// @brief A tile of an operand in shared memory, `kCols` contiguous elements a row, in permuted 16-byte chunks.
template <class T, int kRows, int kCols, int kThreads>
struct OperandTile {
  static constexpr int kChunks = kCols / 8;
  static constexpr int kTotal = kRows * kChunks;
  static_assert(kChunks == 4 || kChunks % 8 == 0, "the permutation is written for rows of 64 bytes or multiples of 128");

  /// The byte offset of a chunk.
  static __device__ __forceinline__ uint32_t offset(int row, int chunk) {
    const int swizzled = kChunks == 4 ? chunk ^ ((row >> 1) & 3) : chunk ^ (row & 7);
    return uint32_t(row * kChunks + swizzled) * 16u;
  }

  /// Starts the copy of the tile at `from`, of which `rows` by `cols` elements exist; the rest is zero.
  static __device__ __forceinline__ void load(char* to, const T* from, int64_t pitch, int rows, int cols, bool aligned) {
#pragma unroll
    for (int i = 0; i < (kTotal + kThreads - 1) / kThreads; ++i) {
      const int id = int(threadIdx.x) + i * kThreads;
      if (kTotal % kThreads != 0 && id >= kTotal) break;
      const int row = id / kChunks, chunk = id % kChunks;
      int valid = cols - chunk * 8;
      valid = row < rows ? (valid < 0 ? 0 : (valid > 8 ? 8 : valid)) : 0;
      const T* source = from + (valid > 0 ? row * pitch + chunk * 8 : 0);
      if (aligned) {
        copy_async_16(shared_address(to) + offset(row, chunk), source, valid * 2);
      } else {
        struct alignas(16) Chunk {
          uint16_t v[8];
        } values;
#pragma unroll
        for (int e = 0; e < 8; ++e) values.v[e] = e < valid ? reinterpret_cast<const uint16_t*>(source)[e] : uint16_t(0);
        *reinterpret_cast<Chunk*>(to + offset(row, chunk)) = values;
      }
    }
  }
};

/// @brief One tile of `d = epilogue(a @ b)`; grid: batches * tiles * split, block: Tile::kThreads.
/// @tparam kAK, kBK whether K is the contiguous dim of the operand
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) gemm_mma_kernel(const __grid_constant__ GemmArgs<T, D, E...> args, int split) {
  using ATile = std::conditional_t<kAK, OperandTile<T, Tile::kM, Tile::kK, Tile::kThreads>, OperandTile<T, Tile::kK, Tile::kM, Tile::kThreads>>;
  using BTile = std::conditional_t<kBK, OperandTile<T, Tile::kN, Tile::kK, Tile::kThreads>, OperandTile<T, Tile::kK, Tile::kN, Tile::kThreads>>;
  extern __shared__ __align__(128) char shared[];

  const int rank = split > 1 ? int(blockIdx.x % uint32_t(split)) : 0;
  const TileIndex tile(split > 1 ? blockIdx.x / uint32_t(split) : blockIdx.x, args.tiles_m, args.tiles_n);
  const int64_t outer = tile.batch / args.inner, inner = tile.batch % args.inner;
  const int m0 = tile.m * Tile::kM, n0 = tile.n * Tile::kN;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int warp_m = (warp / Tile::kWarpsN) * Tile::kWarpM, warp_n = (warp % Tile::kWarpsN) * Tile::kWarpN;

  const int steps = (args.k + Tile::kK - 1) / Tile::kK;
  const int share = (steps + split - 1) / split;
  const int begin = rank * share < steps ? rank * share : steps;
  const int end = begin + share < steps ? begin + share : steps;

  const int64_t a_pitch = kAK ? args.a.row : args.a.col, b_pitch = kBK ? args.b.col : args.b.row;
  const T* a = args.a.data + outer * args.a.outer + inner * args.a.inner + (kAK ? m0 * a_pitch : int64_t(m0));
  const T* b = args.b.data + outer * args.b.outer + inner * args.b.inner + (kBK ? n0 * b_pitch : int64_t(n0));
  const int rows_m = args.m - m0, cols_n = args.n - n0;

  auto load = [&](int step, int stage) {
    char* at = shared + stage * Tile::kStageBytes;
    const int k0 = step * Tile::kK, left = args.k - k0;
    if constexpr (kAK) {
      ATile::load(at, a + k0, a_pitch, rows_m, left, args.a_aligned);
    } else {
      ATile::load(at, a + k0 * a_pitch, a_pitch, left, rows_m, args.a_aligned);
    }
    at += Tile::kM * Tile::kK * 2;
    if constexpr (kBK) {
      BTile::load(at, b + k0, b_pitch, cols_n, left, args.b_aligned);
    } else {
      BTile::load(at, b + k0 * b_pitch, b_pitch, left, cols_n, args.b_aligned);
    }
  };

  float acc[Tile::kMmaM][Tile::kMmaN][4];
#pragma unroll
  for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kMmaN; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.f;

  uint32_t a_frag[2][Tile::kMmaM][4], b_frag[2][Tile::kMmaN / 2][4];
  auto read = [&](int stage, int kk, uint32_t (&fa)[Tile::kMmaM][4], uint32_t (&fb)[Tile::kMmaN / 2][4]) {
    const uint32_t at = shared_address(shared) + uint32_t(stage * Tile::kStageBytes);
    const int matrix = lane / 8, row = lane % 8;
#pragma unroll
    for (int i = 0; i < Tile::kMmaM; ++i) {
      if constexpr (kAK) {
        load_matrix_x4(fa[i], at + ATile::offset(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16));
      } else {
        load_matrix_x4_transposed(fa[i], at + ATile::offset(kk * 16 + (matrix / 2) * 8 + row, warp_m / 8 + i * 2 + matrix % 2));
      }
    }
    const uint32_t bt = at + Tile::kM * Tile::kK * 2;
#pragma unroll
    for (int j = 0; j < Tile::kMmaN / 2; ++j) {
      if constexpr (kBK) {
        load_matrix_x4(fb[j], bt + BTile::offset(warp_n + j * 16 + (matrix / 2) * 8 + row, kk * 2 + matrix % 2));
      } else {
        load_matrix_x4_transposed(fb[j], bt + BTile::offset(kk * 16 + (matrix % 2) * 8 + row, warp_n / 8 + j * 2 + matrix / 2));
      }
    }
  };

  wait_for_previous();
#pragma unroll
  for (int s = 0; s < Tile::kStages - 1; ++s) {
    if (begin + s < end) load(begin + s, s);
    copy_async_commit();
  }
  int stage = 0, next = Tile::kStages - 1;
  for (int step = begin; step < end; ++step) {
    copy_async_wait<Tile::kStages - 2>();
    __syncthreads();
    if (step + Tile::kStages - 1 < end) load(step + Tile::kStages - 1, next);
    copy_async_commit();
    next = next + 1 == Tile::kStages ? 0 : next + 1;
    read(stage, 0, a_frag[0], b_frag[0]);
#pragma unroll
    for (int kk = 0; kk < Tile::kK / 16; ++kk) {
      if (kk + 1 < Tile::kK / 16) read(stage, kk + 1, a_frag[(kk + 1) % 2], b_frag[(kk + 1) % 2]);
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kMmaN; ++j)
          mma_16x8x16<T>(acc[i][j], a_frag[kk % 2][i], b_frag[kk % 2][j / 2][(j % 2) * 2], b_frag[kk % 2][j / 2][(j % 2) * 2 + 1]);
    }
    stage = stage + 1 == Tile::kStages ? 0 : stage + 1;
  }
  copy_async_wait<0>();
  allow_next();

  float* staged = reinterpret_cast<float*>(shared);
  constexpr int kSpans = Tile::kN / kSpan;
#pragma unroll
  for (int phase = 0; phase < Tile::kPhases; ++phase) {
    __syncthreads();
    const int staged_row = (warp / Tile::kWarpsN) * 16 * Tile::kPhaseM;
#pragma unroll
    for (int i = 0; i < Tile::kPhaseM; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kMmaN; ++j) {
        const float(&c)[4] = acc[phase * Tile::kPhaseM + i][j];
        float* to = staged + (staged_row + i * 16 + lane / 4) * Tile::kPitch + warp_n + j * 8 + (lane % 4) * 2;
        *reinterpret_cast<float2*>(to) = make_float2(c[0], c[1]);
        *reinterpret_cast<float2*>(to + 8 * Tile::kPitch) = make_float2(c[2], c[3]);
      }
    }
    if (Tile::kPhases == 1 && split > 1) {
      cluster_barrier();
    } else {
      __syncthreads();
    }
    const int step = Tile::kThreads * split;
    for (int id = rank * Tile::kThreads + int(threadIdx.x); id < Tile::kStagedRows * kSpans; id += step) {
      const int row = id / kSpans, col = (id % kSpans) * kSpan;
      const float* from = staged + row * Tile::kPitch + col;
      Span<float> sum;
      if (Tile::kPhases == 1 && split > 1) {
#pragma unroll
        for (int e = 0; e < kSpan; ++e) sum.v[e] = 0.f;
        for (int s = 0; s < split; ++s) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const float4 part = load_cluster_float4(shared_address(from + 4 * h), uint32_t(s));
            sum.v[4 * h] += part.x, sum.v[4 * h + 1] += part.y, sum.v[4 * h + 2] += part.z, sum.v[4 * h + 3] += part.w;
          }
        }
      } else {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float4 part = reinterpret_cast<const float4*>(from)[h];
          sum.v[4 * h] = part.x, sum.v[4 * h + 1] = part.y, sum.v[4 * h + 2] = part.z, sum.v[4 * h + 3] = part.w;
        }
      }
      constexpr int kRows = 16 * Tile::kPhaseM;
      const int tile_row = (row / kRows) * Tile::kWarpM + phase * kRows + row % kRows;
      args.template finish<F>(outer, inner, m0 + tile_row, n0 + col, sum);
    }
  }
  if (Tile::kPhases == 1 && split > 1) cluster_barrier();  // others may still read what this block staged
}

/// @brief Launches `gemm_mma_kernel`. `split` blocks, one cluster, share a tile (1, 2, 4 or 8; more than 1 needs sm_90).
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E>
int32_t gemm_mma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                 Operands<E...> operands, int split = 1) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  GemmArgs<T, D, E...> args{int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + Tile::kM - 1) / Tile::kM),
                            int((shape.n + Tile::kN - 1) / Tile::kN), a, b, d,
                            kAK ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col),
                            kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row), rows_aligned(d, d.col, d.row), operands};
  if (Tile::kPhases > 1) split = 1;
  LaunchConfig config;
  config.grid = dim3(uint32_t(shape.outer * shape.inner * args.tiles_m * args.tiles_n * split));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  return launch(ctx, config, gemm_mma_kernel<Tile, kAK, kBK, F, T, D, E...>, args, split);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_MMA_CUH_
