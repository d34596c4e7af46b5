/// @file attention_mma.cuh
/// @brief Attention on the tensor cores of CUDA devices (sm_80 and later). Included by attention.cuh.
///
/// q, k, v and the weights of f32 are rounded to TF32: see gemm_mma.cuh. An exact tile splits each of them into two parts of TF32 instead, and adds
/// three products of parts (mma_parts.cuh).
#ifndef AIT_KERNELS_GPU_ATTENTION_MMA_CUH_
#define AIT_KERNELS_GPU_ATTENTION_MMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/attention_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/mma_parts.cuh"
#include "ait/math.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 16
/// @tparam kWarps_ warps of a block, 16 rows of q each
/// @tparam kCols_ rows of k and v per step
/// @tparam kBytes_ of an element
/// @tparam kExact_ whether floats are not rounded to TF32
template <int kDepth_, int kWarps_, int kCols_, int kBytes_ = 2, bool kExact_ = false>
struct AttentionTile {
  static constexpr bool kExact = kExact_;
  static constexpr int kDepth = kDepth_, kWarps = kWarps_, kCols = kCols_, kBytes = kBytes_;
  static constexpr int kThreads = 32 * kWarps, kRows = 16 * kWarps;
  static constexpr int kPitch = kDepth + 16 / kBytes;  ///< elements from row to row: an odd number of 16-byte units where depth is a multiple of 16
  static constexpr int kTileElements = kCols * kPitch;
  static constexpr int kSharedBytes = (kRows * kPitch + 4 * kTileElements) * kBytes;
  static_assert(kDepth % 16 == 0 && kCols % 16 == 0 && kSharedBytes <= 227 * 1024);
  static_assert(!kExact || kBytes == 4, "only floats have parts");
};

/// @brief Tiles of `kRows` rows of q, k or v, and where a thread's part of the next one lies in memory.
/// @tparam Rows where rows lie: `HeadRows` or `PagedRows`
template <class Tile, int kRows, class T, class Rows>
struct RowTile {
  static constexpr int kChunk = 16 / int(sizeof(T)), kChunks = Tile::kDepth / kChunk;
  /// A thread copies the same chunk of rows that are kStep apart, where the chunks of a row divide the threads.
  static constexpr bool kRegular = Tile::kThreads % kChunks == 0 && kRows % (Tile::kThreads / kChunks) == 0;
  static constexpr int kStep = kRegular ? Tile::kThreads / kChunks : 1;

  Rows from;
  int rows, columns;  ///< how many exist from there on

  /// @param first the row to start at, of `end`
  __device__ __forceinline__ RowTile(const Rows& head, int first, int end, int columns_) : from(head), rows(end - first), columns(columns_) {
    from.advance(first);
    if constexpr (kRegular) {
      const int row = int(threadIdx.x) / kChunks, chunk = int(threadIdx.x) % kChunks;
      from.advance(row);
      from.skip_columns(chunk * kChunk);
      rows -= row;
      columns -= chunk * kChunk;
    }
  }

  /// Copies 16 bytes of elements, of which `valid` exist.
  template <bool kAligned>
  static __device__ __forceinline__ void copy(T* to, const T* source, int valid) {
    if constexpr (kAligned) {
      copy_async_16(shared_address(to), source, valid * int(sizeof(T)));
    } else {
#pragma unroll
      for (int e = 0; e < kChunk; ++e) {
        reinterpret_cast<Bits<T>*>(to)[e] = e < valid ? reinterpret_cast<const Bits<T>*>(source)[e] : Bits<T>(0);
      }
    }
  }

  /// Starts the copy of the next tile to `tile`, and steps on. What does not exist is zero.
  template <bool kAligned>
  __device__ __forceinline__ void load(T* tile) {
    if constexpr (kRegular) {
      const int valid = columns < 0 ? 0 : (columns > kChunk ? kChunk : columns);
      T* to = tile + int(threadIdx.x) / kChunks * Tile::kPitch + int(threadIdx.x) % kChunks * kChunk;
#pragma unroll
      for (int i = 0; i < kRows / kStep; ++i) {
        copy<kAligned>(to + i * kStep * Tile::kPitch, from.at(i * kStep), i * kStep < rows ? valid : 0);
      }
    } else {
      for (int id = int(threadIdx.x); id < kRows * kChunks; id += Tile::kThreads) {
        const int row = id / kChunks, chunk = id % kChunks;
        const int left = columns - chunk * kChunk, valid = row < rows ? (left < 0 ? 0 : (left > kChunk ? kChunk : left)) : 0;
        copy<kAligned>(tile + row * Tile::kPitch + chunk * kChunk, from.at(row) + chunk * kChunk, valid);
      }
    }
    from.advance(kRows);
    rows -= kRows;
  }
};

/// @brief `scores += q @ k^T`, exact: of the 16 rows of q of a warp and the rows of k of a step.
template <class Tile>
__device__ __forceinline__ void add_exact_scores(float (&scores)[Tile::kCols / 8][4], const float* q, const float* k) {
  constexpr int kPitch = Tile::kPitch, kSteps = Tile::kDepth / 8, kSum = 4;  // steps along the depth, and those of a sum on the tensor cores
  const int lane = int(threadIdx.x) % 32;
  float small[Tile::kCols / 8][4] = {};
#pragma unroll
  for (int first = 0; first < kSteps; first += kSum) {
    float large[Tile::kCols / 8][4] = {};
#pragma unroll
    for (int i = first; i < (first + kSum < kSteps ? first + kSum : kSteps); ++i) {
      uint32_t a[4], a_low[4];
      load_matrix_x4(a, shared_address(q + lane % 16 * kPitch + i * 8 + lane / 16 * 4));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Tf32Parts parts = tf32_parts(a[e]);
        a[e] = parts.high, a_low[e] = parts.low;
      }
#pragma unroll
      for (int j = 0; j < Tile::kCols / 16; ++j) {
        uint32_t b[4];
        load_matrix_x4(b, shared_address(k + (j * 16 + lane / 16 * 8 + lane % 8) * kPitch + i * 8 + lane / 8 % 2 * 4));
        mma_16x8x8_parts(large[2 * j], small[2 * j], a, a_low, tf32_parts(b[0]), tf32_parts(b[1]));
        mma_16x8x8_parts(large[2 * j + 1], small[2 * j + 1], a, a_low, tf32_parts(b[2]), tf32_parts(b[3]));
      }
    }
#pragma unroll
    for (int j = 0; j < Tile::kCols / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[j][e] += large[j][e];
  }
#pragma unroll
  for (int j = 0; j < Tile::kCols / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[j][e] += small[j][e];
}

/// @brief The operand of an mma of TF32 that is made of weights in the order of sums. A lane has columns 2 t and 2 t + 1 of them, t = lane % 4, where
/// the operand has columns t and t + 4: their rows of v trade places, too.
__device__ __forceinline__ uint32_t weight_of_operand(const float (&weights)[4], int e) {
  return bit_cast<uint32_t>(weights[e % 2 * 2 + e / 2]);
}

/// @brief `out += weights @ v`, exact: of the rows of v of a step.
template <class Tile>
__device__ __forceinline__ void add_exact_values(float (&out)[Tile::kDepth / 8][4], const float (&weights)[Tile::kCols / 8][4], const float* v) {
  constexpr int kPitch = Tile::kPitch, kSteps = Tile::kCols / 8;
  const int lane = int(threadIdx.x) % 32;
  uint32_t high[kSteps][4], low[kSteps][4];
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Tf32Parts parts = tf32_parts(weight_of_operand(weights[i], e));
      high[i][e] = parts.high, low[i][e] = parts.low;
    }
  }
  const uint32_t first = shared_address(v + lane % 4 * 2 * kPitch + lane / 4);
#pragma unroll
  for (int j = 0; j < Tile::kDepth / 8; ++j) {
    float large[4] = {}, small[4] = {};
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const uint32_t at = first + uint32_t((i * 8 * kPitch + j * 8) * 4);
      mma_16x8x8_parts(large, small, high[i], low[i], tf32_parts(load_matrix_word(at)), tf32_parts(load_matrix_word(at + uint32_t(kPitch * 4))));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) out[j][e] += large[e] + small[e];
  }
}

/// @brief Rows [row0, row0 + Tile::kRows) of a head, of which those from `first_row` on are written to `o`, which points to row 0.
/// @tparam kStart whether the launch starts here, so that it waits for the one before after it has computed addresses
template <class Tile, bool kCausal, bool kWindow, bool kAligned, bool kStart, class T, class S, class KvRows>
__device__ __forceinline__ void attention_mma_rows(const AttentionArgs<T, S>& args, const HeadRows<T, false>& q, const KvRows& k, const KvRows& v,
                                                   T* o, int row0, int first_row, int64_t head, int64_t batch) {
  constexpr int kDepth = Tile::kDepth, kCols = Tile::kCols, kPitch = Tile::kPitch;
  static_assert(Tile::kBytes == sizeof(T) && (is_narrow_float<T> || std::is_same_v<T, float>));
  constexpr bool kTf32 = std::is_same_v<T, float>;
  constexpr int kChunk = 16 / int(sizeof(T)), kAlong = 2 * kChunk;  // elements along the sums of one mma
  constexpr bool kSoftmax = S::kSoftmax;
  constexpr float kLog2e = kSoftmax ? 1.44269504088896341f : 1.f, kHidden = kSoftmax ? -INFINITY : 0.f;
  AIT_DYNAMIC_SHARED(128, shared);
  T* q_tile = reinterpret_cast<T*>(shared);
  T* k_tiles = q_tile + Tile::kRows * kPitch;
  T* v_tiles = k_tiles + 2 * Tile::kTileElements;

  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int shift = args.shift;
  int first, visible;
  args.template columns<kCausal, kWindow>(row0, Tile::kRows, first, visible);
  first = first / kCols * kCols;
  const int steps = (visible - first + kCols - 1) / kCols;

  RowTile<Tile, kCols, T, KvRows> k_rows(k, first, args.cols, args.depth), v_rows(v, first, args.cols, args.width);
  auto load_k = [&](int step) {
    if (step < steps) k_rows.template load<kAligned>(k_tiles + (step & 1) * Tile::kTileElements);
    copy_async_commit();
  };
  auto load_v = [&](int step) {
    if (step < steps) v_rows.template load<kAligned>(v_tiles + (step & 1) * Tile::kTileElements);
    copy_async_commit();
  };

  if constexpr (kStart) {
    allow_next();
    wait_for_previous();
  }
  RowTile<Tile, Tile::kRows, T, HeadRows<T, false>>(q, row0, args.rows, args.depth).template load<kAligned>(q_tile);
  load_k(0);
  load_v(0);

  [[maybe_unused]] uint32_t q_frag[Tile::kExact ? 1 : kDepth / kAlong][4];
  float out[kDepth / 8][4];
#pragma unroll
  for (int j = 0; j < kDepth / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) out[j][e] = 0.f;
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};  // of rows lane / 4 and lane / 4 + 8
  [[maybe_unused]] const float scale = args.scale * kLog2e;
  const int my_row = row0 + warp * 16 + lane / 4;
  ScoreFragment<S, kCols / 8> fragment;
  fragment.place(args.scores, batch, head, my_row, args.rows);

  for (int step = 0; step < steps; ++step) {
    copy_async_wait<1>();  // k of this step; v may be on its way
    __syncthreads();
    const T* k_tile = k_tiles + (step & 1) * Tile::kTileElements;
    const T* v_tile = v_tiles + (step & 1) * Tile::kTileElements;
    if (!Tile::kExact && step == 0) {
#pragma unroll
      for (int i = 0; i < kDepth / kAlong; ++i) {
        load_matrix_x4(q_frag[i], shared_address(q_tile + (warp * 16 + lane % 16) * kPitch + i * kAlong + (lane / 16) * kChunk));
        if constexpr (kTf32) {
#pragma unroll
          for (int e = 0; e < 4; ++e) q_frag[i][e] = round_to_tf32(q_frag[i][e]);
        }
      }
    }
    load_k(step + 1);
    load_v(step + 1);
    const int col_of_step = first + step * kCols, col0 = col_of_step + (lane % 4) * 2;
    fragment.fetch(col0, col_of_step, args.cols, args.paired);

    float scores[kCols / 8][4];
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[j][e] = 0.f;
    if constexpr (Tile::kExact) {
      add_exact_scores<Tile>(scores, q_tile + warp * 16 * kPitch, k_tile);
    } else {
#pragma unroll
      for (int i = 0; i < kDepth / kAlong; ++i) {
#pragma unroll
        for (int j = 0; j < kCols / 16; ++j) {
          uint32_t b[4];
          load_matrix_x4(b, shared_address(k_tile + (j * 16 + (lane / 16) * 8 + lane % 8) * kPitch + i * kAlong + (lane / 8 % 2) * kChunk));
          if constexpr (kTf32) {
#pragma unroll
            for (int e = 0; e < 4; ++e) b[e] = round_to_tf32(b[e]);
            mma_16x8x8(scores[2 * j], q_frag[i], b[0], b[1]);
            mma_16x8x8(scores[2 * j + 1], q_frag[i], b[2], b[3]);
          } else {
            mma_16x8x16<T>(scores[2 * j], q_frag[i], b[0], b[1]);
            mma_16x8x16<T>(scores[2 * j + 1], q_frag[i], b[2], b[3]);
          }
        }
      }
    }

    // Scores in units of log2, or weights if there is no softmax; columns past the end are hidden.
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if constexpr (S::kChanged) {
          scores[j][e] = finite_times(fragment.changed(4 * j + e, scores[j][e] * args.scale), kLog2e);
        } else {
          scores[j][e] *= scale;
        }
      }
    }
    if (kWindow || col_of_step + kCols > args.cols || (kCausal && col_of_step + kCols > row0 + warp * 16 + shift + 1)) {
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int col = col0 + j * 8 + e % 2;
          if (!args.template sees<kCausal, kWindow>(my_row + (e / 2) * 8 + shift, col)) scores[j][e] = kHidden;
        }
      }
    }
#pragma unroll
    for (int r = 0; kSoftmax && r < 2; ++r) {
      float high = top[r];
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) high = fmaxf(high, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]));
      high = fmaxf(high, shuffle_xor(high, 1));
      high = fmaxf(high, shuffle_xor(high, 2));
      const float base = high == -INFINITY ? 0.f : high;
      const float keep = exp2_fast(top[r] - base);
      top[r] = high;
      float part = 0.f;
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
        scores[j][2 * r] = exp2_fast(scores[j][2 * r] - base);
        scores[j][2 * r + 1] = exp2_fast(scores[j][2 * r + 1] - base);
        part += scores[j][2 * r] + scores[j][2 * r + 1];
      }
      sum[r] = sum[r] * keep + part;
#pragma unroll
      for (int j = 0; j < kDepth / 8; ++j) out[j][2 * r] *= keep, out[j][2 * r + 1] *= keep;
    }

    copy_async_wait<2>();  // v of this step; k and v of the next may be on their way
    __syncthreads();
    if constexpr (Tile::kExact) {
      add_exact_values<Tile>(out, scores, v_tile);
    } else if constexpr (kTf32) {
#pragma unroll
      for (int i = 0; i < kCols / 8; ++i) {
        uint32_t p[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) p[e] = round_to_tf32(weight_of_operand(scores[i], e));
        const uint32_t rows_of_v = shared_address(v_tile + (i * 8 + (lane % 4) * 2) * kPitch + lane / 4);
#pragma unroll
        for (int j = 0; j < kDepth / 8; ++j) {
          const uint32_t at = rows_of_v + uint32_t(j * 8 * sizeof(T));
          mma_16x8x8(out[j], p, round_to_tf32(load_matrix_word(at)), round_to_tf32(load_matrix_word(at + uint32_t(kPitch * sizeof(T)))));
        }
      }
    } else {
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
  }
  copy_async_wait<0>();
  __syncthreads();

  // The rows of a warp pass through its own part of the q tile, so that the result is written 16 bytes at a time.
  T* staged = q_tile + warp * 16 * kPitch;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += shuffle_xor(sum[r], 1);
    sum[r] += shuffle_xor(sum[r], 2);
    const float scale_out = args.share(sum[r]);
    if (lane % 4 == 0 && my_row + 8 * r >= first_row && my_row + 8 * r < args.rows) args.log_sums.store(batch, head, my_row + 8 * r, top[r] / kLog2e + ait::log(sum[r]));
#pragma unroll
    for (int j = 0; j < kDepth / 8; ++j) {
      T* const to = staged + (lane / 4 + 8 * r) * kPitch + j * 8 + (lane % 4) * 2;
      if constexpr (kTf32) {
        *reinterpret_cast<float2*>(to) = make_float2(out[j][2 * r] * scale_out, out[j][2 * r + 1] * scale_out);
      } else {
        *reinterpret_cast<uint32_t*>(to) = pack_pair<T>(out[j][2 * r] * scale_out, out[j][2 * r + 1] * scale_out);
      }
    }
  }
  __syncwarp();
  constexpr int kChunks = kDepth / kChunk;
  for (int id = lane; id < 16 * kChunks; id += 32) {
    const int row = row0 + warp * 16 + id / kChunks, col = id % kChunks * kChunk;
    if (row < first_row || row >= args.rows || col >= args.width) continue;
    const T* from = staged + (id / kChunks) * kPitch + col;
    T* to = o + int64_t(row) * args.o.row + col;
    if (args.result_aligned && col + kChunk <= args.width) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int e = 0; e < kChunk && col + e < args.width; ++e) to[e] = from[e];
    }
  }
}

/// @brief Rows of one head of the result. Grid: row tiles, heads, batches; block: Tile::kThreads.
template <class Tile, bool kCausal, bool kWindow, bool kAligned, bool kTwo, class T, class S>
__global__ void __launch_bounds__(Tile::kThreads) attention_mma_kernel(const __grid_constant__ AttentionArgs<T, S> args) {
  const int64_t head = blockIdx.y, batch = blockIdx.z, kv = head / args.group;
  // Later rows have more work under a causal mask: start with them.
  const int row0 = int(kCausal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * Tile::kRows;
  attention_mma_rows<Tile, kCausal, kWindow, kAligned, true>(args, HeadRows<T, false>(args.q, args.q, 0, batch, head),
                                                             args.template k_rows<kTwo>(batch, kv), args.template v_rows<kTwo>(batch, kv),
                                                             args.o.data + batch * args.o.batch + head * args.o.head, row0, 0, head, batch);
}

/// @brief Launches `attention_mma_kernel`. `depth` and `width` may be at most Tile::kDepth.
/// @tparam kOddPitches whether rows of q, k or v may start off 16-byte boundaries. If not, only a pointer can be misaligned: rare, and then slow.
template <class Tile, bool kCausal, bool kWindow, bool kOddPitches, class T, class S, class Pieces = OnePiece>
int32_t attention_mma(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                      const S& scores, const LogSums<float>& log_sums = {}, Pieces pieces = {}) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  if (shape.heads > 65535 || shape.batch > 65535) return ctx.fail("attention: more than 65535 heads or batches");
  const AttentionArgs<T, S> args = attention_args(shape, q, k, v, o, scores, log_sums, pieces);
  if (!kOddPitches && !args.aligned) {
    return attention_simt<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, log_sums, pieces);
  }
  LaunchConfig config;
  config.grid = dim3(grid_size((shape.rows + Tile::kRows - 1) / Tile::kRows), grid_size(shape.heads), grid_size(shape.batch));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  constexpr bool kTwo = !std::is_same_v<Pieces, OnePiece>;
  if constexpr (kOddPitches) {
    if (!args.aligned) return launch(ctx, config, attention_mma_kernel<Tile, kCausal, kWindow, false, kTwo, T, S>, args);
  }
  return launch(ctx, config, attention_mma_kernel<Tile, kCausal, kWindow, true, kTwo, T, S>, args);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_MMA_CUH_
