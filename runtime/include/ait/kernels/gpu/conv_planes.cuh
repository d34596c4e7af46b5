/// @file conv_planes.cuh
/// @brief Convolution in groups on images whose channels are planes: neighbours along a line lie side by side, as in [N, C, H, W].
///
/// A block keeps bands of lines of some channels in shared memory. A thread computes `kPlaneLines` places of a column, one below the other, so
/// that neighbouring threads read neighbouring elements. Each element that it reads serves all of its places that have it in their windows, and
/// the results of several channels. Threads that would have no places share the channels of x, and add up at the end.
#ifndef AIT_KERNELS_GPU_CONV_PLANES_CUH_
#define AIT_KERNELS_GPU_CONV_PLANES_CUH_

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// Threads of a block, places of a thread, columns of a block at most, and the shared memory that its planes fill at most.
inline constexpr int kPlaneThreads = 256, kPlaneLines = kSpan, kPlaneWidth = 128, kPlaneBytes = 48 * 1024;
/// The elements of a line that a lane has on their way at a time, and the blocks of a multiprocessor that should be busy.
inline constexpr int kPlaneLoads = 8, kPlaneBlocks = 4;

/// @brief The weights of a tap for the channels of a thread, in one access where they fill one.
template <class A, int kOwn>
struct alignas(kOwn % 2 != 0 ? sizeof(A) : kOwn * sizeof(A) < 16 ? kOwn * sizeof(A) : 16) PlaneWeights {
  A v[kOwn];
};

/// @brief The input, and the result as matrices [image, channel, x, y]: rows are places along a line, columns are lines.
template <class X, class T, class D, class... E>
struct PlanesArgs : GemmArgs<T, D, E...> {
  X x;
  int of_group;                ///< channels of the result of a group
  int channels, strips, wide;  ///< of a block: channels of the result, strips of `kPlaneLines` lines, columns
  int held, slices;            ///< planes in shared memory, and the threads that share them for the same places
  int parts, bands, across;    ///< blocks for the channels of all groups, for the lines and for the columns

  AIT_FN int taps() const { return int(x.kernel[0] * x.kernel[1]); }
  /// Whether a block has channels of several groups, of one channel each; otherwise those of one group.
  AIT_FN bool apart() const { return of_group == 1 && x.depth == 1; }
  /// Lines and columns of the input that a block reads.
  AIT_FN int in_y() const { return (strips * kPlaneLines - 1) * int(x.stride[0]) + int(x.kernel[0]); }
  AIT_FN int in_x() const { return (wide - 1) * int(x.stride[1]) + int(x.kernel[1]); }
  /// Shared memory for `planes` planes and the weights for them of `own` channels a thread.
  AIT_FN int64_t bytes(int planes, int own) const {
    return int64_t(planes) * (in_y() * in_x() + own * taps()) * int64_t(sizeof(compute_t<T>));
  }
};

/// @brief Reads `lines` lines of the planes into shared memory, a warp a line; what lies outside of the image is zero.
template <class A, class X, class T>
__device__ __forceinline__ void load_planes(A* data, const X& x, const T* from, int lines, int in_y, int in_x, int begin_y, int begin_x) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, each = (in_x + 31) / 32;
  const uint32_t all = uint32_t(lines * each);
#pragma unroll 1
  for (uint32_t first = uint32_t(warp); first < all; first += kPlaneLoads * (kPlaneThreads / 32)) {
    A values[kPlaneLoads];
    int places[kPlaneLoads];
#pragma unroll
    for (int j = 0; j < kPlaneLoads; ++j) {
      const uint32_t number = first + uint32_t(j * (kPlaneThreads / 32)), line = number / uint32_t(each), plane = line / uint32_t(in_y);
      const int column = int(number - line * uint32_t(each)) * 32 + lane;
      const int in_line = begin_y + int(line - plane * uint32_t(in_y)), in_column = begin_x + column;
      const bool exists = number < all && column < in_x;
      const bool inside = exists && uint32_t(in_line) < uint32_t(x.size[0]) && uint32_t(in_column) < uint32_t(x.size[1]);
      places[j] = exists ? int(line) * in_x + column : -1;
      values[j] = inside ? convert<A>(from[plane * x.strides[3] + in_line * x.strides[1] + in_column * x.strides[2]]) : A(0);
    }
#pragma unroll
    for (int j = 0; j < kPlaneLoads; ++j) {
      if (places[j] >= 0) data[places[j]] = values[j];
    }
  }
}

/// @tparam kOwn channels of the result of a thread
template <int kTapsY, int kTapsX, int kStepY, int kOwn, class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kPlaneThreads) conv_planes_kernel(const PlanesArgs<X, T, D, E...> args) {
  using A = compute_t<T>;
  constexpr int kTaps = kTapsY * kTapsX, kReach = (kPlaneLines - 1) * kStepY + kTapsY;
  AIT_DYNAMIC_SHARED(16, planes_shared);
  const int in_y = args.in_y(), in_x = args.in_x(), plane = in_y * in_x, step_x = int(args.x.stride[1]);
  A* const weights = reinterpret_cast<A*>(planes_shared);  // of each plane: taps along y, along x, channels of a thread
  A* const data = weights + args.held * kTaps * kOwn;
  const uint32_t block = blockIdx.x, row_of_blocks = block / uint32_t(args.across);
  const int first_x = int(block - row_of_blocks * args.across) * args.wide;
  const uint32_t band_of_all = row_of_blocks / uint32_t(args.bands);
  const int first_strip = int(row_of_blocks - band_of_all * args.bands) * args.strips;
  const uint32_t image = band_of_all / uint32_t(args.parts);
  const int part = int(band_of_all - image * args.parts);
  const bool apart = kOwn == 1 && args.apart();
  const int parts_of_group = apart ? args.parts : (args.of_group + args.channels - 1) / args.channels;
  const int group = part / parts_of_group, first = (part - group * parts_of_group) * args.channels;
  const int limit = apart ? args.inner : args.of_group, count = limit - first < args.channels ? limit - first : args.channels;
  const int channel = group * args.of_group + first;  // of the result

  // `own` is the channel of a thread where these are apart, else its slice of the channels of x.
  const int thread = int(threadIdx.x), places = args.wide * args.strips;
  const int x = thread % args.wide, strip = thread / args.wide % args.strips, own = thread / places;
  const int row = first_x + x, line = (first_strip + strip) * kPlaneLines;
  const bool placed = row < args.m && line < args.n, active = placed && own < (apart ? count : args.slices);
  const int begin_y = first_strip * kPlaneLines * kStepY - int(args.x.pad[0]), begin_x = first_x * step_x - int(args.x.pad[1]);
  Span<A> acc[kOwn];
#pragma unroll
  for (int c = 0; c < kOwn; ++c)
#pragma unroll
    for (int p = 0; p < kPlaneLines; ++p) acc[c].v[p] = A(0);

  wait_for_previous();
  allow_next();
  const int depth = apart ? count : int(args.x.depth);
#pragma unroll 1
  for (int begin = 0; begin < depth; begin += args.held) {
    if (begin > 0) __syncthreads();
    const int held = depth - begin < args.held ? depth - begin : args.held;
    const int64_t from = (apart ? int64_t(channel) : group * args.x.depth) + begin;
    load_planes(data, args.x, args.x.data + image * args.x.strides[0] + from * args.x.strides[3], held * in_y, in_y, in_x, begin_y, begin_x);
    for (int i = thread; i < held * kTaps * kOwn; i += kPlaneThreads) {
      const int rest = i / kOwn, c = i - rest * kOwn, d = rest / kTaps, tap = rest - d * kTaps;
      const int row_of_weight = apart ? channel + begin + d : channel + c;
      const int64_t at = apart ? int64_t(tap) : tap * args.x.depth + begin + d;
      weights[i] = apart || c < count ? convert<A>(args.b.data[at * args.b.row + row_of_weight * args.b.col]) : A(0);
    }
    __syncthreads();
    if (active) {
      const int slices = apart ? held : args.slices;  // where channels are apart, a thread has one plane
#pragma unroll 1
      for (int d = own; d < held; d += slices) {
        const A* const seen = data + d * plane + strip * kPlaneLines * kStepY * in_x + x * step_x;
        const auto* const weight = reinterpret_cast<const PlaneWeights<A, kOwn>*>(weights) + d * kTaps;
#pragma unroll
        for (int dx = 0; dx < kTapsX; ++dx) {
          A column[kReach];
#pragma unroll
          for (int r = 0; r < kReach; ++r) column[r] = seen[r * in_x + dx];
#pragma unroll
          for (int dy = 0; dy < kTapsY; ++dy) {
            const auto w = weight[dy * kTapsX + dx];
#pragma unroll
            for (int c = 0; c < kOwn; ++c) {
#pragma unroll
              for (int p = 0; p < kPlaneLines; ++p) acc[c].v[p] += column[p * kStepY + dy] * w.v[c];
            }
          }
        }
      }
    }
  }
  if (!apart && args.slices > 1) {  // one after the other, so that the sums do not depend on who comes first
    A* const sums = reinterpret_cast<A*>(planes_shared);
#pragma unroll 1
    for (int slice = args.slices - 1; slice > 0; --slice) {
      __syncthreads();
      if (own == slice) {
#pragma unroll
        for (int c = 0; c < kOwn; ++c)
#pragma unroll
          for (int p = 0; p < kPlaneLines; ++p) sums[(c * kPlaneLines + p) * places + thread - slice * places] = acc[c].v[p];
      }
      __syncthreads();
      if (own == 0) {
#pragma unroll
        for (int c = 0; c < kOwn; ++c)
#pragma unroll
          for (int p = 0; p < kPlaneLines; ++p) acc[c].v[p] += sums[(c * kPlaneLines + p) * places + thread];
      }
    }
  }
  if (!placed || own >= (apart ? count : 1)) return;
  const int valid = args.n - line < kPlaneLines ? args.n - line : kPlaneLines;
#pragma unroll
  for (int c = 0; c < kOwn; ++c) {
    if (c >= count) continue;
    typename Operands<E...>::Raw raw;
    args.operands.fetch(image, channel + own + c, row, line, valid, raw);
    args.template finish_some<F>(image, channel + own + c, row, line, valid, acc[c], raw);
  }
}

/// @brief d = F(conv(x, w), operands...) over two dims, in any groups, without dilation: `shape` has [image, channel, x, y] as outer, inner, m and
/// n, in which `d` and the operands are given; `w` is [taps, channels] by its strides, the channels of x of a tap side by side. Fast where
/// neighbours along x lie side by side in all of them.
/// @tparam kTapsY, kTapsX the window; @tparam kStepY its steps from line to line, at most 2, as those along a line
/// @tparam kOwn channels of the result of a thread: 1 if groups have one
template <int kTapsY, int kTapsX, int kStepY, int kOwn, class F, class X, class T, class D, class... E>
int32_t conv_planes(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands) {
  static_assert(X::kRank == 2 && !X::kSpreads);
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  PlanesArgs<X, T, D, E...> args;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), 0, 0, {}, w, d, false, false, false,
                                              unaligned(operands)};
  args.x = x;
  args.of_group = int(shape.inner / x.groups);
  args.across = int((shape.m + kPlaneWidth - 1) / kPlaneWidth);
  args.wide = int((shape.m + args.across - 1) / args.across);
  const int strips = int((shape.n + kPlaneLines - 1) / kPlaneLines), fit = kPlaneThreads / args.wide;
  args.bands = (strips + fit - 1) / fit;
  args.strips = (strips + args.bands - 1) / args.bands;
  const bool apart = kOwn == 1 && args.apart();
  const int most = apart ? int(shape.inner) : args.of_group;
  if (apart) {
    const int own = kPlaneThreads / (args.wide * args.strips);
    args.channels = own < most ? own : most;
    while (args.bytes(args.channels, 1) > kPlaneBytes && args.channels > 1) args.channels = (args.channels + 1) / 2;
    while (args.bytes(args.channels, 1) > kPlaneBytes && args.strips > 1) args.strips = (args.strips + 1) / 2;
    args.held = args.channels, args.slices = 1;
  } else {
    args.channels = kOwn < most ? kOwn : most;
    const int64_t others = shape.outer * x.groups * ((most + args.channels - 1) / args.channels) * args.across;
    const auto few = [&] { return others * ((strips + args.strips - 1) / args.strips) < kPlaneBlocks * multiprocessors(); };
    while ((args.bytes(1, kOwn) > kPlaneBytes || few()) && args.strips > 1) args.strips = (args.strips + 1) / 2;
    const int fitting = int(kPlaneBytes / args.bytes(1, kOwn)), sharing = kPlaneThreads / (args.wide * args.strips);
    args.held = fitting < 1 ? 1 : fitting < x.depth ? fitting : int(x.depth);
    args.slices = sharing < args.held ? sharing : args.held;
  }
  args.bands = (strips + args.strips - 1) / args.strips;
  args.parts = (most + args.channels - 1) / args.channels * (apart ? 1 : int(x.groups));
  const int64_t planes = args.bytes(args.held, kOwn), of_thread = kOwn * kPlaneLines * int64_t(sizeof(compute_t<T>));
  const int64_t sums = args.slices > 1 ? args.wide * args.strips * of_thread : 0;
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * args.parts * args.bands * args.across));
  config.block = dim3(kPlaneThreads);
  config.shared_bytes = uint32_t(planes > sums ? planes : sums);
  config.dependent = true;
  return launch(ctx, config, conv_planes_kernel<kTapsY, kTapsX, kStepY, kOwn, F, X, T, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_CONV_PLANES_CUH_
