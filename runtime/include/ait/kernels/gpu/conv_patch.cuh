/// @file conv_patch.cuh
/// @brief Convolution of few channels on the tensor cores of CUDA devices (sm_80 and later): a block keeps the pixels that its places read, and the
/// weight, in shared memory.
///
/// Rows of the product are places, K runs over chunks: eight neighbouring channels of a tap. Channels that are no multiple of eight are filled with
/// zeros in shared memory. An operand of m16n8k16 has two chunks of 16 places; each lane says where one of these pieces of 16 bytes lies, so that no
/// element is copied twice.
///
/// The floor is input and result, once through memory; the input is read `pixels / places` times, mostly from the cache. The next limit is shared
/// memory, which a warp reads 512 `kRows` + 256 `kTiles` bytes of for a step of two chunks.
#ifndef AIT_KERNELS_GPU_CONV_PATCH_CUH_
#define AIT_KERNELS_GPU_CONV_PATCH_CUH_

#include "ait/gpu/multiprocessors.h"
#include "ait/gpu/spread.h"
#include "ait/kernels/gpu/conv_pixels.cuh"
#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief A block has `kWarps` warps below each other, each with 16 `kRows` places and 8 `kTiles` columns.
template <int kRows_, int kTiles_, int kWarps_>
struct PatchTile {
  static constexpr int kRows = kRows_, kTiles = kTiles_, kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps, kPlaces = 16 * kRows * kWarps, kColumns = 8 * kTiles;
  static constexpr int kSums = 4 * kRows * kTiles;  ///< of a lane
  /// Blocks that a multiprocessor should have room for: most of a tile's time is waiting.
  static constexpr int kResident = (kSums > 32 ? 4 : kSums > 16 ? 5 : 7) * 128 / kThreads;
  static_assert(kTiles % 2 == 0 && kSums <= 64, "weights are read for two tiles at a time, and the sums fit in registers");
};

/// @brief How the work is cut, and where what is in shared memory begins, in bytes: offsets of chunks, zeros, the weight, the pixels.
struct PatchPlan : PixelTiles {
  int chunks = 0, steps = 0;             ///< of a pixel; pairs of chunks of all taps
  int tiles_n = 0;                       ///< blocks side by side over the columns
  int weight_pitch = 0;                  ///< from column to column
  int zeros = 0, weight = 0, data = 0, bytes = 0;
};

template <class T, class D, class... E>
struct PatchArgs : GemmArgs<T, D, E...> {
  Pixels<T> pixels;
  int channels;
  PatchPlan plan;
};

/// @brief Eight elements of which the first `count` exist, the others are zero.
template <class T>
__device__ __forceinline__ uint4 eight_elements(const T* from, int count) {
  uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    if (e < count) words[e / 2] |= uint32_t(bit_cast<uint16_t>(from[e])) << (e % 2 * 16);
  }
  return uint4{words[0], words[1], words[2], words[3]};
}

/// @brief Where the chunks of a sum lie, in bytes from the first pixel of a place; -1 for those behind the last.
template <int kThreads>
__device__ __forceinline__ void fill_chunk_offsets(const Plane& plane, const PatchPlan& plan, int* offsets) {
  const int taps_x = plane.kernel[1], taps = plane.kernel[0] * taps_x;
  for (int q = int(threadIdx.x); q < plan.steps * 2; q += kThreads) {
    const int tap = q / plan.chunks, y = tap / taps_x, x = tap - y * taps_x;
    const int pixel = y * plane.dilation[0] * plan.in_x + x * plane.dilation[1];
    offsets[q] = tap < taps ? pixel * plan.pitch + (q - tap * plan.chunks) * 16 : -1;
  }
}

/// @brief Brings the weight of the columns of a block: [column][chunk], zeros for columns and chunks that do not exist.
/// @tparam kChunked whether chunks are aligned in memory, and lie one behind the other
template <class Tile, bool kChunked, class Args>
__device__ __forceinline__ void load_weight(const Args& args, int n0, char* to) {
  constexpr int kSlots = Tile::kColumns <= 16 ? 16 : Tile::kColumns <= 32 ? 32 : 64, kAcross = Tile::kThreads / kSlots;  // threads of a column
  const PatchPlan& plan = args.plan;
  const int taps = args.pixels.plane.kernel[0] * args.pixels.plane.kernel[1], col = int(threadIdx.x) / kAcross;
  if (col >= Tile::kColumns) return;
  const bool exists = n0 + col < args.n;
  const auto* const column = args.b.data + (exists ? (n0 + col) * args.b.col : 0);
  char* const at = to + col * plan.weight_pitch;
  for (int chunk = int(threadIdx.x) % kAcross; chunk < plan.steps * 2; chunk += kAcross) {
    if constexpr (kChunked) {
      const bool inside = exists && chunk < taps * plan.chunks;
      copy_async_16(shared_address(at + chunk * 16), column + (inside ? chunk * 8 : 0), inside ? 16 : 0);
    } else {
      const int tap = chunk / plan.chunks, channel = (chunk - tap * plan.chunks) * 8;
      const bool inside = exists && tap < taps;
      const auto* const from = column + (inside ? tap * args.channels + channel : 0);
      *reinterpret_cast<uint4*>(at + chunk * 16) = eight_elements(from, inside ? args.channels - channel : 0);
    }
  }
}

/// @brief The pixels of a tile, whose channels are filled with zeros to whole chunks.
template <int kThreads, class T>
__device__ __forceinline__ void fill_pixels(const Pixels<T>& from_all, const PatchPlan& plan, const PlaceOfTile& place, int channels, char* to) {
  const Plane& plane = from_all.plane;
  const int y0 = place.y * plane.stride[0] - plane.pad[0], x0 = place.x * plane.stride[1] - plane.pad[1];
  for (int i = int(threadIdx.x); i < plan.pixels() * plan.chunks; i += kThreads) {
    const int pixel = i / plan.chunks, channel = (i - pixel * plan.chunks) * 8;
    const int line = pixel / plan.in_x, image = line / plan.in_y, row = y0 + line - image * plan.in_y, col = x0 + pixel - line * plan.in_x;
    const bool inside = place.image + image < from_all.images && row >= 0 && row < plane.size[0] && col >= 0 && col < plane.size[1];
    const T* const from = from_all.x + (inside ? (place.image + image) * from_all.image + row * plane.step[0] + col * plane.step[1] + channel : 0);
    *reinterpret_cast<uint4*>(to + pixel * plan.pitch + channel * 2) = eight_elements(from, inside ? channels - channel : 0);
  }
}

/// @brief The sums of one place and eight columns that this lane finishes: four lanes hold two rows of two tiles in pairs, and each gets one of the
/// four pieces, that of row `lane / 2` and tile `lane % 2`.
__device__ __forceinline__ Span<float> gather_piece(const float (&first)[4], const float (&second)[4]) {
  const bool odd = threadIdx.x % 2 != 0, low = threadIdx.x % 4 >= 2;
  float halves[2][4];  // of a piece of each row: the pairs of this lane and its neighbour
#pragma unroll
  for (int row = 0; row < 2; ++row) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float even_value = first[row * 2 + e], odd_value = second[row * 2 + e];
      const float kept = odd ? odd_value : even_value, got = shuffle_xor(odd ? even_value : odd_value, 1);
      halves[row][e] = odd ? got : kept;
      halves[row][2 + e] = odd ? kept : got;
    }
  }
  Span<float> piece;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float kept = low ? halves[1][e] : halves[0][e], got = shuffle_xor(low ? halves[0][e] : halves[1][e], 2);
    piece.v[e] = low ? got : kept;
    piece.v[4 + e] = low ? kept : got;
  }
  return piece;
}

/// @brief Each block computes some tiles of places for `Tile::kColumns` columns; grid: blocks that share the tiles * `tiles_n`.
template <class Tile, bool kChunked, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kResident) conv_patch_kernel(const __grid_constant__ PatchArgs<T, D, E...> args, bool aligned,
                                                                                      bool early) {
  AIT_DYNAMIC_SHARED(16, patch_shared);
  constexpr int kRows = Tile::kRows, kTiles = Tile::kTiles;
  const PatchPlan& plan = args.plan;
  int* const offsets = reinterpret_cast<int*>(patch_shared);
  char* const data = patch_shared + plan.data;
  const int part = int(blockIdx.x) % plan.tiles_n, sharers = int(gridDim.x) / plan.tiles_n, n0 = part * Tile::kColumns;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const auto bring_weight = [&] {
    aligned ? load_weight<Tile, true>(args, n0, patch_shared + plan.weight) : load_weight<Tile, false>(args, n0, patch_shared + plan.weight);
  };

  fill_chunk_offsets<Tile::kThreads>(args.pixels.plane, plan, offsets);
  if (threadIdx.x == 0) *reinterpret_cast<uint4*>(patch_shared + plan.zeros) = uint4{0, 0, 0, 0};
  if (early) bring_weight();
  wait_for_previous();
  if (!early) bring_weight();
  allow_next();
  const uint32_t zeros = shared_address(patch_shared + plan.zeros);
  const uint32_t weight = shared_address(patch_shared + plan.weight) + uint32_t((lane / 16 * 8 + lane % 8) * plan.weight_pitch + lane / 8 % 2 * 16);
  const int* const own_offsets = offsets + lane / 16;
  uint32_t from[kRows];  // of the lane's pieces
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    from[i] = shared_address(data) + uint32_t(plan.pixel(args.pixels.plane, (warp * kRows + i) * 16 + lane % 16) * plan.pitch);
  }
  const auto bring_pixels = [&](const PlaceOfTile& place) {
    if constexpr (kChunked) {
      load_pixels<Tile::kThreads>(args.pixels, plan, place, 0, args.channels, data);
    } else {
      fill_pixels<Tile::kThreads>(args.pixels, plan, place, args.channels, data);
    }
    copy_async_commit();
  };
  int number = int(blockIdx.x) / plan.tiles_n;
  PlaceOfTile next(plan, number);
  bring_pixels(next);
  while (number < plan.tiles) {
    const PlaceOfTile place = next;
    copy_async_wait<0>();
    __syncthreads();
    float acc[kRows][kTiles][4];
#pragma unroll
    for (int i = 0; i < Tile::kSums; ++i) acc[i / (kTiles * 4)][i / 4 % kTiles][i % 4] = 0.f;
#pragma unroll(Tile::kSums > 32 ? 2 : 4)
    for (int step = 0; step < plan.steps; ++step) {
      const int offset = own_offsets[step * 2];
      uint32_t b[kTiles / 2][4];
#pragma unroll
      for (int j = 0; j < kTiles / 2; ++j) load_matrix_x4(b[j], weight + uint32_t(j * 16 * plan.weight_pitch + step * 32));
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        uint32_t a[4];
        load_matrix_x4(a, offset < 0 ? zeros : from[i] + uint32_t(offset));
#pragma unroll
        for (int j = 0; j < kTiles; ++j) mma_16x8x16<T>(acc[i][j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
    __syncthreads();
    number += sharers;
    if (number < plan.tiles) {  // the next pixels are on their way while these sums are finished
      next = PlaceOfTile(plan, number);
      bring_pixels(next);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int where = place.number(args.pixels, plan, (warp * kRows + i) * 16 + lane / 4 + lane % 4 / 2 * 8);
      const int batch = where / args.m;
      const int64_t outer = batch / args.inner, inner = batch - outer * args.inner;
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        const Span<float> sums = gather_piece(acc[i][j], acc[i][j + 1]);
        const int col = n0 + (j + lane % 2) * 8;
        if (where < 0 || col >= args.n) continue;
        typename Operands<E...>::Raw raw;
        args.operands.fetch(outer, inner, where - batch * args.m, col, args.n - col, raw);
        args.template finish<F>(outer, inner, where - batch * args.m, col, sums, raw);
      }
    }
  }
}

namespace detail {
/// @brief The plan whose tiles read the fewest pixels beside their work; one without bytes if none needs at most `limit` of shared memory.
template <class Tile>
PatchPlan plan_patch(const Plane& plane, int images, int channels, int columns, int limit) {
  PatchPlan plan, best;
  int64_t least = 0;
  plan.chunks = (channels + 7) / 8;
  plan.steps = (plane.kernel[0] * plane.kernel[1] * plan.chunks + 1) / 2;
  plan.tiles_n = (columns + Tile::kColumns - 1) / Tile::kColumns;
  plan.weight_pitch = plan.steps * 32 + 16;         // an odd number of pieces of 16 bytes: no bank conflicts
  const int pitch = plan.chunks / 2 * 32 + 16;  // likewise, where the window steps by one pixel
  plan.zeros = (plan.steps * 8 + 15) / 16 * 16;
  plan.weight = plan.zeros + 16;
  plan.data = plan.weight + Tile::kColumns * plan.weight_pitch;
  for_each_tile(plane, images, Tile::kPlaces, pitch, [&](const PixelTiles& tiles) {
    if (int64_t(tiles.pixels()) * pitch > limit - plan.data) return;
    static_cast<PixelTiles&>(plan) = tiles;
    plan.bytes = plan.data + plan.pixels() * pitch;
    const int64_t all = int64_t(plan.tiles) * (plan.pixels() * plan.chunks + Tile::kPlaces * plan.steps);
    if (best.bytes == 0 || all < least) least = all, best = plan;
  });
  return best;
}
}  // namespace detail

/// @brief As `conv_simt`, on the tensor cores: half or bfloat16, one group, not transposed, one or two spatial dims. Channels of x are contiguous;
/// the elements of the window of a channel of the result lie side by side in `w`.
/// @tparam kChunked whether channels are a multiple of 8, and all other strides of x are
/// @tparam kLimit bytes of shared memory that a block can have
/// @param early whether `w` is constant
template <class Tile, bool kChunked, int kLimit, class F, class X, class T, class D, class... E>
int32_t conv_patch(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands,
                   bool early = false) {
  static_assert(X::kRank <= 2 && !X::kSpreads);
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  PatchArgs<T, D, E...> args;
  args.pixels = Pixels<T>::of(x, shape);
  args.channels = int(x.depth);
  args.plan = detail::plan_patch<Tile>(args.pixels.plane, args.pixels.images, args.channels, int(shape.n), kLimit);
  // A misaligned pointer is rare, and slow; no plan fits if the window is very wide.
  if (args.plan.bytes == 0 || (kChunked && reinterpret_cast<uintptr_t>(x.data) % 16 != 0)) return conv_simt<F>(ctx, shape, x, w, d, operands);
  const bool spans = shape.n % kSpan == 0;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), 0, 0, {}, w, d, true, false,
                                              spans && rows_aligned(d, d.col, d.row), spans ? operands : unaligned(operands)};
  const int cards = multiprocessors() > 0 ? multiprocessors() : 1;
  const int fit = 224 * 1024 / (args.plan.bytes + 1024), resident = fit < Tile::kResident ? fit : Tile::kResident;
  const int most = (cards * (resident > 0 ? resident : 1) + args.plan.tiles_n - 1) / args.plan.tiles_n;
  LaunchConfig config;
  config.grid = dim3(grid_size((args.plan.tiles < most ? args.plan.tiles : most) * args.plan.tiles_n));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = spread(uint32_t(args.plan.bytes), config.grid.x);
  config.dependent = true;
  const bool aligned = rows_aligned(w, w.row, w.col) && args.channels % 8 == 0;
  return launch(ctx, config, conv_patch_kernel<Tile, kChunked, F, T, D, E...>, args, aligned, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CONV_PATCH_CUH_
