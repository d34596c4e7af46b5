/// @file conv_planes.cuh
/// @brief Convolution in groups on images whose channels are planes: neighbours along a line lie side by side, as in [N, C, H, W].
///
/// A block keeps a band of lines of some channels in shared memory. A thread computes `kPlaneLines` places of a column, one below the other, so
/// that neighbouring threads read neighbouring elements. Each element that it reads serves all of its places that have it in their windows.
#ifndef AIT_KERNELS_GPU_CONV_PLANES_CUH_
#define AIT_KERNELS_GPU_CONV_PLANES_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// Threads of a block, places of a thread, columns of a block at most, and the shared memory that its planes fill at most.
inline constexpr int kPlaneThreads = 256, kPlaneLines = kSpan, kPlaneWidth = 128, kPlaneBytes = 48 * 1024;

/// @brief The input, and the result as matrices [image, channel, x, y]: rows are places along a line, columns are lines.
template <class X, class T, class D, class... E>
struct PlanesArgs : GemmArgs<T, D, E...> {
  X x;
  int of_group;                ///< channels of the result of a group
  int channels, strips, wide;  ///< of a block: channels of the result, strips of `kPlaneLines` lines, columns
  int parts, bands, across;    ///< blocks for the channels of all groups, for the lines and for the columns

  AIT_FN int taps() const { return int(x.kernel[0] * x.kernel[1]); }
  /// Lines and columns of the input that a block reads, and the planes that it holds at a time.
  AIT_FN int in_y() const { return (strips * kPlaneLines - 1) * int(x.stride[0]) + int(x.kernel[0]); }
  AIT_FN int in_x() const { return (wide - 1) * int(x.stride[1]) + int(x.kernel[1]); }
  AIT_FN int planes() const { return of_group == 1 && x.depth == 1 ? channels : 1; }
  AIT_FN int64_t bytes() const { return (int64_t(planes()) * in_y() * in_x() + channels * taps()) * int64_t(sizeof(compute_t<T>)); }
};

template <int kTapsY, int kTapsX, int kStepY, class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kPlaneThreads) conv_planes_kernel(const PlanesArgs<X, T, D, E...> args) {
  using A = compute_t<T>;
  constexpr int kTaps = kTapsY * kTapsX, kReach = (kPlaneLines - 1) * kStepY + kTapsY, kLoads = 4;
  AIT_DYNAMIC_SHARED(16, planes_shared);
  const int planes = args.planes(), in_y = args.in_y(), in_x = args.in_x(), plane = in_y * in_x, step_x = int(args.x.stride[1]);
  A* const data = reinterpret_cast<A*>(planes_shared);
  A* const weights = data + planes * plane;
  const uint32_t block = blockIdx.x, row_of_blocks = block / uint32_t(args.across);
  const int first_x = int(block - row_of_blocks * args.across) * args.wide;
  const uint32_t band_of_all = row_of_blocks / uint32_t(args.bands);
  const int first_strip = int(row_of_blocks - band_of_all * args.bands) * args.strips;
  const uint32_t image = band_of_all / uint32_t(args.parts);
  const int part = int(band_of_all - image * args.parts);
  // Depthwise, a block has channels of several groups; otherwise those of one group.
  const bool apart = args.of_group == 1 && args.x.depth == 1;
  const int parts_of_group = apart ? args.parts : (args.of_group + args.channels - 1) / args.channels;
  const int group = part / parts_of_group, first = (part - group * parts_of_group) * args.channels;
  const int limit = apart ? args.inner : args.of_group, count = limit - first < args.channels ? limit - first : args.channels;
  const int channel = group * args.of_group + first;  // of the result

  const int thread = int(threadIdx.x), x = thread % args.wide, strip = thread / args.wide % args.strips, own = thread / (args.wide * args.strips);
  const int row = first_x + x, line = (first_strip + strip) * kPlaneLines;
  const bool active = own < count && row < args.m && line < args.n;
  const int begin_y = first_strip * kPlaneLines * kStepY - int(args.x.pad[0]), begin_x = first_x * step_x - int(args.x.pad[1]);
  Span<A> acc;
#pragma unroll
  for (int p = 0; p < kPlaneLines; ++p) acc.v[p] = A(0);

  wait_for_previous();
  allow_next();
#pragma unroll 1
  for (int depth = 0; depth < int(args.x.depth); ++depth) {
    if (depth > 0) __syncthreads();
    const int held = apart ? count : 1, all = held * plane;
    const T* const from = args.x.data + image * args.x.strides[0] + (apart ? int64_t(channel) : group * args.x.depth + depth) * args.x.strides[3];
#pragma unroll 1
    for (int i = thread; i < all; i += kLoads * kPlaneThreads) {
      A values[kLoads];
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const uint32_t at = uint32_t(i + j * kPlaneThreads), number = at / uint32_t(plane), rest = at - number * plane, down = rest / uint32_t(in_x);
        const int in_line = begin_y + int(down), in_column = begin_x + int(rest - down * in_x);
        const bool inside = at < uint32_t(all) && uint32_t(in_line) < uint32_t(args.x.size[0]) && uint32_t(in_column) < uint32_t(args.x.size[1]);
        values[j] = inside ? convert<A>(from[number * args.x.strides[3] + in_line * args.x.strides[1] + in_column * args.x.strides[2]]) : A(0);
      }
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        if (i + j * kPlaneThreads < all) data[i + j * kPlaneThreads] = values[j];
      }
    }
    for (int i = thread; i < count * kTaps; i += kPlaneThreads) {
      const int c = i / kTaps, tap = i - c * kTaps;
      weights[i] = convert<A>(args.b.data[(tap * args.x.depth + depth) * args.b.row + (channel + c) * args.b.col]);
    }
    __syncthreads();
    if (active) {
      const A* const seen = data + (apart ? own : 0) * plane + strip * kPlaneLines * kStepY * in_x + x * step_x;
      const A* const weight = weights + own * kTaps;
#pragma unroll
      for (int dx = 0; dx < kTapsX; ++dx) {
        A column[kReach];
#pragma unroll
        for (int r = 0; r < kReach; ++r) column[r] = seen[r * in_x + dx];
#pragma unroll
        for (int dy = 0; dy < kTapsY; ++dy) {
          const A w = weight[dy * kTapsX + dx];
#pragma unroll
          for (int p = 0; p < kPlaneLines; ++p) acc.v[p] += column[p * kStepY + dy] * w;
        }
      }
    }
  }
  if (!active) return;
  const int valid = args.n - line < kPlaneLines ? args.n - line : kPlaneLines;
  typename Operands<E...>::Raw raw;
  args.operands.fetch(image, channel + own, row, line, valid, raw);
  args.template finish_some<F>(image, channel + own, row, line, valid, acc, raw);
}

/// @brief d = F(conv(x, w), operands...) over two dims, in any groups, without dilation: `shape` has [image, channel, x, y] as outer, inner, m and
/// n, in which `d` and the operands are given; `w` is [taps, channels] by its strides, the channels of x of a tap side by side. Fast where
/// neighbours along x lie side by side in all of them.
/// @tparam kTapsY, kTapsX the window; @tparam kStepY its steps from line to line, at most 2, as those along a line
template <int kTapsY, int kTapsX, int kStepY, class F, class X, class T, class D, class... E>
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
  const bool apart = args.of_group == 1 && x.depth == 1;
  const int most = apart ? int(shape.inner) : args.of_group, own = kPlaneThreads / (args.wide * args.strips);
  args.channels = own < most ? own : most;
  while (args.bytes() > kPlaneBytes && args.channels > 1) args.channels = (args.channels + 1) / 2;
  while (args.bytes() > kPlaneBytes && args.strips > 1) args.strips = (args.strips + 1) / 2;
  args.bands = (strips + args.strips - 1) / args.strips;
  args.parts = (most + args.channels - 1) / args.channels * (apart ? 1 : int(x.groups));
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * args.parts * args.bands * args.across));
  config.block = dim3(kPlaneThreads);
  config.shared_bytes = uint32_t(args.bytes());
  config.dependent = true;
  return launch(ctx, config, conv_planes_kernel<kTapsY, kTapsX, kStepY, F, X, T, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_CONV_PLANES_CUH_
