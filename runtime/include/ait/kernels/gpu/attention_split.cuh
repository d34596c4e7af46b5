/// @file attention_split.cuh
/// @brief Attention of few rows of q over many of k and v, as in decoding (sm_90 and later): every warp reads steps of 16 rows of k and v straight
/// into registers; the blocks of a cluster share the rows and put their parts together through each other's shared memory.
///
/// All rows of q that share a head of k and v, of one head or several, are columns of the products k @ q^T and v^T @ weights^T. The order of the
/// columns of k, of v and of the result is permuted so that a lane reads 16 bytes of a row at a time: along the depth a product does not mind,
/// and a lane ends with 8 neighbouring columns of the result.
#ifndef AIT_KERNELS_GPU_ATTENTION_SPLIT_CUH_
#define AIT_KERNELS_GPU_ATTENTION_SPLIT_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/math.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline constexpr int kMostBlocks = 16;  ///< of a cluster that shares rows of k and v; more than 8 need a card that has room

/// @brief The shape of a block's work.
/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 64
/// @tparam kEights_ times 8 rows of q
/// @tparam kWarps_ warps of a block
template <int kDepth_, int kEights_, int kWarps_>
struct SplitTile {
  static constexpr int kDepth = kDepth_, kEights = kEights_, kWarps = kWarps_, kRows = 8 * kEights, kThreads = 32 * kWarps;
  static constexpr int kPitch = kDepth + 4;  ///< floats from row to row of a warp's part: the rows of a quad fall in different banks
  static constexpr int kPartFloats = kRows * kPitch, kStatFloats = kRows * 2;
  static constexpr int kSharedBytes = (kWarps * kPartFloats + (kWarps + 1) * kStatFloats) * 4;
  /// Warps that a multiprocessor holds, by their registers, and blocks.
  static constexpr int kWarpsTogether = kEights == 2 ? 8 : (kDepth == 64 ? 16 : 12);
  static constexpr int kBlocksTogether = kWarpsTogether / kWarps > 0 ? kWarpsTogether / kWarps : 1;
  static_assert(kDepth % 64 == 0 && (kEights == 1 || kEights == 2) && kSharedBytes <= 227 * 1024);
};

/// @brief Word `i` of four.
__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

/// @brief 16 rows of k and of v, as a warp holds them on their way into its products.
template <class Tile, class T>
struct SplitStep {
  uint4 k[Tile::kDepth / 32][2];  ///< of rows lane / 4 and lane / 4 + 8: the elements 32 i + 8 (lane % 4) ...
  uint4 v[Tile::kDepth / 64][4];  ///< of rows 2 (lane % 4) + {0, 1, 8, 9}: the elements 64 i + 8 (lane / 4) ...

  template <class Rows>
  __device__ __forceinline__ void load_k(const Rows& from, int row0, int rows, int depth) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + lane / 4 + 8 * r;
      const T* at = from.at(row);
#pragma unroll
      for (int i = 0; i < Tile::kDepth / 32; ++i) {
        const int col = i * 32 + lane % 4 * 8;
        k[i][r] = read_once(at + col, row < rows && col < depth);
      }
    }
  }
  template <class Rows>
  __device__ __forceinline__ void load_v(const Rows& from, int row0, int rows, int width) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int row = row0 + lane % 4 * 2 + r % 2 + r / 2 * 8;
      const T* at = from.at(row);
#pragma unroll
      for (int i = 0; i < Tile::kDepth / 64; ++i) {
        const int col = i * 64 + lane / 4 * 8;
        v[i][r] = read_once(at + col, row < rows && col < width);
      }
    }
  }
};

/// @brief Rows of q that share a head of k and v. Grid: blocks that share the rows of k and v (one cluster), tiles of q of all heads of k, batches.
template <class Tile, bool kCausal, bool kWindow, bool kTwo, class T, class S>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksTogether) attention_split_kernel(const __grid_constant__ AttentionArgs<T, S> args, int q_tiles) {
  constexpr int kDepth = Tile::kDepth, kEights = Tile::kEights, kRows = Tile::kRows, kPitch = Tile::kPitch;
  constexpr float kLog2e = 1.44269504088896341f;
  AIT_DYNAMIC_SHARED(128, split_shared);
  float* const parts = reinterpret_cast<float*>(split_shared);
  float* const stats = parts + Tile::kWarps * Tile::kPartFloats;  // of each warp, then of the block: top and sum of each row
  float* const block_stats = stats + Tile::kWarps * Tile::kStatFloats;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int kv = int(blockIdx.y) / q_tiles, q0 = int(blockIdx.y) % q_tiles * kRows, count = args.group * args.rows;
  const int64_t batch = blockIdx.z;
  const HeadRows<T, kTwo> k = args.template k_rows<kTwo>(batch, kv), v = args.template v_rows<kTwo>(batch, kv);
  const int shift = args.shift;
  int first, end;
  args.template columns<kCausal, kWindow>(0, args.rows, first, end);
  const int stride = int(gridDim.x) * Tile::kWarps * 16;
  int row0 = first + (int(blockIdx.x) * Tile::kWarps + warp) * 16;

  wait_for_previous();
  SplitStep<Tile, T> step;
  step.load_k(k, row0, end, args.depth);
  step.load_v(v, row0, end, args.width);
  // q has one column of the products for each of its rows: lane / 4 is the column of an operand, 2 (lane % 4) + {0, 1} are those of a result.
  uint4 q[kDepth / 32][kEights];
#pragma unroll
  for (int e = 0; e < kEights; ++e) {
    const int at = q0 + lane / 4 + 8 * e;
    const T* from = args.q.data + batch * args.q.batch + int64_t(kv * args.group + at / args.rows) * args.q.head + at % args.rows * args.q.row;
#pragma unroll
    for (int i = 0; i < kDepth / 32; ++i) {
      const int col = i * 32 + lane % 4 * 8;
      q[i][e] = read_once(from + col, at < count && col < args.depth);
    }
  }
  int stands[kEights][2];
  ScoreLine<S> lines[kEights][2];
#pragma unroll
  for (int e = 0; e < kEights; ++e) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int at = q0 + lane % 4 * 2 + n + 8 * e, mine = at < count ? at : count - 1;
      stands[e][n] = mine % args.rows + shift;
      lines[e][n] = ScoreLine<S>(args.scores, batch, int64_t(kv) * args.group + mine / args.rows, mine % args.rows);
    }
  }

  float out[kDepth / 16][kEights][4], top[kEights][2], sum[kEights][2];
#pragma unroll
  for (int e = 0; e < kEights; ++e) {
    top[e][0] = top[e][1] = -INFINITY, sum[e][0] = sum[e][1] = 0.f;
#pragma unroll
    for (int j = 0; j < kDepth / 16; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[j][e][i] = 0.f;
  }
  [[maybe_unused]] const float scale = args.scale * kLog2e;

  for (; row0 < end; row0 += stride) {
    float scores[kEights][4];
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[e][i] = 0.f;
#pragma unroll
      for (int i = 0; i < kDepth / 32; ++i) {
        const uint4 low = step.k[i][0], high = step.k[i][1];
        const uint32_t a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
        mma_16x8x16<T>(scores[e], a[0], q[i][e].x, q[i][e].y);
        mma_16x8x16<T>(scores[e], a[1], q[i][e].z, q[i][e].w);
      }
    }
    step.load_k(k, row0 + stride, end, args.depth);

    uint32_t weights[kEights][2];
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int col = row0 + lane / 4 + i / 2 * 8;
        if constexpr (S::kChanged) {
          scores[e][i] = col < args.cols ? finite_times(lines[e][i % 2].changed(scores[e][i] * args.scale, col), kLog2e) : -INFINITY;
        } else {
          scores[e][i] *= scale;
        }
        if (!args.template sees<kCausal, kWindow>(stands[e][i % 2], col)) scores[e][i] = -INFINITY;
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float high = fmaxf(scores[e][n], scores[e][2 + n]);
#pragma unroll
        for (int bit = 4; bit < 32; bit *= 2) high = fmaxf(high, shuffle_xor(high, bit));
        high = fmaxf(high, top[e][n]);
        const float base = high == -INFINITY ? 0.f : high, keep = exp2_fast(top[e][n] - base);
        top[e][n] = high;
        scores[e][n] = exp2_fast(scores[e][n] - base);
        scores[e][2 + n] = exp2_fast(scores[e][2 + n] - base);
        sum[e][n] = sum[e][n] * keep + (scores[e][n] + scores[e][2 + n]);
#pragma unroll
        for (int j = 0; j < kDepth / 16; ++j) out[j][e][n] *= keep, out[j][e][2 + n] *= keep;
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) weights[e][h] = transpose_8x8(pack_pair<T>(scores[e][2 * h], scores[e][2 * h + 1]));
    }

#pragma unroll
    for (int c = 0; c < kDepth / 64; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t a[4];  // of columns 2 j and 2 j + 1 of the lane's 8: two neighbouring rows of v in a word
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const uint32_t even = word_of(step.v[c][2 * h], j), odd = word_of(step.v[c][2 * h + 1], j);
          a[2 * h] = __byte_perm(even, odd, 0x5410);
          a[2 * h + 1] = __byte_perm(even, odd, 0x7632);
        }
#pragma unroll
        for (int e = 0; e < kEights; ++e) mma_16x8x16<T>(out[c * 4 + j][e], a, weights[e][0], weights[e][1]);
      }
    }
    step.load_v(v, row0 + stride, end, args.width);
  }
  allow_next();

  // The parts of the warps, then those of the blocks: each a weighted sum relative to the largest score that it saw.
#pragma unroll
  for (int e = 0; e < kEights; ++e) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int bit = 4; bit < 32; bit *= 2) sum[e][n] += shuffle_xor(sum[e][n], bit);
      const int row = lane % 4 * 2 + n + 8 * e;
      if (lane < 4) {
        float* to = stats + warp * Tile::kStatFloats + row * 2;
        to[0] = top[e][n], to[1] = sum[e][n];
      }
      float* to = parts + warp * Tile::kPartFloats + row * kPitch + lane / 4 * 8;
#pragma unroll
      for (int c = 0; c < kDepth / 64; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          *reinterpret_cast<float4*>(to + c * 64 + j * 4) = make_float4(out[c * 4 + 2 * j][e][n], out[c * 4 + 2 * j][e][2 + n],
                                                                        out[c * 4 + 2 * j + 1][e][n], out[c * 4 + 2 * j + 1][e][2 + n]);
        }
      }
    }
  }
  __syncthreads();
  constexpr int kPieces = kRows * kDepth / 4;  // of 4 columns
  for (int id = int(threadIdx.x); id < kPieces; id += Tile::kThreads) {
    const int row = id / (kDepth / 4), at = row * kPitch + id % (kDepth / 4) * 4;
    float high = -INFINITY, total = 0.f;
#pragma unroll
    for (int w = 0; w < Tile::kWarps; ++w) high = fmaxf(high, stats[w * Tile::kStatFloats + row * 2]);
    const float base = high == -INFINITY ? 0.f : high;
    float4 all = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
    for (int w = 0; w < Tile::kWarps; ++w) {
      const float* stat = stats + w * Tile::kStatFloats + row * 2;
      const float part = exp2_fast(stat[0] - base);
      const float4 x = *reinterpret_cast<const float4*>(parts + w * Tile::kPartFloats + at);
      total += part * stat[1];
      all.x += part * x.x, all.y += part * x.y, all.z += part * x.z, all.w += part * x.w;
    }
    *reinterpret_cast<float4*>(parts + at) = all;  // in the place of the first warp's, which no other thread reads
    if (id % (kDepth / 4) == 0) *reinterpret_cast<float2*>(block_stats + row * 2) = make_float2(high, total);
  }
  const int splits = int(gridDim.x);
  if (splits > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }
  const uint32_t parts_at = shared_address(parts), stats_at = shared_address(block_stats);
  for (int id = int(blockIdx.x) * Tile::kThreads + int(threadIdx.x); id < kPieces; id += splits * Tile::kThreads) {
    const int row = id / (kDepth / 4), col = id % (kDepth / 4) * 4, at = q0 + row;
    if (at >= count || col >= args.width) continue;
    // All parts are asked for at once; those past the last are the last again, and count as nothing.
    float2 stat[kMostBlocks];
    float high = -INFINITY, total = 0.f;
#pragma unroll
    for (int s = 0; s < kMostBlocks; ++s) stat[s] = load_cluster_float2(stats_at + row * 8, uint32_t(s < splits ? s : splits - 1));
#pragma unroll
    for (int s = 0; s < kMostBlocks; ++s) high = fmaxf(high, stat[s].x);
    const float base = high == -INFINITY ? 0.f : high;
    float4 all = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
    for (int half = 0; half < kMostBlocks; half += kMostBlocks / 2) {
      if (half >= splits) break;
      float4 x[kMostBlocks / 2];
#pragma unroll
      for (int i = 0; i < kMostBlocks / 2; ++i) {
        const int s = half + i;
        x[i] = load_cluster_float4(parts_at + uint32_t(row * kPitch + col) * 4, uint32_t(s < splits ? s : splits - 1));
      }
#pragma unroll
      for (int i = 0; i < kMostBlocks / 2; ++i) {
        const int s = half + i;
        const float part = s < splits ? exp2_fast(stat[s].x - base) : 0.f;
        total += part * stat[s].y;
        all.x += part * x[i].x, all.y += part * x[i].y, all.z += part * x[i].z, all.w += part * x[i].w;
      }
    }
    const float by = args.share(total);
    const int64_t head = int64_t(kv) * args.group + at / args.rows;
    if (col == 0) args.log_sums.store(batch, head, at % args.rows, high / kLog2e + ait::log(total));
    T* to = args.o.data + batch * args.o.batch + head * args.o.head + at % args.rows * args.o.row + col;
    *reinterpret_cast<uint2*>(to) = make_uint2(pack_pair<T>(all.x * by, all.y * by), pack_pair<T>(all.z * by, all.w * by));
  }
  if (splits > 1) cluster_barrier();  // the others may still read the part of this block
}

/// @brief How many clusters of 1, 2, 4 ... blocks of a kernel the current device runs at once; 0 where it does not say.
struct ClustersTogether {
  static constexpr int kSizes = 5;
  int count[kSizes] = {};

  ClustersTogether(const void* kernel, int threads, int shared_bytes) {
    const bool ready =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes) == kSuccess &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == kSuccess;
    for (int log = 0; ready && log < kSizes; ++log) {
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = 1u << log, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(1u << log), config.blockDim = dim3(uint32_t(threads)), config.dynamicSmemBytes = size_t(shared_bytes);
      config.attrs = &attribute, config.numAttrs = 1;
      if (cudaOccupancyMaxActiveClusters(&count[log], kernel, &config) != kSuccess) count[log] = 0;
    }
    (void)take_error();
  }
};

/// @brief Launches `attention_split_kernel` on half or bfloat16. Where q, k, v or the result do not start on 16-byte boundaries, the width is no
/// multiple of 8, or a size is 0, a slow kernel takes over. `depth` and `width` may be at most Tile::kDepth.
/// @param most_blocks of a cluster, which share the rows of k and v of a head: at most `kMostBlocks`
template <class Tile, bool kCausal, bool kWindow, class T, class S, class Pieces = OnePiece>
int32_t attention_split(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                        const S& scores, const LogSums<float>& log_sums, int most_blocks, Pieces pieces = {}) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  const AttentionArgs<T, S> args = attention_args(shape, q, k, v, o, scores, log_sums, pieces);
  const int64_t q_tiles = (shape.rows * shape.group + Tile::kRows - 1) / Tile::kRows, instances = shape.heads / shape.group * q_tiles;
  const bool fits = args.aligned && args.result_aligned && shape.width % 8 == 0 && shape.depth > 0 && shape.depth % 8 == 0 && shape.cols > 0;
  if (!fits || instances > 65535 || shape.batch > 65535) {
    return attention_simt<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, log_sums, pieces);
  }
  const auto kernel = attention_split_kernel<Tile, kCausal, kWindow, !std::is_same_v<Pieces, OnePiece>, T, S>;
  LaunchConfig config;
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  // The most blocks that all run at once, while every warp has a step.
  static const ClustersTogether together(reinterpret_cast<const void*>(kernel), Tile::kThreads, Tile::kSharedBytes);
  const int64_t steps = (shape.cols + 15) / 16;
  int splits = 1;
  for (int log = 1; log < ClustersTogether::kSizes && 1 << log <= most_blocks; ++log) {
    if (instances * shape.batch <= together.count[log] && steps >= (int64_t(1) << log) * Tile::kWarps) splits = 1 << log;
  }
  config.grid = dim3(grid_size(splits), grid_size(instances), grid_size(shape.batch));
  config.cluster = uint32_t(splits);
  return launch(ctx, config, kernel, args, int(q_tiles));
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_SPLIT_CUH_
