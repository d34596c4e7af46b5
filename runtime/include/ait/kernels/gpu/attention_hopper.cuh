/// @file attention_hopper.cuh
/// @brief Attention on Hopper (sm_90a): bulk tensor copies, wgmma, a persistent grid; after FlashAttention-3 (Shah et al., 2024).
///
/// A block has a warpgroup of which one thread copies, and one to three warpgroups that own 64 rows of q each. All walk over the same steps of
/// k and v, from the last to the first, so that the masked ones come first. A group starts the scores of a step and the weighted sum of
/// the step before, and weighs its scores while the tensor cores work on the latter. Groups start their products in turns, so that
/// one weighs while another multiplies.
#ifndef AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_
#define AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/attention_section.h"
#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/wgmma.cuh"
#include "ait/kernels/gpu/wgmma_registers.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 64
/// @tparam kGroups_ warpgroups that compute, of 64 rows of q each
/// @tparam kCols_ rows of k and v a step
/// @tparam kStages_ steps of k and of v in flight
template <int kDepth_, int kGroups_, int kCols_, int kStages_>
struct FlashTile {
  static constexpr int kDepth = kDepth_, kGroups = kGroups_, kCols = kCols_, kStages = kStages_;
  static constexpr int kRows = 64 * kGroups, kChunks = kDepth / 64;
  static constexpr int kConsumers = 128 * kGroups, kThreads = kConsumers + 128;
  static constexpr int kQueryBytes = kRows * kDepth * 2, kStepBytes = kCols * kDepth * 2;
  static constexpr int kLimit = 227 * 1024, kBarrierBytes = 8 * 2 * (2 + 2 * kStages);
  /// Places for q: two, so that the next rows come while these are worked on, where there is room.
  static constexpr int kQueries = 1024 + 2 * kQueryBytes + 2 * kStages * kStepBytes + kBarrierBytes <= kLimit ? 2 : 1;
  static constexpr int kSharedBytes = 1024 + kQueries * kQueryBytes + 2 * kStages * kStepBytes + kBarrierBytes;

  /// Registers of a thread at the start, of one that copies and of one that computes: together no more than at the start.
  static constexpr int kStartRegisters = kGroups == 1 ? 255 : 65536 / kThreads / 8 * 8;
  static constexpr int kCopyRegisters = kGroups == 2 ? 24 : 32;
  static constexpr int kRegisters = (kStartRegisters * kThreads - kCopyRegisters * 128) / kConsumers / 8 * 8;

  static_assert(kDepth % 64 == 0 && 64 <= kDepth && kDepth <= 256, "heads have up to 256 columns");
  static_assert(1 <= kGroups && kGroups <= 3 && kCols % 32 == 0 && 32 <= kCols && kCols <= 256 && kStages >= 1);
  static_assert(kSharedBytes <= kLimit, "at most 227 KiB of shared memory");
};

/// @brief What `attention_hopper_kernel` is given.
template <class T, class S>
struct FlashArgs {
  CUtensorMap q_map, k_map, v_map;
  AttentionArgs<T, S> attention;
  int batch;
  int row_tiles, tiles;    ///< of a head; of all heads
  int section;             ///< heads whose tiles are worked on side by side, longest first
  bool q_heads, q_batches, k_heads, k_batches, v_heads, v_batches;  ///< whether each head or batch has rows of its own
};

/// @brief Which rows of which head a tile is: those with the most columns under a causal mask first.
struct FlashPlace {
  int row_tile, head, batch;
  int kv;  ///< the head of k and v

  template <class T, class S>
  __device__ __forceinline__ FlashPlace(const FlashArgs<T, S>& args, int tile) {
    const int heads = args.attention.heads, of_section = args.section * args.row_tiles;
    const int first = tile / of_section * args.section, left = heads * args.batch - first, at = tile % of_section;
    const int side = left < args.section ? left : args.section;
    row_tile = args.row_tiles - 1 - at / side;
    const int instance = first + at % side;
    head = instance % heads, batch = instance / heads, kv = head / args.attention.group;
  }
};

/// @brief The tiles of a block: every other round goes through the blocks backwards, so that long and short ones even out.
struct FlashTurns {
  int base = 0, round = 0;

  __device__ __forceinline__ int tile() const { return base + int(round & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x); }
  /// Moves on to the next tile, where it is; false when there are no more.
  template <class T, class S>
  __device__ __forceinline__ bool next(const FlashArgs<T, S>& args, FlashPlace& place) {
    base += int(gridDim.x), ++round;
    const int to = tile();
    if (to < args.tiles) place = FlashPlace(args, to);
    return to < args.tiles;
  }
};

/// @brief Among four neighbouring lanes: word j of lane i becomes word i of lane j.
__device__ __forceinline__ void transpose_words(uint32_t (&v)[4]) {
  const int lane = int(threadIdx.x);
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if ((j & bit) != 0) continue;
      const uint32_t received = shuffle_xor(upper ? v[j] : v[j + bit], bit);
      if (upper) {
        v[j] = received;
      } else {
        v[j + bit] = received;
      }
    }
  }
}

/// @brief The rows of a warpgroup: running maxima, sums and weighted sums of rows lane / 4 and lane / 4 + 8 of each warp.
template <class Tile, bool kCausal, bool kWindow, class T, class S>
struct FlashRows {
  static constexpr int kScores = Tile::kCols / 2, kOut = Tile::kDepth / 2;
  float out[kOut], top[2], sum[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] = 0.f;
    top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0.f;
  }

  /// Hides the scores of columns that a row does not see; `at`: where the first of the two rows stands.
  __device__ __forceinline__ void hide(const AttentionArgs<T, S>& args, float (&scores)[kScores], int at, int col0) const {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const int col = col0 + i / 4 * 8 + i % 2;
      if (!args.template sees<kCausal, kWindow>(at + i / 2 % 2 * 8, col)) scores[i] = S::kSoftmax ? -INFINITY : 0.f;
    }
  }

  /// Turns scores into weights, which they are if there is no softmax. @param keep what the weighted sums must be multiplied by
  __device__ __forceinline__ void weigh(float (&scores)[kScores], float scale, float (&keep)[2]) {
    if constexpr (!S::kSoftmax) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float high[2] = {top[r], scores[2 * r]};
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
        high[0] = fmaxf(high[0], scores[i + 2 * r]);
        high[1] = fmaxf(high[1], scores[i + 2 * r + 1]);
      }
      high[0] = fmaxf(high[0], high[1]);
      high[0] = fmaxf(high[0], shuffle_xor(high[0], 1));
      high[0] = fmaxf(high[0], shuffle_xor(high[0], 2));
      const float base = high[0] == -INFINITY ? 0.f : high[0] * scale;
      keep[r] = exp2_fast(top[r] * scale - base);
      top[r] = high[0];
      float part[2] = {sum[r] * keep[r], 0.f};
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          scores[i + 2 * r + e] = exp2_fast(scores[i + 2 * r + e] * scale - base);
          part[e] += scores[i + 2 * r + e];
        }
      }
      sum[r] = part[0] + part[1];
    }
  }

  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
    if constexpr (!S::kSoftmax) return;
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] *= keep[i / 2 % 2];
  }

  /// Writes the two rows from `row` on, 16 bytes a lane. @param unit what a score was multiplied by on its way to a power of two
  __device__ __forceinline__ void store(const AttentionArgs<T, S>& args, const FlashPlace& place, int row, float unit) {
    T* to = args.o.data + place.batch * args.o.batch + place.head * args.o.head;
    const int lane = int(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += shuffle_xor(sum[r], 1);
      sum[r] += shuffle_xor(sum[r], 2);
      const float scale = S::kSoftmax ? 1.f / sum[r] : 1.f;
      if (S::kSoftmax && lane == 0 && row + 8 * r < args.rows) {
        args.log_sums.store(place.batch, place.head, row + 8 * r, (top[r] * unit + log2f(sum[r])) * 0.69314718055994531f);
      }
#pragma unroll
      for (int block = 0; block < kOut / 16; ++block) {  // of 32 columns
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int i = block * 16 + j * 4 + 2 * r;
          words[j] = pack_pair<T>(out[i] * scale, out[i + 1] * scale);
        }
        transpose_words(words);
        const int col = block * 32 + lane * 8;
        if (row + 8 * r < args.rows && col < args.width) {
          *reinterpret_cast<uint4*>(to + int64_t(row + 8 * r) * args.o.row + col) = make_uint4(words[0], words[1], words[2], words[3]);
        }
      }
    }
  }
};

/// @brief softmax(changed(q @ k^T * scale)) @ v, or without the softmax. Grid: any; block: Tile::kThreads. At least one row, column, and column of each head.
template <class Tile, bool kCausal, bool kWindow, class T, class S>
__global__ void __launch_bounds__(Tile::kThreads, 1) attention_hopper_kernel(const __grid_constant__ FlashArgs<T, S> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kStages = Tile::kStages, kQueries = Tile::kQueries, kCols = Tile::kCols, kGroups = Tile::kGroups;
  constexpr float kLog2e = S::kSoftmax ? 1.44269504088896341f : 1.f;
  AIT_DYNAMIC_SHARED(16, shared);
  const uint32_t q_at = (shared_address(shared) + 1023u) & ~1023u;
  const uint32_t k_at = q_at + kQueries * Tile::kQueryBytes, v_at = k_at + kStages * Tile::kStepBytes;
  const uint32_t q_full = v_at + kStages * Tile::kStepBytes, q_empty = q_full + kQueries * 8;
  const uint32_t k_full = q_empty + kQueries * 8, k_empty = k_full + kStages * 8;
  const uint32_t v_full = k_empty + kStages * 8, v_empty = v_full + kStages * 8;
  const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
  const AttentionArgs<T, S>& attention = args.attention;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kQueries; ++s) barrier_init(q_full + s * 8, 1), barrier_init(q_empty + s * 8, 4 * kGroups);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(k_full + s * 8, 1), barrier_init(k_empty + s * 8, 4 * kGroups);
      barrier_init(v_full + s * 8, 1), barrier_init(v_empty + s * 8, 4 * kGroups);
    }
    barrier_init_fence();
    prefetch_map(&args.q_map);
    prefetch_map(&args.k_map);
    prefetch_map(&args.v_map);
  }
  __syncthreads();
  allow_next();

  RingPlace<kQueries> q_place;
  RingPlace<kStages> k_place, v_place;
  auto steps_of = [&](int row0, int& first) {
    int end;
    attention.template columns<kCausal, kWindow>(row0, Tile::kRows, first, end);
    first = first / kCols * kCols;
    return (end - first + kCols - 1) / kCols;
  };

  if (warp >= Tile::kConsumers / 32) {
    if constexpr (kGroups > 1) shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == Tile::kConsumers) {
      auto copy = [](uint32_t to, const CUtensorMap* map, uint32_t barrier, int lines, int line, int head, int batch) {
#pragma unroll
        for (int c = 0; c < Tile::kChunks; ++c) copy_box<false>(to + c * lines * 128, map, barrier, c * 64, line, head, batch, 0);
      };
      FlashTurns turns;
      FlashPlace place(args, turns.tile());
      if ((place.row_tile | place.head | place.batch | place.kv) < 0) __trap();  // never; so the divisions are not put behind the wait
      wait_for_previous();
      do {
        const int row0 = place.row_tile * Tile::kRows;
        int first;
        const int steps = steps_of(row0, first);
        if (steps <= 0) continue;
        barrier_wait(q_empty + q_place.stage * 8, q_place.parity ^ 1);
        barrier_expect(q_full + q_place.stage * 8, Tile::kQueryBytes);
        copy(q_at + q_place.stage * Tile::kQueryBytes, &args.q_map, q_full + q_place.stage * 8, Tile::kRows, row0,
             args.q_heads ? place.head : 0, args.q_batches ? place.batch : 0);
        q_place.next();
        // A group asks for the k of a step before it asks for the v of the step before.
        for (int step = steps - 1; step >= -1; --step) {
          if (step >= 0) {
            barrier_wait(k_empty + k_place.stage * 8, k_place.parity ^ 1);
            barrier_expect(k_full + k_place.stage * 8, Tile::kStepBytes);
            copy(k_at + k_place.stage * Tile::kStepBytes, &args.k_map, k_full + k_place.stage * 8, kCols, first + step * kCols,
                 args.k_heads ? place.kv : 0, args.k_batches ? place.batch : 0);
            k_place.next();
          }
          if (step < steps - 1) {
            barrier_wait(v_empty + v_place.stage * 8, v_place.parity ^ 1);
            barrier_expect(v_full + v_place.stage * 8, Tile::kStepBytes);
            copy(v_at + v_place.stage * Tile::kStepBytes, &args.v_map, v_full + v_place.stage * 8, kCols, first + (step + 1) * kCols,
                 args.v_heads ? place.kv : 0, args.v_batches ? place.batch : 0);
            v_place.next();
          }
        }
      } while (turns.next(args, place));
    }
  } else {
    if constexpr (kGroups > 1) grow_registers<Tile::kRegisters>();
    const int group = warp / 4, lane = int(threadIdx.x) % 32;
    const float scale = S::kChanged ? 1.f : attention.scale * kLog2e;  // of what `weigh` is given
    auto release = [&](uint32_t barrier) {
      if (lane == 0) barrier_arrive(barrier);
    };
    auto take_turn = [&] {
      if constexpr (kGroups > 1) named_barrier_wait(1 + group, 256);
    };
    auto pass_turn = [&](int from) {
      if constexpr (kGroups > 1) named_barrier_arrive(1 + (from + 1) % kGroups, 256);
    };
    if (group == kGroups - 1) pass_turn(group);  // the first turn is group 0's

    FlashRows<Tile, kCausal, kWindow, T, S> rows;
    ScoreFragment<S, kCols / 8> fragment;
    float scores[kCols / 2], keep[2];
    uint32_t weights[kCols / 16][4];

    auto start_scores = [&](uint32_t q, uint32_t k) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Tile::kDepth / 16; ++i) {
        const uint64_t a = wgmma_operand(q + i / 4 * (Tile::kRows * 128) + group * 64 * 128 + i % 4 * 32, 0);
        const uint64_t b = wgmma_operand(k + i / 4 * (kCols * 128) + i % 4 * 32, 0);
        Wgmma<kCols>::template run<T, 0, 0>(scores, a, b, i > 0);
      }
      wgmma_commit();
    };
    auto start_sums = [&](uint32_t v) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < kCols / 16; ++i) {
        WgmmaFromRegisters<Tile::kDepth>::template run<T>(rows.out, weights[i], wgmma_operand(v + i * 2048, kCols * 128));
      }
      wgmma_commit();
    };
    auto round_weights = [&] {
#pragma unroll
      for (int i = 0; i < kCols / 16; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) weights[i][e] = pack_pair<T>(scores[8 * i + 2 * e], scores[8 * i + 2 * e + 1]);
    };

    FlashTurns turns;
    FlashPlace place(args, turns.tile());
    wait_for_previous();
    do {
      const int row0 = place.row_tile * Tile::kRows + group * 64, shift = attention.shift;
      int first;
      const int steps = steps_of(place.row_tile * Tile::kRows, first);
      const int my_row = row0 + warp % 4 * 16 + lane / 4;
      auto fetch = [&](int col0) { fragment.fetch(col0 + lane % 4 * 2, col0, attention.cols, attention.paired); };
      auto change_and_hide = [&](int col0) {
        if constexpr (S::kChanged) {
#pragma unroll
          for (int i = 0; i < kCols / 2; ++i) scores[i] = fragment.changed(i, scores[i] * attention.scale) * kLog2e;
        }
        const bool edge = col0 + kCols > attention.cols || (kCausal && col0 + kCols > row0 + shift + 1) ||
                          (kWindow && (col0 <= row0 + 63 + shift - attention.window || col0 + kCols > row0 + shift + attention.window));
        if (edge) rows.hide(attention, scores, my_row + shift, col0 + lane % 4 * 2);
      };
      rows.clear();
      if (steps > 0) {
        int col0 = first + (steps - 1) * kCols;
        fragment.place(attention.scores, place.batch, place.head, my_row, attention.rows);
        fetch(col0);
        const uint32_t q = q_at + q_place.stage * Tile::kQueryBytes;
        barrier_wait(q_full + q_place.stage * 8, q_place.parity);
        barrier_wait(k_full + k_place.stage * 8, k_place.parity);
        take_turn();
        start_scores(q, k_at + k_place.stage * Tile::kStepBytes);
        pass_turn(group);
        wgmma_wait<0>();
        hold_registers(scores);
        release(k_empty + k_place.stage * 8);
        k_place.next();
        change_and_hide(col0);
        rows.weigh(scores, scale, keep);
        round_weights();
        while (col0 > first) {
          col0 -= kCols;
          barrier_wait(k_full + k_place.stage * 8, k_place.parity);
          take_turn();
          start_scores(q, k_at + k_place.stage * Tile::kStepBytes);
          barrier_wait(v_full + v_place.stage * 8, v_place.parity);
          start_sums(v_at + v_place.stage * Tile::kStepBytes);
          pass_turn(group);
          fetch(col0);
          wgmma_wait<1>();
          hold_registers(scores);
          release(k_empty + k_place.stage * 8);
          k_place.next();
          change_and_hide(col0);
          rows.weigh(scores, scale, keep);
          hold_registers(scores);
          // Has ended; its branch keeps the next wait behind the weights, which hides them. With 64 columns other groups hide them as well.
          if constexpr (Tile::kDepth >= 128) barrier_wait(v_full + v_place.stage * 8, v_place.parity);
          wgmma_wait<0>();
          hold_registers(rows.out);
          release(v_empty + v_place.stage * 8);
          v_place.next();
          rows.rescale(keep);
          round_weights();
        }
        release(q_empty + q_place.stage * 8);
        q_place.next();
        barrier_wait(v_full + v_place.stage * 8, v_place.parity);
        start_sums(v_at + v_place.stage * Tile::kStepBytes);
        wgmma_wait<0>();
        hold_registers(rows.out);
        release(v_empty + v_place.stage * 8);
        v_place.next();
      }
      rows.store(attention, place, my_row, scale);
    } while (turns.next(args, place));
    if (group == 0) take_turn();  // the last turn that was passed
  }
#endif
}

/// @brief Of how many heads the k and v may be read by turns and stay in L2: bytes.
inline constexpr int64_t kShareOfL2 = 32 << 20;

/// @brief Launches `attention_hopper_kernel` on half or bfloat16. Where q, k, v or the result do not start on 16-byte boundaries, the width is
/// no multiple of 8, or a size is 0, a slow kernel takes over. `depth` and `width` may be at most Tile::kDepth; scores that are not changed have a `scale` above 0.
/// @param section heads whose tiles are worked on side by side, longest first; 0: what is even
template <class Tile, bool kCausal, bool kWindow, class T, class S>
int32_t attention_hopper(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                         const S& scores, const LogSums<float>& log_sums = {}, int section = 0) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  FlashArgs<T, S> args{{}, {}, {}, attention_args(shape, q, k, v, o, scores, log_sums), int(shape.batch), 0, 0, 1};
  const int64_t row_tiles = (shape.rows + Tile::kRows - 1) / Tile::kRows, instances = shape.heads * shape.batch;
  const bool fits = args.attention.aligned && args.attention.result_aligned && shape.width % 8 == 0 && shape.depth > 0 && shape.cols > 0 &&
                    row_tiles * instances < (int64_t(1) << 30);
  if (!fits) {
    return attention_simt<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, log_sums);
  }
  args.row_tiles = int(row_tiles), args.tiles = int(row_tiles * instances);
  const int sms = multiprocessors();
  args.section = section > 0 ? section : 1;
  if (kCausal && !kWindow && section <= 0) {
    const int64_t most = kShareOfL2 / (shape.cols * (shape.depth + shape.width) * 2) * shape.group;
    args.section = even_section({args.row_tiles, int(instances), Tile::kRows, Tile::kCols, int(shape.shift()), int(shape.cols),
                                 int(most < instances ? most : instances), sms});
  }
  args.q_heads = q.head != 0, args.q_batches = q.batch != 0;
  args.k_heads = k.head != 0, args.k_batches = k.batch != 0;
  args.v_heads = v.head != 0, args.v_batches = v.batch != 0;
  const int64_t kv_heads = shape.heads / shape.group;
  const bool mapped =
      tensor_map(&args.q_map, q.data, shape.depth, shape.rows, q.row, shape.heads, q.head, shape.batch, q.batch, Tile::kRows) &&
      tensor_map(&args.k_map, k.data, shape.depth, shape.cols, k.row, kv_heads, k.head, shape.batch, k.batch, Tile::kCols) &&
      tensor_map(&args.v_map, v.data, shape.width, shape.cols, v.row, kv_heads, v.head, shape.batch, v.batch, Tile::kCols);
  if (!mapped) return ctx.fail("attention: the driver does not describe its operands to the copy engine (cuTensorMapEncodeTiled)");
  LaunchConfig config;
  config.grid = dim3(uint32_t(sms < args.tiles ? sms : args.tiles));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  return launch(ctx, config, attention_hopper_kernel<Tile, kCausal, kWindow, T, S>, args);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_
