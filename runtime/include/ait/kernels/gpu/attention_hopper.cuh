/// @file attention_hopper.cuh
/// @brief Attention on Hopper (sm_90a): bulk tensor copies, wgmma, a persistent grid; after FlashAttention-3 (Shah et al., 2024).
///
/// A block has a warpgroup of which one thread copies, and one to three warpgroups that own 64 rows of q each. All walk over the same steps of
/// k and v, from the last to the first, so that the masked ones come first. A group starts the scores of a step and the weighted sum of
/// the step before, and weighs its scores while the tensor cores work on the latter. Groups start their products in turns, so that
/// one weighs while another multiplies.
///
/// Of 8-bit floats, which the matrix instruction reads along lines alone, three warps beside the one that copies turn each step of v. Weights
/// become 8-bit floats, too, with 2^8 as the largest one of a row; the sum of the weights has the same factor.
#ifndef AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_
#define AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/attention_section.h"
#include "ait/kernels/gpu/attention_flash.cuh"
#include "ait/kernels/gpu/attention_products.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief softmax(changed(q @ k^T * scale)) @ v, or without the softmax. Grid: any; block: Tile::kThreads. At least one row, column, and column of each head.
template <class Tile, bool kCausal, bool kWindow, class T, class S, class Q, class W>
__global__ void __launch_bounds__(Tile::kThreads, 1) attention_hopper_kernel(const __grid_constant__ FlashArgs<T, S, Q, W> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kStages = Tile::kStages, kQueries = Tile::kQueries, kCols = Tile::kCols, kGroups = Tile::kGroups;
  constexpr bool kTurns = Tile::kTurns;
  static_assert(sizeof(T) == Tile::kBytes && (!kTurns || (S::kSoftmax && !Q::kRagged)));
  constexpr float kLog2e = S::kSoftmax ? 1.44269504088896341f : 1.f;
  AIT_DYNAMIC_SHARED(16, shared);
  const uint32_t q_at = (shared_address(shared) + 1023u) & ~1023u;
  const uint32_t k_at = q_at + kQueries * Tile::kQueryBytes, v_at = k_at + kStages * Tile::kStepBytes;
  const uint32_t turned_at = v_at + kStages * Tile::kStepBytes;
  const uint32_t q_full = turned_at + kStages * Tile::kTurnedBytes, q_empty = q_full + kQueries * 8;
  const uint32_t k_full = q_empty + kQueries * 8, k_empty = k_full + kStages * 8;
  const uint32_t v_full = k_empty + kStages * 8, v_empty = v_full + kStages * 8;
  const uint32_t turned_full = v_empty + kStages * 8, turned_empty = turned_full + kStages * 8;
  // What the second product reads.
  const uint32_t sums_at = kTurns ? turned_at : v_at, sums_full = kTurns ? turned_full : v_full, sums_empty = kTurns ? turned_empty : v_empty;
  constexpr int kSumBytes = kTurns ? Tile::kTurnedBytes : Tile::kStepBytes;
  const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
  const AttentionArgs<T, S>& attention = args.attention;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kQueries; ++s) barrier_init(q_full + s * 8, 1), barrier_init(q_empty + s * 8, 4 * kGroups);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(k_full + s * 8, 1), barrier_init(k_empty + s * 8, 4 * kGroups);
      barrier_init(v_full + s * 8, 1), barrier_init(v_empty + s * 8, kTurns ? Tile::kTurners : 4 * kGroups);
      if constexpr (kTurns) barrier_init(turned_full + s * 8, Tile::kTurners), barrier_init(turned_empty + s * 8, 4 * kGroups);
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
  auto sequence_of_tile = [&](FlashPlace& place) { return args.sequences.template at<Tile::kRows, kCausal, kWindow>(attention, place); };
  auto steps_of = [&](const FlashSequence& seq, int row0, int& first) {
    int end;
    seq.sight.template columns<kCausal, kWindow>(row0, Tile::kRows, first, end);
    first = first / kCols * kCols;
    if (Q::kRagged && (row0 >= seq.sight.rows || row0 + Tile::kRows <= seq.seeing)) return 0;
    return (end - first + kCols - 1) / kCols;
  };

  if (warp >= Tile::kConsumers / 32) {
    if constexpr (kGroups > 1) shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == Tile::kConsumers) {
      auto copy = [](uint32_t to, const CUtensorMap* map, uint32_t barrier, int lines, int line, int head, int batch) {
#pragma unroll
        for (int c = 0; c < Tile::kChunks; ++c) copy_box<false>(to + c * lines * Tile::kLineBytes, map, barrier, c * Tile::kLine, line, head, batch, 0);
      };
      FlashTurns turns;
      FlashPlace place(args, turns.tile());
      if ((place.row_tile | place.head | place.batch | place.kv) < 0) __trap();  // never; so the divisions are not put behind the wait
      wait_for_previous();
      do {
        const FlashSequence seq = sequence_of_tile(place);
        const int row0 = place.row_tile * Tile::kRows;
        int first;
        const int steps = steps_of(seq, row0, first);
        if (steps <= 0) continue;
        barrier_wait(q_empty + q_place.stage * 8, q_place.parity ^ 1);
        barrier_expect(q_full + q_place.stage * 8, Tile::kQueryBytes);
        copy(q_at + q_place.stage * Tile::kQueryBytes, &args.q_map, q_full + q_place.stage * 8, Tile::kRows, seq.row_at + row0,
             args.q_heads ? place.head : 0, args.q_batches ? seq.batch : 0);
        q_place.next();
        // A group asks for the k of a step before it asks for the v of the step before.
        for (int step = steps - 1; step >= -1; --step) {
          if (step >= 0) {
            barrier_wait(k_empty + k_place.stage * 8, k_place.parity ^ 1);
            barrier_expect(k_full + k_place.stage * 8, Tile::kStepBytes);
            copy(k_at + k_place.stage * Tile::kStepBytes, &args.k_map, k_full + k_place.stage * 8, kCols, seq.col_at + first + step * kCols,
                 args.k_heads ? place.kv : 0, args.k_batches ? seq.batch : 0);
            k_place.next();
          }
          if (step < steps - 1) {
            barrier_wait(v_empty + v_place.stage * 8, v_place.parity ^ 1);
            barrier_expect(v_full + v_place.stage * 8, Tile::kStepBytes);
            copy(v_at + v_place.stage * Tile::kStepBytes, &args.v_map, v_full + v_place.stage * 8, kCols, seq.col_at + first + (step + 1) * kCols,
                 args.v_heads ? place.kv : 0, args.v_batches ? seq.batch : 0);
            v_place.next();
          }
        }
      } while (turns.next(args, place));
    } else if (kTurns && warp > Tile::kConsumers / 32) {
      FlashTurns turns;
      FlashPlace place(args, turns.tile());
      do {
        int first;
        for (int step = steps_of(sequence_of_tile(place), place.row_tile * Tile::kRows, first); step > 0; --step) {
          barrier_wait(v_full + v_place.stage * 8, v_place.parity);
          barrier_wait(turned_empty + v_place.stage * 8, v_place.parity ^ 1);
          turn_values<Tile>(turned_at + v_place.stage * Tile::kTurnedBytes, v_at + v_place.stage * Tile::kStepBytes, warp - Tile::kConsumers / 32 - 1);
          publish_to_copies();
          __syncwarp();
          if (threadIdx.x % 32 == 0) barrier_arrive(turned_full + v_place.stage * 8), barrier_arrive(v_empty + v_place.stage * 8);
          v_place.next();
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
    FlashSums<Tile, T> sums;
    float scores[kCols / 2], keep[2];

    // Behind a sequence lie rows of others, and 0 times their NaN is NaN: rows of v that nobody sees become 0.
    auto clear_v = [&](int from) {
      barrier_wait(v_full + v_place.stage * 8, v_place.parity);
      unsigned char* const v = reinterpret_cast<unsigned char*>(shared) + (v_at - shared_address(shared)) + v_place.stage * Tile::kStepBytes;
      for (int i = int(threadIdx.x); i < (kCols - from) * Tile::kChunks * 8; i += Tile::kConsumers) {
        const int line = i / 8, chunk = line / (kCols - from), row = from + line % (kCols - from);
        *reinterpret_cast<uint4*>(v + (chunk * kCols + row) * 128 + i % 8 * 16) = make_uint4(0, 0, 0, 0);
      }
      publish_to_copies();
      named_barrier_wait(5, Tile::kConsumers);
    };

    FlashTurns turns;
    FlashPlace place(args, turns.tile());
    wait_for_previous();
    do {
      args.sequences.template clear_outside<Tile::kConsumers>(attention, place, args.row_tiles);
      const FlashSequence seq = sequence_of_tile(place);
      const int row0 = place.row_tile * Tile::kRows + group * 64, shift = seq.sight.shift;
      int first;
      const int steps = steps_of(seq, place.row_tile * Tile::kRows, first);
      const int my_row = row0 + warp % 4 * 16 + lane / 4;
      auto fetch = [&](int col0) { fragment.fetch(col0 + lane % 4 * 2, col0, attention.cols, attention.paired); };
      auto change_and_hide = [&](int col0) {
        if constexpr (S::kChanged) {
#pragma unroll
          for (int i = 0; i < kCols / 2; ++i) scores[i] = finite_times(fragment.changed(i, scores[i] * attention.scale), kLog2e);
        }
        const bool edge = col0 + kCols > seq.sight.cols || (kCausal && col0 + kCols > row0 + shift + 1) ||
                          (kWindow && (col0 <= row0 + 63 + shift - attention.window || col0 + kCols > row0 + shift + attention.window));
        if (edge) rows.hide(seq.sight, scores, my_row + shift, col0 + lane % 4 * 2);
      };
      rows.clear();
      sums.clear();
      if (steps > 0) {
        int col0 = first + (steps - 1) * kCols;
        fragment.place(attention.scores, place.batch, place.head, my_row, attention.rows);
        fetch(col0);
        const uint32_t q = q_at + q_place.stage * Tile::kQueryBytes;
        barrier_wait(q_full + q_place.stage * 8, q_place.parity);
        barrier_wait(k_full + k_place.stage * 8, k_place.parity);
        take_turn();
        start_scores<Tile, T>(scores, q, k_at + k_place.stage * Tile::kStepBytes, group);
        pass_turn(group);
        wgmma_wait<0>();
        hold_registers(scores);
        release(k_empty + k_place.stage * 8);
        k_place.next();
        change_and_hide(col0);
        rows.weigh(scores, scale, keep);
        sums.round(scores);
        if (Q::kRagged && col0 + kCols > seq.sight.cols) clear_v(seq.sight.cols - col0);
        while (col0 > first) {
          col0 -= kCols;
          barrier_wait(k_full + k_place.stage * 8, k_place.parity);
          take_turn();
          start_scores<Tile, T>(scores, q, k_at + k_place.stage * Tile::kStepBytes, group);
          barrier_wait(sums_full + v_place.stage * 8, v_place.parity);
          sums.start(rows.out, sums_at + v_place.stage * kSumBytes);
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
          if constexpr (Tile::kDepth >= 128) barrier_wait(sums_full + v_place.stage * 8, v_place.parity);
          wgmma_wait<0>();
          sums.hold(rows.out);
          release(sums_empty + v_place.stage * 8);
          v_place.next();
          sums.add(rows.out);
          if constexpr (S::kSoftmax) sums.rescale(rows.out, keep);
          sums.round(scores);
        }
        release(q_empty + q_place.stage * 8);
        q_place.next();
        barrier_wait(sums_full + v_place.stage * 8, v_place.parity);
        sums.start(rows.out, sums_at + v_place.stage * kSumBytes);
        wgmma_wait<0>();
        sums.hold(rows.out);
        release(sums_empty + v_place.stage * 8);
        v_place.next();
        sums.add(rows.out);
      }
      rows.template store<Q::kRagged>(attention, seq, place, my_row, scale, args.numbers);
    } while (turns.next(args, place));
    if (group == 0) take_turn();  // the last turn that was passed
  }
#endif
}

/// @brief Of how many heads the k and v may be read by turns and stay in L2: bytes.
inline constexpr int64_t kShareOfL2 = 32 << 20;

/// @brief Launches `attention_hopper_kernel` on `batch` batches. @param row_tiles of a head
/// @param section heads whose tiles are worked on side by side, longest first; 0: what is even
template <class Tile, bool kCausal, bool kWindow, class T, class S, class Q, class W = PlainRows>
int32_t launch_flash(const Context& ctx, const AttentionShape& shape, const AttentionArgs<T, S>& attention, const Q& sequences, int64_t batch,
                     int64_t row_tiles, int section, const W& numbers = {}) {
  FlashArgs<T, S, Q, W> args{{}, {}, {}, attention, sequences, int(batch), int(row_tiles), int(row_tiles * shape.heads * batch), section > 0 ? section : 1};
  const int sms = multiprocessors();
  if (kCausal && !kWindow && section <= 0) {
    const int64_t most = kShareOfL2 / (shape.cols * (shape.depth + shape.width) * Tile::kBytes) * shape.group, instances = shape.heads * batch;
    args.section = even_section({args.row_tiles, int(instances), Tile::kRows, Tile::kCols, int(shape.shift()), int(shape.cols),
                                 int(most < instances ? most : instances), sms});
  }
  const Heads<const T>&q = attention.q, &k = attention.k, &v = attention.v;
  args.numbers = numbers;
  args.q_heads = q.head != 0, args.q_batches = q.batch != 0;
  args.k_heads = k.head != 0, args.k_batches = k.batch != 0;
  args.v_heads = v.head != 0, args.v_batches = v.batch != 0;
  const int64_t kv_heads = shape.heads / shape.group;
  const bool mapped = tensor_map(&args.q_map, q.data, shape.depth, shape.rows, q.row, shape.heads, q.head, batch, q.batch, Tile::kRows, Tile::kLine) &&
                      tensor_map(&args.k_map, k.data, shape.depth, shape.cols, k.row, kv_heads, k.head, batch, k.batch, Tile::kCols, Tile::kLine) &&
                      tensor_map(&args.v_map, v.data, shape.width, shape.cols, v.row, kv_heads, v.head, batch, v.batch, Tile::kCols, Tile::kLine);
  if (!mapped) return ctx.fail("attention: the driver does not describe its operands to the copy engine (cuTensorMapEncodeTiled)");
  LaunchConfig config;
  config.grid = dim3(grid_size(sms < args.tiles ? sms : args.tiles));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  return launch(ctx, config, attention_hopper_kernel<Tile, kCausal, kWindow, T, S, Q, W>, args);
}

/// @brief Whether the copy engine can read q, k and v, the result can be written 16 bytes at a time, and tiles can be counted.
template <class T, class S>
inline bool fits_flash(const AttentionShape& shape, const AttentionArgs<T, S>& args, int64_t tiles) {
  return args.aligned && args.result_aligned && shape.width % 8 == 0 && shape.depth > 0 && shape.cols > 0 && tiles < (int64_t(1) << 30);
}

/// @brief Attention of half, bfloat16 or 8-bit floats. Where q, k, v or the result do not start on 16-byte boundaries, the width is no multiple of 8, or a
/// size is 0, a slow kernel takes over. `depth` and `width` may be at most Tile::kDepth; scores that are not changed have a `scale` above 0.
/// @param numbers what is written in place of `o`, or `PlainRows`
template <class Tile, bool kCausal, bool kWindow, class T, class S, class W = PlainRows>
int32_t attention_hopper(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                         const S& scores, const LogSums<float>& log_sums = {}, int section = 0, const W& numbers = {}) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  AttentionArgs<T, S> args = attention_args(shape, q, k, v, o, scores, log_sums);
  if constexpr (!std::is_same_v<W, PlainRows>) args.result_aligned = heads_aligned(numbers.o);
  const int64_t row_tiles = (shape.rows + Tile::kRows - 1) / Tile::kRows;
  if (!fits_flash(shape, args, row_tiles * shape.heads * shape.batch)) {
    return attention_simt<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, log_sums, OnePiece{}, numbers);
  }
  return launch_flash<Tile, kCausal, kWindow>(ctx, shape, args, WholeSequences{}, shape.batch, row_tiles, section, numbers);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_HOPPER_CUH_
