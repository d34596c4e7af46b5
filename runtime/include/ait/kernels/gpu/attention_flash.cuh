/// @file attention_flash.cuh
/// @brief The parts of attention_hopper.cuh: tiles, their order and their sequences, and the work of a warpgroup on its rows.
#ifndef AIT_KERNELS_GPU_ATTENTION_FLASH_CUH_
#define AIT_KERNELS_GPU_ATTENTION_FLASH_CUH_

#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 64
/// @tparam kGroups_ warpgroups that compute, of 64 rows of q each
/// @tparam kCols_ rows of k and v a step
/// @tparam kStages_ steps of k and of v in flight
/// @tparam kBytes_ of an element: 2, or 1 for 8-bit floats, of which v is turned in shared memory, so that its columns lie along lines
template <int kDepth_, int kGroups_, int kCols_, int kStages_, int kBytes_ = 2>
struct FlashTile {
  static constexpr int kDepth = kDepth_, kGroups = kGroups_, kCols = kCols_, kStages = kStages_, kBytes = kBytes_;
  static constexpr bool kTurns = kBytes == 1;
  static constexpr int kLineBytes = kDepth * kBytes < 128 ? kDepth * kBytes : 128, kLine = kLineBytes / kBytes;
  static constexpr int kRows = 64 * kGroups, kChunks = kDepth / kLine;
  static constexpr int kConsumers = 128 * kGroups, kThreads = kConsumers + 128;
  static constexpr int kTurners = 3;  ///< warps that turn v, beside the one that copies
  static constexpr int kQueryBytes = kRows * kDepth * kBytes, kStepBytes = kCols * kDepth * kBytes;
  static constexpr int kTurnedBytes = kTurns ? (kCols + 127) / 128 * 128 * kDepth : 0;
  static constexpr int kStageBytes = 2 * kStepBytes + kTurnedBytes;
  static constexpr int kLimit = 227 * 1024, kBarrierBytes = 8 * 2 * (2 + (kTurns ? 3 : 2) * kStages);
  /// Places for q: two, so that the next rows come while these are worked on, where there is room.
  static constexpr int kQueries = 1024 + 2 * kQueryBytes + kStages * kStageBytes + kBarrierBytes <= kLimit ? 2 : 1;
  static constexpr int kSharedBytes = 1024 + kQueries * kQueryBytes + kStages * kStageBytes + kBarrierBytes;

  /// Registers of a thread at the start, of one that copies and of one that computes: together no more than at the start.
  static constexpr int kStartRegisters = kGroups == 1 ? 255 : 65536 / kThreads / 8 * 8;
  static constexpr int kCopyRegisters = kGroups != 2 ? 32 : kTurns ? 40 : 24;
  static constexpr int kRegisters = (kStartRegisters * kThreads - kCopyRegisters * 128) / kConsumers / 8 * 8;

  static_assert(kDepth % 64 == 0 && 64 <= kDepth && kDepth <= 256, "heads have up to 256 columns");
  static_assert(!kTurns || kDepth <= 128, "heads of 8-bit floats have up to 128 columns");
  static_assert(1 <= kGroups && kGroups <= 3 && kCols % 32 == 0 && 32 <= kCols && kCols <= 256 && kStages >= 1);
  static_assert(kSharedBytes <= kLimit, "at most 227 KiB of shared memory");
};

/// @brief The arguments of `attention_hopper_kernel`. @tparam Q which sequences there are: `WholeSequences` or `RaggedSequences`
/// @tparam W what the rows of the result become: `PlainRows` or `RoundedRows`, or of whole sequences `NumberRows`
template <class T, class S, class Q, class W = PlainRows>
struct FlashArgs {
  CUtensorMap q_map, k_map, v_map;
  AttentionArgs<T, S> attention;
  Q sequences;
  int batch;
  int row_tiles, tiles;    ///< of a head; of all heads
  int section;             ///< heads whose tiles are worked on side by side, longest first
  bool q_heads, q_batches, k_heads, k_batches, v_heads, v_batches;  ///< whether each head or batch has rows of its own
  W numbers;
};

/// @brief Which rows of which head a tile is: those with the most columns under a causal mask first.
struct FlashPlace {
  int row_tile, head, batch;
  int kv;  ///< the head of k and v

  template <class Args>
  __device__ __forceinline__ FlashPlace(const Args& args, int tile) {
    const int heads = args.attention.heads, of_section = args.section * args.row_tiles;
    const int first = tile / of_section * args.section, left = heads * args.batch - first, at = tile % of_section;
    const int side = left < args.section ? left : args.section;
    row_tile = args.row_tiles - 1 - at / side;
    const int instance = first + at % side;
    head = instance % heads, batch = instance / heads, kv = head / args.attention.group;
  }
};

/// @brief The sequence of a tile.
struct FlashSequence {
  Sight sight;
  int row_at, col_at;  ///< where its rows of q and the result begin, and those of k and v
  int batch;
  int seeing, limit;   ///< the rows from `seeing` on see a column; of the other rows of the result those before `limit` are 0
};

/// @brief Each head of each batch is a sequence of its own.
struct WholeSequences {
  static constexpr bool kRagged = false;

  template <int kRows, bool kCausal, bool kWindow, class Args>
  __device__ __forceinline__ FlashSequence at(const Args& args, FlashPlace& place) const {
    return {args.sight(), 0, 0, place.batch, 0, args.rows};
  }
  template <int kThreads, class Args>
  __device__ __forceinline__ void clear_outside(const Args&, const FlashPlace&, int) const {}
};

/// @brief The tiles of a block: every other round goes through the blocks backwards, so that long and short tiles even out.
struct FlashTurns {
  int base = 0, round = 0;

  __device__ __forceinline__ int tile() const { return base + int(round & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x); }
  /// Moves on to the next tile, where it is; false when there are no more.
  template <class Args>
  __device__ __forceinline__ bool next(const Args& args, FlashPlace& place) {
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
  /// The largest weight of a row is 2 to this power: 8-bit floats have no more than 9 binary digits below 1.
  static constexpr float kLift = Tile::kBytes == 1 ? 8.f : 0.f;
  float out[kOut], top[2], sum[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] = 0.f;
    top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0.f;
  }

  /// Hides the scores of columns that a row does not see; `at`: where the first of the two rows stands.
  __device__ __forceinline__ void hide(const Sight& sight, float (&scores)[kScores], int at, int col0) const {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const int col = col0 + i / 4 * 8 + i % 2;
      if (!sight.template sees<kCausal, kWindow>(at + i / 2 % 2 * 8, col)) scores[i] = S::kSoftmax ? -INFINITY : 0.f;
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
      const float most = high[0] == -INFINITY ? 0.f : high[0] * scale, base = most - kLift;
      keep[r] = exp2_fast(top[r] * scale - most);
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

  /// Adds up the sums of the lanes of row `r` of two, and gives what its weighted sums are multiplied by.
  /// @param unit what a score was multiplied by on its way to a power of two
  __device__ __forceinline__ float finish(const AttentionArgs<T, S>& args, const FlashPlace& place, int row, int r, float unit) {
    sum[r] += shuffle_xor(sum[r], 1);
    sum[r] += shuffle_xor(sum[r], 2);
    if (S::kSoftmax && threadIdx.x % 4 == 0 && row + 8 * r < args.rows) {
      args.log_sums.store(place.batch, place.head, row + 8 * r, (top[r] * unit + log2f(sum[r]) - kLift) * 0.69314718055994531f);
    }
    return args.share(sum[r]);
  }

  /// Writes the two rows from `row` on, 16 bytes a lane.
  template <bool kRagged, class W>
  __device__ __forceinline__ void store(const AttentionArgs<T, S>& args, const FlashSequence& seq, const FlashPlace& place, int row, float unit,
                                        const W& rows) {
    const auto o = rows_of(rows, args.o);
    using D = std::remove_reference_t<decltype(*o.data)>;
    static_assert(is_narrow_float<D>, "rows are half or bfloat16");
    D* to = o.data + seq.batch * o.batch + place.head * o.head;
    if constexpr (kRagged) to += seq.row_at * o.row;
    const int lane = int(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float scale = finish(args, place, row, r, unit);
      const bool is_zero = kRagged && (row + 8 * r < seq.seeing || row + 8 * r >= seq.sight.rows);
#pragma unroll
      for (int block = 0; block < kOut / 16; ++block) {  // of 32 columns
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int i = block * 16 + j * 4 + 2 * r;
          words[j] = is_zero ? 0 : pack_pair<D>(out[i] * scale, out[i + 1] * scale);
        }
        transpose_words(words);
        const int col = block * 32 + lane * 8;
        if (row + 8 * r < seq.limit && col < args.width) {
          *reinterpret_cast<uint4*>(to + int64_t(row + 8 * r) * o.row + col) = make_uint4(words[0], words[1], words[2], words[3]);
        }
      }
    }
  }

  /// Writes the numbers of the two rows from `row` on, 8 bytes a lane, and their scales. Columns that do not exist are 0.
  template <bool kRagged, class D, bool kByRow>
  __device__ __forceinline__ void store(const AttentionArgs<T, S>& args, const FlashSequence& seq, const FlashPlace& place, int row, float unit,
                                        const NumberRows<D, kByRow>& numbers) {
    static_assert(!kRagged && sizeof(D) == 1, "whole sequences become numbers of 8 bits");
    D* const to = numbers.o.data + place.batch * numbers.o.batch + place.head * numbers.o.head;
    const int lane = int(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float share = finish(args, place, row, r, unit);
      float most = 0.f;
      if constexpr (kByRow) {
#pragma unroll
        for (int i = 0; i < kOut / 4; ++i)
#pragma unroll
          for (int e = 0; e < 2; ++e) most = ait::max(most, ait::abs(out[i * 4 + 2 * r + e] * share));
        most = ait::max(most, shuffle_xor(most, 1));
        most = ait::max(most, shuffle_xor(most, 2));
      }
      const float scale = numbers.of_row(most), factor = share * ait::min(1.f / scale, 3e38f);
      if (kByRow && lane == 0 && row + 8 * r < seq.limit) numbers.scales.store(place.batch, place.head, row + 8 * r, scale);
#pragma unroll
      for (int block = 0; block < kOut / 16; ++block) {  // of 32 columns
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int i = block * 16 + j * 4 + 2 * r;
          words[j] = numbers.pair(out[i] * factor, out[i + 1] * factor);
        }
        transpose_words(words);
        const int col = block * 32 + lane * 8;
        if (row + 8 * r < seq.limit && col < args.width) {
          *reinterpret_cast<uint2*>(to + int64_t(row + 8 * r) * numbers.o.row + col) = make_uint2(words[0] | words[1] << 16, words[2] | words[3] << 16);
        }
      }
    }
  }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_FLASH_CUH_
