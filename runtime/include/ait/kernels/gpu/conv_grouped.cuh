/// @file conv_grouped.cuh
/// @brief Convolution in groups of few channels, on the tensor cores of CUDA devices (sm_80 and later).
///
/// A block keeps a tile of the input, rectangles of pixels by the channels of some groups, in shared memory, where all taps of all its places read
/// it. A product m16n8k16 has columns of one group alone: tiles are filled as far as a group has columns, and a value that is no number stays in its
/// group. The 16 elements along K are four quads, each four neighbouring channels of a tap. K may be added up in any order, so lane c of four
/// takes quad c as its elements 2 c, 2 c + 1, 2 c + 8 and 2 c + 9: one read of 8 bytes.
///
/// The floor is input and result, once through memory. The next limit is shared memory, which is read 512 bytes for each 16 places, 4 quads and
/// tiles of columns of a group side by side. Of 32 x 56 x 56 x 128 in 32 groups, 3 x 3, these are 308 MB, 18 thousand cycles of 132 multiprocessors
/// at 128 bytes each, beside 51 MB of memory.
#ifndef AIT_KERNELS_GPU_CONV_GROUPED_CUH_
#define AIT_KERNELS_GPU_CONV_GROUPED_CUH_

#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/conv_pixels.cuh"
#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// Threads and columns of a block, where groups have fewer, and bytes of shared memory with which three blocks fit on a multiprocessor.
inline constexpr int kGroupedThreads = 256, kGroupedWarps = kGroupedThreads / 32, kGroupedColumns = 64, kGroupedFew = 74 * 1024;

/// @brief The tile that a warp computes at a time: 16 `kRows` places of `kTiles` x 8 columns of each of `kSets` neighbouring groups.
template <int kSets_, int kTiles_, int kRows_>
struct GroupedTile {
  static constexpr int kSets = kSets_, kTiles = kTiles_, kRows = kRows_;
  static constexpr int kPitch = kSets * kTiles * 8 + 8;  ///< floats from row to row of the sums in shared memory, without bank conflicts
  static constexpr int kStagedBytes = 16 * kPitch * 4;   ///< of a warp
  static_assert(kSets == 1 || kTiles == 1, "several groups have one tile of columns each");
};

/// @brief How the work is cut.
struct GroupedPlan : PixelTiles {
  int groups = 0;                                ///< of a block
  int sharers = 0;                               ///< blocks that share the tiles of the same groups
  int steps = 0, tiles_n = 0;                    ///< of four quads that a sum has; of 8 columns that a group has
  int weights = 0, staged = 0, data = 0, bytes = 0;  ///< where these begin in shared memory, behind the table of offsets; all of it
};

template <class T, class D, class... E>
struct GroupedArgs : GemmArgs<T, D, E...> {
  Pixels<T> pixels;
  int groups, channels, columns;  ///< channels of x and of the result of a group
  GroupedPlan plan;
};

/// @brief Where the quads of a sum lie, in bytes from the first pixel of a place; -1 for those behind the last.
template <class Args>
__device__ __forceinline__ void fill_offsets(const Args& args, int* offsets) {
  const Plane& plane = args.pixels.plane;
  const int quads = args.channels / 4, taps_x = plane.kernel[1], taps = plane.kernel[0] * taps_x;
  for (int q = int(threadIdx.x); q < args.plan.steps * 4; q += kGroupedThreads) {
    const int tap = q / quads, y = tap / taps_x, x = tap - y * taps_x;
    const int pixel = y * plane.dilation[0] * args.plan.in_x + x * plane.dilation[1];
    offsets[q] = tap < taps ? pixel * args.plan.pitch + (q - tap * quads) * 8 : -1;
  }
}

/// @brief The weights of the groups of a block in the order in which lanes read them: [group][8 columns][step][lane], a quad each.
template <class Args>
__device__ __forceinline__ void fill_weights(const Args& args, int first, int groups, uint2* to) {
  const GroupedPlan& plan = args.plan;
  const int all = groups * plan.tiles_n * plan.steps * 32;
  for (int i = int(threadIdx.x); i < all; i += kGroupedThreads) {
    const int lane = i % 32, rest = i / 32, tile = rest / plan.steps, step = rest - tile * plan.steps, group = tile / plan.tiles_n;
    const int col = (tile - group * plan.tiles_n) * 8 + lane / 4, k = (step * 4 + lane % 4) * 4;
    uint32_t words[2] = {0, 0};
    if (col < args.columns && k < args.k) {
      const auto* const from = args.b.data + ((first + group) * args.columns + col) * args.b.col + k;
#pragma unroll
      for (int e = 0; e < 4; ++e) words[e / 2] |= uint32_t(bit_cast<uint16_t>(from[e])) << (e % 2 * 16);
    }
    to[i] = uint2{words[0], words[1]};
  }
}

/// @brief acc += the products of 16 `kRows` places and `kTiles` x 8 columns of a group.
/// @param data the pixels, at the channels of the group; @param from bytes to those of the lane's places
/// @param weights of the first columns; @param tiles of 8 columns that exist; others repeat the first
template <class Tile, class T>
__device__ __forceinline__ void multiply_quads(const GroupedPlan& plan, const char* data, const int (&from)[Tile::kRows][2], const int* offsets,
                                               const uint2* weights, int tiles, float (&acc)[Tile::kRows][Tile::kTiles][4]) {
  const int lane = int(threadIdx.x) % 32;
  const auto multiply = [&](int step, auto last) {
    const int offset = offsets[step * 4 + lane % 4];
    uint2 b[Tile::kTiles];
#pragma unroll
    for (int j = 0; j < Tile::kTiles; ++j) b[j] = weights[((j < tiles ? j : 0) * plan.steps + step) * 32 + lane];
#pragma unroll
    for (int i = 0; i < Tile::kRows; ++i) {
      uint2 low{0, 0}, high{0, 0};
      if (!last.value || offset >= 0) {
        low = *reinterpret_cast<const uint2*>(data + (from[i][0] + offset)), high = *reinterpret_cast<const uint2*>(data + (from[i][1] + offset));
      }
      const uint32_t a[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
      for (int j = 0; j < Tile::kTiles; ++j) mma_16x8x16<T>(acc[i][j], a, b[j].x, b[j].y);
    }
  };
#pragma unroll 2
  for (int step = 0; step < plan.steps - 1; ++step) multiply(step, std::false_type{});
  multiply(plan.steps - 1, std::true_type{});
}

/// @brief Each block computes some tiles of places for some groups; grid: parts of the groups * `sharers`.
template <class Tile, class F, class T, class D, class... E>
__global__ void __launch_bounds__(kGroupedThreads, 3) conv_grouped_kernel(const __grid_constant__ GroupedArgs<T, D, E...> args, bool early) {
  AIT_DYNAMIC_SHARED(16, grouped_shared);
  constexpr int kSets = Tile::kSets, kTiles = Tile::kTiles, kRows = Tile::kRows;
  const GroupedPlan& plan = args.plan;
  int* const offsets = reinterpret_cast<int*>(grouped_shared);
  uint2* const weights = reinterpret_cast<uint2*>(grouped_shared + plan.weights);
  char* const data = grouped_shared + plan.data;
  const int part = int(blockIdx.x) / plan.sharers, first = part * plan.groups;
  const int groups = args.groups - first < plan.groups ? args.groups - first : plan.groups;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  float* const sums = reinterpret_cast<float*>(grouped_shared + plan.staged + warp * Tile::kStagedBytes);
  const int bands = plan.rows() / (16 * kRows), parts_n = (plan.tiles_n + kTiles - 1) / kTiles, units = bands * parts_n * ((groups + kSets - 1) / kSets);

  fill_offsets(args, offsets);
  if (early) fill_weights(args, first, groups, weights);
  wait_for_previous();
  if (!early) fill_weights(args, first, groups, weights);
  allow_next();
  for (int number = int(blockIdx.x) - part * plan.sharers; number < plan.tiles; number += plan.sharers) {
    const PlaceOfTile place(plan, number);
    load_pixels<kGroupedThreads>(args.pixels, plan, place, first * args.channels, groups * args.channels, data);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    for (int unit = warp; unit < units; unit += kGroupedWarps) {
      const int rest = unit / bands, row0 = (unit - rest * bands) * 16 * kRows;
      const int group = rest / parts_n * kSets, tile = (rest - rest / parts_n * parts_n) * kTiles;  // the first ones
      int from[kRows][2];
#pragma unroll
      for (int i = 0; i < kRows * 2; ++i) {
        from[i / 2][i % 2] = plan.pixel(args.pixels.plane, row0 + i * 8 + lane / 4) * plan.pitch;
      }
      float acc[kSets][kRows][kTiles][4];
#pragma unroll
      for (int s = 0; s < kSets; ++s) {
#pragma unroll
        for (int i = 0; i < kRows * kTiles * 4; ++i) acc[s][i / (kTiles * 4)][i / 4 % kTiles][i % 4] = 0.f;
        if (group + s >= groups) continue;
        const uint2* const b = weights + ((group + s) * plan.tiles_n + tile) * plan.steps * 32;
        multiply_quads<Tile, T>(plan, data + (group + s) * args.channels * 2, from, offsets, b, plan.tiles_n - tile, acc[s]);
      }
      const int left = groups - group, sets = left < kSets ? left : kSets, of_group = args.columns - tile * 8;
      const int columns = kSets > 1 ? sets * args.columns : (of_group < kTiles * 8 ? of_group : kTiles * 8);
      const int col0 = (first + group) * args.columns + tile * 8;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        __syncwarp();
#pragma unroll
        for (int s = 0; s < kSets; ++s)
#pragma unroll
          for (int j = 0; j < kTiles; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int col = j * 8 + lane % 4 * 2 + e % 2;
              if (col < of_group) sums[(lane / 4 + e / 2 * 8) * Tile::kPitch + s * args.columns + col] = acc[s][i][j][e];
            }
        __syncwarp();
        const int spans = (columns + kSpan - 1) / kSpan;
        for (int id = lane; id < 16 * spans; id += 32) {
          const int in_band = id / spans, col = (id - in_band * spans) * kSpan, row = row0 + i * 16 + in_band;
          const int where = place.number(args.pixels, plan, row);
          if (where < 0) continue;
          const int batch = where / args.m;
          const int64_t outer = batch / args.inner, inner = batch - outer * args.inner;
          Span<float> acc_of;
#pragma unroll
          for (int e = 0; e < kSpan; ++e) acc_of.v[e] = col + e < columns ? sums[in_band * Tile::kPitch + col + e] : 0.f;
          typename Operands<E...>::Raw raw;
          args.operands.fetch(outer, inner, where - batch * args.m, col0 + col, columns - col, raw);
          args.template finish_some<F>(outer, inner, where - batch * args.m, col0 + col, columns - col, acc_of, raw);
        }
      }
    }
    __syncthreads();
  }
}

namespace detail {
/// @brief The plan whose blocks need the fewest cycles by a rough count; one without bytes if none needs at most `limit` of shared memory.
template <class Tile>
GroupedPlan plan_grouped(const Plane& plane, int images, int groups, int channels, int columns, int limit) {
  constexpr int kRows = 16 * Tile::kRows;
  GroupedPlan plan, best;
  double least = 0;
  const int cards = multiprocessors() > 0 ? multiprocessors() : 1;
  plan.steps = (plane.kernel[0] * plane.kernel[1] * channels + 15) / 16;
  plan.tiles_n = (columns + 7) / 8;
  const int first = kGroupedColumns / columns;
  for (int count = first < 1 ? 1 : first < groups ? first : groups; count > 0; count /= 2) {
    if (count * channels % 8 != 0) continue;
    plan.groups = count;
    plan.pitch = count * channels * 2 + 16;  // an odd number of pieces of 16 bytes, or of 32 bytes where places read so many: no bank conflicts
    const int piece = channels % 16 == 0 ? 32 : 16;
    while (plan.pitch / piece % 2 == 0 || plan.pitch % piece != 0) plan.pitch += 16;
    plan.weights = plan.steps * 16;
    plan.staged = plan.weights + count * plan.tiles_n * plan.steps * 256;
    plan.data = plan.staged + kGroupedWarps * Tile::kStagedBytes;
    const int parts = (groups + count - 1) / count, units = (count + Tile::kSets - 1) / Tile::kSets * ((plan.tiles_n + Tile::kTiles - 1) / Tile::kTiles);
    for (int rows = 128; rows >= kRows; rows /= 2) {
      for_each_tile(plane, images, rows, plan.pitch, [&](const PixelTiles& tiles) {
        if (int64_t(tiles.pixels()) * tiles.pitch > limit - plan.data) return;
        static_cast<PixelTiles&>(plan) = tiles;
        plan.bytes = plan.data + plan.pixels() * plan.pitch;
        const double reads = Tile::kSets * double(plan.steps) * (Tile::kRows * 4 + Tile::kTiles * 2 + 1) + Tile::kRows * 24;
        const double cycles = rows / kRows * units * reads + 2.0 * plan.pixels() * count * channels / 8;
        const double all = double((int64_t(plan.tiles) * parts + cards - 1) / cards) * cycles;
        if (best.bytes == 0 || all < least) least = all, best = plan;
      });
    }
  }
  const int parts = best.groups > 0 ? (groups + best.groups - 1) / best.groups : 1, most = (3 * cards + parts - 1) / parts;
  best.sharers = best.tiles < most ? best.tiles : most;
  return best;
}
}  // namespace detail

/// @brief As `conv_simt`, on the tensor cores: half or bfloat16, not transposed, one or two spatial dims. Channels of x are contiguous, a group has
/// a multiple of 4, and all other strides of x are multiples of 8; the elements of the window of a channel of the result lie side by side in `w`.
/// @tparam kLimit bytes of shared memory that a block can have
/// @param early whether `w` is constant
template <class Tile, int kLimit, class F, class X, class T, class D, class... E>
int32_t conv_grouped(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands,
                     bool early = false) {
  static_assert(X::kRank <= 2 && !X::kSpreads);
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  GroupedArgs<T, D, E...> args;
  args.pixels = Pixels<T>::of(x, shape);
  args.groups = int(x.groups), args.channels = int(x.depth), args.columns = int(shape.n / x.groups);
  const auto planned = [&](int limit) {
    return detail::plan_grouped<Tile>(args.pixels.plane, args.pixels.images, args.groups, args.channels, args.columns, limit);
  };
  args.plan = planned(kGroupedFew < kLimit ? kGroupedFew : kLimit);
  if (args.plan.bytes == 0) args.plan = planned(kLimit);
  // A misaligned pointer is rare, and slow; no plan fits if the window is very wide.
  if (args.plan.bytes == 0 || reinterpret_cast<uintptr_t>(x.data) % 16 != 0) return conv_simt<F>(ctx, shape, x, w, d, operands);
  const bool spans = Tile::kSets * args.columns % kSpan == 0 && args.plan.groups * args.columns % kSpan == 0;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), 0, 0, {}, w, d, true, false,
                                              spans && rows_aligned(d, d.col, d.row), spans ? operands : unaligned(operands)};
  LaunchConfig config;
  config.grid = dim3(grid_size((args.groups + args.plan.groups - 1) / args.plan.groups * args.plan.sharers));
  config.block = dim3(kGroupedThreads);
  config.shared_bytes = uint32_t(args.plan.bytes);
  config.dependent = true;
  return launch(ctx, config, conv_grouped_kernel<Tile, F, T, D, E...>, args, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CONV_GROUPED_CUH_
