/// @file attention_mma.cuh
/// @brief Attention on the tensor cores of CUDA devices (sm_80 and later). Included by attention.cuh.
#ifndef AIT_KERNELS_GPU_ATTENTION_MMA_CUH_
#define AIT_KERNELS_GPU_ATTENTION_MMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 16
/// @tparam kWarps_ warps of a block, 16 rows of q each
/// @tparam kCols_ rows of k and v per step
template <int kDepth_, int kWarps_, int kCols_>
struct AttentionTile {
  static constexpr int kDepth = kDepth_, kWarps = kWarps_, kCols = kCols_;
  static constexpr int kThreads = 32 * kWarps, kRows = 16 * kWarps;
  static constexpr int kPitch = kDepth + 8;  ///< elements from row to row: an odd number of 16-byte units where depth is a multiple of 16
  static constexpr int kTileElements = kCols * kPitch;
  static constexpr int kSharedBytes = (kRows * kPitch + 4 * kTileElements) * 2;
  static_assert(kDepth % 16 == 0 && kCols % 16 == 0 && kSharedBytes <= 227 * 1024);
};

/// @brief Starts the copy of `kRows` rows of `columns` elements, of which `rows` exist; the rest up to `kDepth` columns is zero.
template <int kRows, class Tile, class T>
__device__ __forceinline__ void load_rows(T* to, const T* from, int64_t pitch, int rows, int columns, bool aligned) {
  constexpr int kChunks = Tile::kDepth / 8;
  for (int id = int(threadIdx.x); id < kRows * kChunks; id += Tile::kThreads) {
    const int row = id / kChunks, chunk = id % kChunks;
    int valid = columns - chunk * 8;
    valid = row < rows ? (valid < 0 ? 0 : (valid > 8 ? 8 : valid)) : 0;
    const T* source = from + (valid > 0 ? row * pitch + chunk * 8 : 0);
    T* target = to + row * Tile::kPitch + chunk * 8;
    if (aligned) {
      copy_async_16(shared_address(target), source, valid * 2);
    } else {
      for (int e = 0; e < 8; ++e) {
        reinterpret_cast<uint16_t*>(target)[e] = e < valid ? reinterpret_cast<const uint16_t*>(source)[e] : uint16_t(0);
      }
    }
  }
}

/// @brief Rows of one head of the result. Grid: row tiles, heads, batches; block: Tile::kThreads.
template <class Tile, bool kMasked, bool kCausal, class T, class M>
__global__ void __launch_bounds__(Tile::kThreads) attention_mma_kernel(const __grid_constant__ AttentionArgs<T, M> args) {
  constexpr int kDepth = Tile::kDepth, kCols = Tile::kCols, kPitch = Tile::kPitch;
  constexpr float kLog2e = 1.44269504088896341f;
  extern __shared__ __align__(128) char shared[];
  T* q_tile = reinterpret_cast<T*>(shared);
  T* k_tiles = q_tile + Tile::kRows * kPitch;
  T* v_tiles = k_tiles + 2 * Tile::kTileElements;

  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  // Later rows have more work under a causal mask: start with them.
  const int row0 = int(kCausal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * Tile::kRows;
  const T* q = args.q.data + batch * args.q.batch + head * args.q.head + row0 * args.q.row;
  const T* k = args.k.data + batch * args.k.batch + head * args.k.head;
  const T* v = args.v.data + batch * args.v.batch + head * args.v.head;
  const int shift = args.cols - args.rows;  // under a causal mask row s sees the columns <= s + shift
  int visible = args.cols;
  if (kCausal) {
    const int last = row0 + Tile::kRows < args.rows ? row0 + Tile::kRows : args.rows;
    visible = last + shift < args.cols ? last + shift : args.cols;
    if (visible < 0) visible = 0;
  }
  const int steps = (visible + kCols - 1) / kCols;

  auto load_k = [&](int step) {
    if (step < steps) {
      load_rows<kCols, Tile>(k_tiles + (step & 1) * Tile::kTileElements, k + int64_t(step) * kCols * args.k.row, args.k.row,
                             args.cols - step * kCols, args.depth, args.aligned);
    }
    copy_async_commit();
  };
  auto load_v = [&](int step) {
    if (step < steps) {
      load_rows<kCols, Tile>(v_tiles + (step & 1) * Tile::kTileElements, v + int64_t(step) * kCols * args.v.row, args.v.row,
                             args.cols - step * kCols, args.width, args.aligned);
    }
    copy_async_commit();
  };

  wait_for_previous();
  load_rows<Tile::kRows, Tile>(q_tile, q, args.q.row, args.rows - row0, args.depth, args.aligned);
  load_k(0);
  load_v(0);

  uint32_t q_frag[kDepth / 16][4];
  float out[kDepth / 8][4];
#pragma unroll
  for (int j = 0; j < kDepth / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) out[j][e] = 0.f;
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};  // of rows lane / 4 and lane / 4 + 8
  const float scale = args.scale * kLog2e;
  const int my_row = row0 + warp * 16 + lane / 4;
  const M* mask_rows[2] = {nullptr, nullptr};
  if constexpr (kMasked) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = my_row + 8 * r < args.rows ? my_row + 8 * r : args.rows - 1;
      mask_rows[r] = args.mask.data + batch * args.mask.batch + head * args.mask.head + row * args.mask.row;
    }
  }

  for (int step = 0; step < steps; ++step) {
    copy_async_wait<1>();  // k of this step; v may be on its way
    __syncthreads();
    const T* k_tile = k_tiles + (step & 1) * Tile::kTileElements;
    const T* v_tile = v_tiles + (step & 1) * Tile::kTileElements;
    if (step == 0) {
#pragma unroll
      for (int i = 0; i < kDepth / 16; ++i) {
        load_matrix_x4(q_frag[i], shared_address(q_tile + (warp * 16 + lane % 16) * kPitch + i * 16 + (lane / 16) * 8));
      }
    }
    load_k(step + 1);
    load_v(step + 1);

    float scores[kCols / 8][4];
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[j][e] = 0.f;
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kCols / 16; ++j) {
        uint32_t b[4];
        load_matrix_x4(b, shared_address(k_tile + (j * 16 + (lane / 16) * 8 + lane % 8) * kPitch + i * 16 + (lane / 8 % 2) * 8));
        mma_16x8x16<T>(scores[2 * j], q_frag[i], b[0], b[1]);
        mma_16x8x16<T>(scores[2 * j + 1], q_frag[i], b[2], b[3]);
      }
    }

    // Scores in units of log2, with the masks; columns past the end count as -inf.
    const int col0 = step * kCols + (lane % 4) * 2;
    const bool edge = step * kCols + kCols > args.cols || (kCausal && step * kCols + kCols > row0 + warp * 16 + shift + 1);
    float high[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int col = col0 + j * 8 + e % 2;
        float s = scores[j][e] * scale;
        if constexpr (kMasked) {
          if (col < args.cols) s += convert<float>(mask_rows[e / 2][col * args.mask.col]) * kLog2e;
        }
        if (edge && (col >= args.cols || (kCausal && col > my_row + (e / 2) * 8 + shift))) s = -INFINITY;
        scores[j][e] = s;
        high[e / 2] = fmaxf(high[e / 2], s);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      high[r] = fmaxf(high[r], shuffle_xor(high[r], 1));
      high[r] = fmaxf(high[r], shuffle_xor(high[r], 2));
      const float now = fmaxf(top[r], high[r]);
      const float base = now == -INFINITY ? 0.f : now;
      const float keep = exp2f(top[r] - base);
      top[r] = now;
      sum[r] *= keep;
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
        scores[j][2 * r] = exp2f(scores[j][2 * r] - base);
        scores[j][2 * r + 1] = exp2f(scores[j][2 * r + 1] - base);
        sum[r] += scores[j][2 * r] + scores[j][2 * r + 1];
      }
#pragma unroll
      for (int j = 0; j < kDepth / 8; ++j) out[j][2 * r] *= keep, out[j][2 * r + 1] *= keep;
    }

    copy_async_wait<2>();  // v of this step; k and v of the next may be on their way
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kCols / 16; ++i) {
      const uint32_t p[4] = {pack_pair<T>(scores[2 * i][0], scores[2 * i][1]), pack_pair<T>(scores[2 * i][2], scores[2 * i][3]),
                             pack_pair<T>(scores[2 * i + 1][0], scores[2 * i + 1][1]), pack_pair<T>(scores[2 * i + 1][2], scores[2 * i + 1][3])};
#pragma unroll
      for (int j = 0; j < kDepth / 16; ++j) {
        uint32_t b[4];
        load_matrix_x4_transposed(b, shared_address(v_tile + (i * 16 + (lane / 8 % 2) * 8 + lane % 8) * kPitch + j * 16 + (lane / 16) * 8));
        mma_16x8x16<T>(out[2 * j], p, b[0], b[1]);
        mma_16x8x16<T>(out[2 * j + 1], p, b[2], b[3]);
      }
    }
  }
  copy_async_wait<0>();
  __syncthreads();
  allow_next();

  // The rows of a warp pass through its own part of the q tile, so that the result is written 16 bytes at a time.
  T* staged = q_tile + warp * 16 * kPitch;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += shuffle_xor(sum[r], 1);
    sum[r] += shuffle_xor(sum[r], 2);
    const float scale_out = args.cols > 0 ? 1.f / sum[r] : 0.f;
#pragma unroll
    for (int j = 0; j < kDepth / 8; ++j) {
      *reinterpret_cast<uint32_t*>(staged + (lane / 4 + 8 * r) * kPitch + j * 8 + (lane % 4) * 2) =
          pack_pair<T>(out[j][2 * r] * scale_out, out[j][2 * r + 1] * scale_out);
    }
  }
  __syncwarp();
  T* o = args.o.data + batch * args.o.batch + head * args.o.head;
  constexpr int kChunks = kDepth / 8;
  for (int id = lane; id < 16 * kChunks; id += 32) {
    const int row = row0 + warp * 16 + id / kChunks, col = id % kChunks * 8;
    if (row >= args.rows || col >= args.width) continue;
    const T* from = staged + (id / kChunks) * kPitch + col;
    T* to = o + row * args.o.row + col;
    if (args.result_aligned && col + 8 <= args.width) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int e = 0; e < 8 && col + e < args.width; ++e) to[e] = from[e];
    }
  }
}

/// @brief Launches `attention_mma_kernel`. `depth` and `width` may be at most Tile::kDepth.
template <class Tile, bool kMasked, bool kCausal, class T, class M>
int32_t attention_mma(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                      Mask<M> mask) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  if (shape.heads > 65535 || shape.batch > 65535) return ctx.fail("attention: more than 65535 heads or batches");
  LaunchConfig config;
  config.grid = dim3(uint32_t((shape.rows + Tile::kRows - 1) / Tile::kRows), uint32_t(shape.heads), uint32_t(shape.batch));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  return launch(ctx, config, attention_mma_kernel<Tile, kMasked, kCausal, T, M>, attention_args(shape, q, k, v, o, mask));
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_MMA_CUH_
