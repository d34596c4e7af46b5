/// @file attention_ragged_hopper.cuh
/// @brief Attention of sequences of different lengths, padded or packed, by the kernel of attention_hopper.cuh.
#ifndef AIT_KERNELS_GPU_ATTENTION_RAGGED_HOPPER_CUH_
#define AIT_KERNELS_GPU_ATTENTION_RAGGED_HOPPER_CUH_

#include "ait/kernels/gpu/attention_hopper.cuh"
#include "ait/kernels/gpu/attention_ragged.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Sequences whose lengths are integers in memory.
template <class I, bool kPacked>
struct RaggedSequences {
  static constexpr bool kRagged = true;
  Ragged<I> ragged;

  /// Finds the sequence of a tile; of packed ones also which of its tiles it is.
  template <int kRows, bool kCausal, bool kWindow, class Args>
  __device__ __forceinline__ FlashSequence at(const Args& args, FlashPlace& place) const {
    int b = place.batch;
    if constexpr (kPacked) {
      const PackedTile found = packed_tile(ragged, place.row_tile, args.rows, kRows);
      place.row_tile = found.tile < 0 ? 0 : found.tile, b = found.sequence;
      if (found.tile < 0) return {{0, 0, 0, args.window}, 0, 0, 0, 0, 0};
    }
    const Sequence seq = sequence_of(ragged, b, args.rows, args.cols);
    const int rows = int(seq.rows), cols = int(seq.cols);
    const int seeing = kCausal || kWindow ? int(seq.first_seeing(kCausal ? 1 : args.window)) : cols == 0 ? rows : 0;
    return {{rows, cols, cols - rows, args.window}, int(seq.row0), int(seq.col0), kPacked ? 0 : b, seeing, kPacked ? rows : args.rows};
  }

  /// Writes 0 to a tile's share of the result's rows outside of all packed sequences.
  template <int kThreads, class Args>
  __device__ __forceinline__ void clear_outside(const Args& args, const FlashPlace& place, int row_tiles) const {
    if constexpr (kPacked) {
      zero_outside<kThreads>(ragged, args.o.data + place.head * args.o.head, args.o.row, args.width, args.rows, place.row_tile, row_tiles);
    }
  }
};

/// @brief As `attention_ragged`, of half or bfloat16; `shape.batch` is the number of sequences and `shape.scale` is above 0. A slow kernel takes
/// over where `attention_hopper` lets one do so, and where there is no sequence.
template <class Tile, bool kCausal, bool kWindow, bool kPacked, class T, class I>
int32_t attention_ragged_hopper(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                                const Ragged<I>& ragged) {
  const AttentionArgs<T, PlainScores> args = attention_args(shape, q, k, v, o, PlainScores{}, {});
  const int64_t batch = kPacked ? 1 : shape.batch;
  const int64_t row_tiles = kPacked ? packed_slots(shape.rows, shape.batch, Tile::kRows) : (shape.rows + Tile::kRows - 1) / Tile::kRows;
  if (shape.rows == 0 || shape.width == 0 || shape.heads == 0 || shape.batch == 0 || !fits_flash(shape, args, row_tiles * shape.heads * batch)) {
    return attention_ragged<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow, false>(ctx, shape, q, k, v, o, ragged);
  }
  return launch_flash<Tile, kCausal, kWindow>(ctx, shape, args, RaggedSequences<I, kPacked>{ragged}, batch, row_tiles, kPacked ? 1 : 0);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_RAGGED_HOPPER_CUH_
