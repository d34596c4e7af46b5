/// @file conv_mma.cuh
/// @brief Convolution on the tensor cores of CUDA devices (sm_80 and later): the tiles of `gemm_mma.cuh`, with rows that are gathered from the input.
#ifndef AIT_KERNELS_GPU_CONV_MMA_CUH_
#define AIT_KERNELS_GPU_CONV_MMA_CUH_

#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/gemm_mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Copies the tiles of an input, seen as a matrix, one after another along K, as `OperandTile` does for a matrix in memory.
///
/// A thread copies the same chunk of 16 bytes of the window for rows that are `kStep` apart. For each of its rows it stores the start of the window and,
/// for each tap along each dim, a bit for whether it is inside of the input. A copy then costs one addition and one comparison.
template <class X, class T, int kRows, int kCols, int kThreads>
struct GatherTile {
  static constexpr int kRank = X::kRank, kChunk = 16 / int(sizeof(T)), kChunks = kCols / kChunk, kStep = kThreads / kChunks, kCopies = kRows / kStep;
  static constexpr int kBits = 31 / kRank;  ///< the most taps along a dim; one bit of a word stays free
  static_assert(kChunks == 4 || kChunks % 8 == 0, "the permutation is written for rows of 64 bytes or multiples of 128");
  static_assert(kThreads % kChunks == 0 && kStep % 8 == 0 && kRows % kStep == 0, "a thread copies one chunk of every kStep-th row");

  const X& x;
  const T* from[kCopies];     ///< the first element of the window, channel 0
  uint32_t inside[kCopies];   ///< bits of the taps inside of the input
  int channel, left;          ///< of the next chunk: its first channel, and the number of elements of K from it on
  int tap[kRank];
  uint32_t to;

  static __device__ __forceinline__ uint32_t offset(int row, int chunk) {
    return OperandTile<T, kRows, kCols, kThreads, true>::offset(row, chunk);
  }

  /// @param group whose channels are read
  /// @param first the place of the first row; @param rows the number of rows; @param k0 the first of all `k` elements of K
  __device__ __forceinline__ GatherTile(const X& x_, int group, int64_t first, int rows, int k0, int k) : x(x_) {
    const int row = int(threadIdx.x) / kChunks, chunk = int(threadIdx.x) % kChunks;
    to = offset(row, chunk);
    channel = k0 + chunk * kChunk;
    left = k - channel;
    int number = channel / int(x.depth);
    channel -= number * int(x.depth);
#pragma unroll
    for (int d = kRank - 1; d > 0; --d) {
      tap[d] = number % int(x.kernel[d]);
      number /= int(x.kernel[d]);
    }
    tap[0] = number;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      from[i] = x.data, inside[i] = 0;
      if (row + i * kStep >= rows) continue;
      const typename X::Place place = x.place(first + row + i * kStep);
      from[i] += place.batch * x.strides[0] + group * x.depth * x.strides[kRank + 1];
#pragma unroll
      for (int d = 0; d < kRank; ++d) {
        from[i] += place.at[d] * x.strides[d + 1];
        for (int t = 0; t < int(x.kernel[d]); ++t) {
          const int64_t at = place.at[d] + t * x.dilation[d];
          if (at >= 0 && at < x.size[d]) inside[i] |= 1u << (d * kBits + t);
        }
      }
    }
  }

  /// The taps of an element of the window, one bit for each dim, and its offset from the first element.
  static __device__ __forceinline__ uint32_t place(const X& x, int left, int channel, const int (&tap)[kRank], int64_t& behind) {
    uint32_t bits = left > 0 ? 0u : 1u << 31;
    behind = channel * x.strides[kRank + 1];
#pragma unroll
    for (int d = 0; d < kRank; ++d) {
      bits |= 1u << ((d * kBits + tap[d]) & 31);
      behind += tap[d] * (x.dilation[d] * x.strides[d + 1]);
    }
    return bits;
  }

  /// Advances by `count` elements.
  static __device__ __forceinline__ void advance(const X& x, int count, int& channel, int (&tap)[kRank]) {
    channel += count;
    while (channel >= int(x.depth)) {
      channel -= int(x.depth);
#pragma unroll
      for (int d = kRank - 1; d >= 0; --d) {
        if (++tap[d] < int(x.kernel[d]) || d == 0) break;
        tap[d] = 0;
      }
    }
  }

  /// Starts the copy of the next tile to `tile`, and advances. Elements that do not exist are zero.
  /// @tparam kAligned whether every chunk of channels begins on 16 bytes; otherwise elements are read one by one
  template <bool kAligned>
  __device__ __forceinline__ void load(char* tile) {
    if constexpr (kAligned) {
      int64_t behind;
      const uint32_t bits = place(x, left, channel, tap, behind);
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const bool exists = (inside[i] & bits) == bits;
        copy_async_16(shared_address(tile) + to + uint32_t(i * kStep * kChunks * 16), exists ? from[i] + behind : x.data, exists ? 16 : 0);
      }
    } else {
      using Word = Bits<T>;
      uint32_t bits[kChunk];
      int64_t behind[kChunk];
      int channel_here = channel, tap_here[kRank];
#pragma unroll
      for (int d = 0; d < kRank; ++d) tap_here[d] = tap[d];
#pragma unroll
      for (int e = 0; e < kChunk; ++e) {
        bits[e] = place(x, left - e, channel_here, tap_here, behind[e]);
        advance(x, 1, channel_here, tap_here);
      }
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        Chunk16<Word> values;
#pragma unroll
        for (int e = 0; e < kChunk; ++e) {
          values.v[e] = (inside[i] & bits[e]) == bits[e] ? *reinterpret_cast<const Word*>(from[i] + behind[e]) : Word(0);
        }
        *reinterpret_cast<Chunk16<Word>*>(tile + to + i * kStep * kChunks * 16) = values;
      }
    }
    advance(x, kCols, channel, tap);
    left -= kCols;
  }
};

/// @brief Blocks for each tile of each group of each batch of rows; grid: batches * groups * tiles * split.
template <class Tile, bool kAligned, class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) conv_mma_kernel(const __grid_constant__ ConvArgs<X, T, D, E...> args, int split,
                                                                                  bool early) {
  const int rank = split > 1 ? int(blockIdx.x % uint32_t(split)) : 0;
  TileIndex tile(split > 1 ? blockIdx.x / uint32_t(split) : blockIdx.x, args.tiles_m, args.tiles_n);
  const int groups = int(args.x.groups), group = tile.batch % groups, columns = args.n / groups;
  tile.batch /= groups;
  TileWork<T> work = tile.of(args, Tile::kM, Tile::kCols);
  work.n0 += group * columns, work.n = (group + 1) * columns;
  mma_tile_of<Tile, true, true, kAligned, F>(args, work, split, rank, early, [&](int k0) {
    return GatherTile<X, T, Tile::kM, Tile::template kDepth<T>, Tile::kThreads>(args.x, group, int64_t(tile.batch) * args.m + work.m0,
                                                                                work.m - work.m0, k0, work.k);
  });
}

/// @brief As `conv_simt`, on the tensor cores: not transposed, at most `GatherTile::kBits` taps along a dim; the elements of the window
/// of a channel of the result lie side by side in `w`. `split` blocks, one cluster, share a tile (1, 2, 4 or 8; more than 1 needs sm_90).
/// @tparam kChunked whether the channels of x are contiguous, and their number in a group and every other stride of x are multiples of 16 bytes
/// @param early whether `w` is constant
template <class Tile, bool kChunked, class F, class X, class T, class D, class... E>
int32_t conv_mma(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands,
                 int split = 1, bool early = false) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  if constexpr (kChunked) {  // a misaligned pointer is rare, and slow
    if (!rows_aligned(w, w.row, w.col) || reinterpret_cast<uintptr_t>(x.data) % 16 != 0) return conv_simt<F>(ctx, shape, x, w, d, operands);
  }
  const auto args = conv_args(shape, x, w, d, operands, Tile::kM, Tile::kCols);
  if (Tile::kPhases > 1) split = 1;
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * shape.inner * x.groups * args.tiles_m * args.tiles_n * split));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  return launch(ctx, config, conv_mma_kernel<Tile, kChunked, F, X, T, D, E...>, args, split, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CONV_MMA_CUH_
