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

template <class Tile, class T>
__device__ __forceinline__ void zero_rows(T* o, int64_t pitch, int width, int64_t from, int64_t to) {
  for (int64_t i = from * width + threadIdx.x; i < to * width; i += Tile::kThreads) o[i / width * pitch + i % width] = convert<T>(0.0f);
}

/// @brief What one block does. `compute(args, q, k, v, o, row0, first, head, batch)` computes the rows of a tile from `first` on.
template <class Tile, bool kCausal, bool kWindow, bool kPaged, class T, class I, class Compute>
__device__ __forceinline__ void ragged_tiles(const AttentionArgs<T, PlainScores>& given, const Ragged<I>& ragged, const Compute& compute) {
  wait_for_previous();
  const bool packed = ragged.segments != nullptr;
  const int64_t head = blockIdx.y, b = blockIdx.z, batch = packed ? 0 : b, kv = head / given.group;
  AttentionArgs<T, PlainScores> args = given;
  if (ragged.sequences == 0) {
    const int64_t step = (given.rows + gridDim.x - 1) / gridDim.x, from = blockIdx.x * step;
    zero_rows<Tile>(args.o.data + head * args.o.head, args.o.row, args.width, from, from + step < given.rows ? from + step : given.rows);
    return;
  }
  const Sequence seq = sequence_of(ragged, b, given.rows, given.cols);
  args.rows = int(seq.rows), args.cols = int(seq.cols), args.shift = args.cols - args.rows;
  const int64_t reach = kCausal ? 1 : given.window;
  const int64_t first = kCausal || kWindow ? seq.first_seeing(reach) : seq.cols == 0 ? seq.rows : 0;
  T* all = args.o.data + batch * args.o.batch + head * args.o.head;
  T* o = all + seq.row0 * args.o.row;
  HeadRows<T, false> q(args.q, args.q, 0, batch, head);
  q.advance(int(seq.row0));
  const int64_t limit = packed ? seq.rows : given.rows;
  for (int64_t row0 = int64_t(blockIdx.x) * Tile::kRows; row0 < limit; row0 += int64_t(gridDim.x) * Tile::kRows) {
    const int64_t end = row0 + Tile::kRows < limit ? row0 + Tile::kRows : limit;
    zero_rows<Tile>(o, args.o.row, args.width, row0, first < end ? first : end);
    zero_rows<Tile>(o, args.o.row, args.width, row0 > seq.rows ? row0 : seq.rows, end);
    if (first >= end || row0 >= seq.rows) continue;
    if constexpr (kPaged) {
      const I* pages = ragged.pages + b * ragged.table;
      const PagedRows<T, I> k{args.k.data + kv * args.k.head, args.k.batch, args.k.row, pages, ragged.page, ragged.pool, args.cols};
      const PagedRows<T, I> v{args.v.data + kv * args.v.head, args.v.batch, args.v.row, pages, ragged.page, ragged.pool, args.cols};
      compute(args, q, k, v, o, int(row0), int(first), head, batch);
    } else {
      HeadRows<T, false> k(args.k, args.k, 0, batch, kv), v(args.v, args.v, 0, batch, kv);
      k.advance(int(seq.col0)), v.advance(int(seq.col0));
      compute(args, q, k, v, o, int(row0), int(first), head, batch);
    }
    __syncthreads();  // the next tile of the block uses the same shared memory
  }
  if (packed && blockIdx.x == 0) {
    // The result's rows outside of all sequences.
    if (b == 0) zero_rows<Tile>(all, args.o.row, args.width, 0, seq.row0);
    if (b == ragged.sequences - 1) zero_rows<Tile>(all, args.o.row, args.width, clamp_to(int64_t(ragged.segments[b + 1]), given.rows), given.rows);
  }
}

template <class Tile, bool kCausal, bool kWindow, bool kPaged, class T, class I>
__global__ void __launch_bounds__(Tile::kThreads) attention_ragged_kernel(const AttentionArgs<T, PlainScores> given, const Ragged<I> ragged) {
  ragged_tiles<Tile, kCausal, kWindow, kPaged>(
      given, ragged, [](const auto& args, const auto& q, const auto& k, const auto& v, T* o, int row0, int first, int64_t head, int64_t batch) {
        attention_simt_rows<Tile, kCausal, kWindow>(args, q, k, v, o, row0, first, head, batch);
      });
}

/// @brief Launches one of the kernels. A block of packed sequences computes several tiles where its sequence is longer than most.
template <class Tile, class T, class I, class Kernel>
int32_t launch_ragged(const Context& ctx, const AttentionShape& shape, const AttentionArgs<T, PlainScores>& args, const Ragged<I>& ragged, int shared_bytes,
                      Kernel kernel) {
  const bool packed = ragged.segments != nullptr;
  if (shape.rows == 0 || shape.width == 0 || shape.heads == 0 || (shape.batch == 0 && !packed)) return 0;
  if (shape.heads > 65535 || shape.batch > 65535) return ctx.fail("ragged_attention: more than 65535 heads or sequences");
  const int64_t tiles = (shape.rows + Tile::kRows - 1) / Tile::kRows, sequences = shape.batch > 0 ? shape.batch : 1;
  LaunchConfig config;
  config.grid = dim3(uint32_t(packed ? (tiles + sequences - 1) / sequences + 1 : tiles), uint32_t(shape.heads), uint32_t(sequences));
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
  ragged_tiles<Tile, kCausal, kWindow, kPaged>(
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
