/// @file attention_ragged.cuh
/// @brief Attention of sequences of different lengths, padded, packed or in pages: on tensor cores (CUDA), or in ordinary arithmetic (HIP, too).
#ifndef AIT_KERNELS_GPU_ATTENTION_RAGGED_CUH_
#define AIT_KERNELS_GPU_ATTENTION_RAGGED_CUH_

#include "ait/kernels/attention_ragged.h"
#include "ait/kernels/gpu/attention.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief The rows of one head of k or of v that lie in pages of a pool.
template <class T, class I>
struct PagedRows {
  const T* data;  ///< row 0 of page 0
  int64_t page_pitch, pitch;
  const I* pages;
  int64_t page, pool;
  int end;        ///< of the sequence; rows from there on may be asked for, but not read
  int first = 0;  ///< the one that row 0 is now

  __device__ __forceinline__ const T* at(int row) const {
    row += first;
    row = row < end ? row : end - 1;
    return data + clamp_to(int64_t(pages[row / page]), pool - 1) * page_pitch + row % page * pitch;
  }
  __device__ __forceinline__ void advance(int rows) { first += rows; }
  __device__ __forceinline__ void skip_columns(int columns) { data += columns; }
};

/// @brief Writes 0 to the rows [from, to) with the first `kThreads` threads of a block.
template <int kThreads, class T>
__device__ __forceinline__ void zero_rows(T* o, int64_t pitch, int width, int64_t from, int64_t to) {
  for (int64_t i = from * width + threadIdx.x; i < to * width; i += kThreads) o[i / width * pitch + i % width] = convert<T>(0.0f);
}

/// @brief As `zero_rows`, of the share of one of `slots` blocks.
template <int kThreads, class T>
__device__ __forceinline__ void zero_share(T* o, int64_t pitch, int width, int from, int to, int slot, int slots) {
  if (from >= to) return;
  const int step = (to - from + slots - 1) / slots, begin = from + slot * step;
  zero_rows<kThreads>(o, pitch, width, begin, begin + step < to ? begin + step : to);
}

/// @brief Writes 0 to a slot's share of the rows outside of all packed sequences.
template <int kThreads, class T, class I>
__device__ __forceinline__ void zero_outside(const Ragged<I>& ragged, T* o, int64_t pitch, int width, int rows, int slot, int slots) {
  const int64_t before = clamp_to(int64_t(ragged.segments[0]), rows), after = clamp_to(int64_t(ragged.segments[ragged.sequences]), rows);
  zero_share<kThreads>(o, pitch, width, 0, int(before), slot, slots);
  zero_share<kThreads>(o, pitch, width, int(after), rows, slot, slots);
}

/// @brief `packed_tile`, looked for by all threads of a block at once. Uses the first bytes of the shared memory.
template <class Tile, class I>
__device__ __forceinline__ PackedTile packed_tile_of_block(const Ragged<I>& ragged, int slot, int rows) {
  AIT_DYNAMIC_SHARED(16, shared_place);
  int* const found = reinterpret_cast<int*>(shared_place);
  auto first_slot = [&](int b) { return int(clamp_to(int64_t(ragged.segments[b]), rows)) / Tile::kRows + b; };
  const int sequences = int(ragged.sequences);
  if (threadIdx.x == 0) found[0] = 0, found[1] = -1;
  __syncthreads();
  for (int b = int(threadIdx.x); b < sequences; b += Tile::kThreads) {
    const int first = first_slot(b);
    if (first <= slot && (b + 1 == sequences || slot < first_slot(b + 1))) found[0] = b, found[1] = slot - first;
  }
  __syncthreads();
  const PackedTile place{found[0], found[1]};
  __syncthreads();
  return place;
}

/// @brief The work of one block. `compute(args, q, k, v, o, row0, first, head, batch)` computes the rows of a tile from `first` on.
template <class Tile, bool kCausal, bool kWindow, bool kPaged, class T, class I, class Compute>
__device__ __forceinline__ void ragged_tile(const AttentionArgs<T, PlainScores>& given, const Ragged<I>& ragged, const Compute& compute) {
  wait_for_previous();
  const bool packed = ragged.segments != nullptr;
  const int64_t head = blockIdx.y, batch = packed ? 0 : blockIdx.z, kv = head / given.group;
  // Later rows have more work under a causal mask: start with them.
  const int slots = int(gridDim.x), slot = int(kCausal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  AttentionArgs<T, PlainScores> args = given;
  T* o = args.o.data + batch * args.o.batch + head * args.o.head;
  if (ragged.sequences == 0) return zero_share<Tile::kThreads>(o, args.o.row, args.width, 0, int(given.rows), slot, slots);
  PackedTile place{int(blockIdx.z), slot};
  if (packed) {
    zero_outside<Tile::kThreads>(ragged, o, args.o.row, args.width, given.rows, slot, slots);
    place = packed_tile_of_block<Tile>(ragged, slot, given.rows);
  }
  const Sequence seq = sequence_of(ragged, place.sequence, given.rows, given.cols);
  const int64_t limit = packed ? seq.rows : given.rows, row0 = int64_t(place.tile) * Tile::kRows;
  if (row0 < 0 || row0 >= limit) return;
  args.rows = int(seq.rows), args.cols = int(seq.cols), args.shift = args.cols - args.rows;
  const int64_t first = kCausal || kWindow ? seq.first_seeing(kCausal ? 1 : given.window) : seq.cols == 0 ? seq.rows : 0;
  const int64_t end = row0 + Tile::kRows < limit ? row0 + Tile::kRows : limit;
  o += seq.row0 * args.o.row;
  zero_rows<Tile::kThreads>(o, args.o.row, args.width, row0, first < end ? first : end);
  zero_rows<Tile::kThreads>(o, args.o.row, args.width, row0 > seq.rows ? row0 : seq.rows, end);
  if (first >= end || row0 >= seq.rows) return;
  HeadRows<T, false> q(args.q, args.q, 0, batch, head);
  q.advance(int(seq.row0));
  if constexpr (kPaged) {
    const I* pages = ragged.pages + place.sequence * ragged.table;
    const PagedRows<T, I> k{args.k.data + kv * args.k.head, args.k.batch, args.k.row, pages, ragged.page, ragged.pool, args.cols};
    const PagedRows<T, I> v{args.v.data + kv * args.v.head, args.v.batch, args.v.row, pages, ragged.page, ragged.pool, args.cols};
    compute(args, q, k, v, o, int(row0), int(first), head, batch);
  } else {
    HeadRows<T, false> k(args.k, args.k, 0, batch, kv), v(args.v, args.v, 0, batch, kv);
    k.advance(int(seq.col0)), v.advance(int(seq.col0));
    compute(args, q, k, v, o, int(row0), int(first), head, batch);
  }
}

template <class Tile, bool kCausal, bool kWindow, bool kPaged, class T, class I>
__global__ void __launch_bounds__(Tile::kThreads) attention_ragged_kernel(const AttentionArgs<T, PlainScores> given, const Ragged<I> ragged) {
  ragged_tile<Tile, kCausal, kWindow, kPaged>(
      given, ragged, [](const auto& args, const auto& q, const auto& k, const auto& v, T* o, int row0, int first, int64_t head, int64_t batch) {
        attention_simt_rows<Tile, kCausal, kWindow>(args, q, k, v, o, row0, first, head, batch);
      });
}

/// @brief Launches one of the kernels.
template <class Tile, class T, class I, class Kernel>
int32_t launch_ragged(const Context& ctx, const AttentionShape& shape, const AttentionArgs<T, PlainScores>& args, const Ragged<I>& ragged, int shared_bytes,
                      Kernel kernel) {
  const bool packed = ragged.segments != nullptr;
  if (shape.rows == 0 || shape.width == 0 || shape.heads == 0 || (shape.batch == 0 && !packed)) return 0;
  if (shape.heads > 65535 || (shape.batch > 65535 && !packed)) return ctx.fail("ragged_attention: more than 65535 heads or sequences");
  const int64_t tiles = (shape.rows + Tile::kRows - 1) / Tile::kRows;
  LaunchConfig config;
  config.grid = dim3(grid_size(packed && shape.batch > 0 ? packed_slots(shape.rows, shape.batch, Tile::kRows) : tiles), grid_size(shape.heads),
                     uint32_t(packed ? 1 : shape.batch));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = uint32_t(shared_bytes);
  config.dependent = true;
  return launch(ctx, config, kernel, args, ragged);
}

template <class T, class I>
inline AttentionArgs<T, PlainScores> ragged_args(AttentionShape shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                                                 const Ragged<I>& ragged) {
  if (ragged.pages != nullptr && ragged.pool == 0) shape.cols = 0;
  return attention_args(shape, q, k, v, o, PlainScores{}, {});
}

/// @brief Launches `attention_ragged_kernel`; `shape.batch` is the number of sequences. Integers that do not fit are clamped;
/// offsets that decrease are empty sequences.
template <class Tile, bool kCausal, bool kWindow, bool kPaged, class T, class I>
int32_t attention_ragged(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                         const Ragged<I>& ragged) {
  return launch_ragged<Tile>(ctx, shape, ragged_args(shape, q, k, v, o, ragged), ragged, Tile::template shared_bytes<compute_t<T>>(),
                             attention_ragged_kernel<Tile, kCausal, kWindow, kPaged, T, I>);
}

#if defined(AIT_CUDA)
template <class Tile, bool kCausal, bool kWindow, bool kAligned, bool kPaged, class T, class I>
__global__ void __launch_bounds__(Tile::kThreads)
    attention_ragged_mma_kernel(const __grid_constant__ AttentionArgs<T, PlainScores> given, const __grid_constant__ Ragged<I> ragged) {
  allow_next();
  ragged_tile<Tile, kCausal, kWindow, kPaged>(
      given, ragged, [](const auto& args, const auto& q, const auto& k, const auto& v, T* o, int row0, int first, int64_t head, int64_t batch) {
        attention_mma_rows<Tile, kCausal, kWindow, kAligned, false>(args, q, k, v, o, row0, first, head, batch);
      });
}

/// @brief As `attention_ragged`, on tensor cores: `Tile` is an `AttentionTile`, and `depth` and `width` are at most Tile::kDepth.
/// @tparam kOddPitches as of `attention_mma`
template <class Tile, bool kCausal, bool kWindow, bool kPaged, bool kOddPitches, class T, class I>
int32_t attention_ragged_mma(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                             const Ragged<I>& ragged) {
  const AttentionArgs<T, PlainScores> args = ragged_args(shape, q, k, v, o, ragged);
  if (!args.aligned) {
    if constexpr (kOddPitches) {
      return launch_ragged<Tile>(ctx, shape, args, ragged, Tile::kSharedBytes,
                                 attention_ragged_mma_kernel<Tile, kCausal, kWindow, false, kPaged, T, I>);
    } else {
      return attention_ragged<AttentionSimtTile<Tile::kDepth>, kCausal, kWindow, kPaged>(ctx, shape, q, k, v, o, ragged);
    }
  }
  return launch_ragged<Tile>(ctx, shape, args, ragged, Tile::kSharedBytes, attention_ragged_mma_kernel<Tile, kCausal, kWindow, true, kPaged, T, I>);
}
#endif  // AIT_CUDA

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_ATTENTION_RAGGED_CUH_
