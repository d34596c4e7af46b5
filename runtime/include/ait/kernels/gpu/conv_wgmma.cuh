/// @file conv_wgmma.cuh
/// @brief Convolution on Hopper (sm_90a): the products of gemm_wgmma.cuh, whose rows the copy engine gathers from the input.
///
/// A row of the product is a place of the window. A step along K is one tap of the window and 64 of its channels: the engine reads these
/// channels at as many places as the tile has rows, places outside of the input as zeros. No thread computes an address.
#ifndef AIT_KERNELS_GPU_CONV_WGMMA_CUH_
#define AIT_KERNELS_GPU_CONV_WGMMA_CUH_

#include "ait/kernels/gpu/conv_simt.cuh"
#include "ait/kernels/gpu/gemm_wgmma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Where the rows of a are windows of images, along y and x, and b has a matrix for each tap. An input of one spatial dim has rows of
/// one image.
struct InWindows {
  int chunks, taps_x;     ///< of 64 channels; taps along x
  int rows_x, rows_y;     ///< places of the window
  int step_y, step_x;     ///< from one place to the next
  int low_y, low_x;       ///< where the first one begins: -pad
  int dilation_y, dilation_x;
  int columns, depth;     ///< of a group, whose channels are whole steps if there are several
};

/// @brief The same for windows over three dims, of which z is the first.
struct InVolumes : InWindows {
  int taps_y, rows_z, step_z, low_z, dilation_z;
};

/// @brief Starts the copies of a step: those of the operands chosen. `From` is `InWindows` or `InVolumes`.
template <class Tile, bool kAK, bool kBK, class From, class T, class D, class... E, std::enable_if_t<std::is_base_of_v<InWindows, From>, int> = 0>
__device__ __forceinline__ void copy_step(const HopperArgs<From, T, D, E...>& args, uint32_t to, uint32_t barrier,
                                          const TilePlace<Tile>& tile, int step, int rank, bool a, bool b) {
  static_assert(kAK && kBK && Tile::kHalves == 1, "K is contiguous in both operands");
  const From& from = args.from;
  const int tap = step / from.chunks, channel = (step - tap * from.chunks) * Tile::kK;  // of the group
  if (a) {
    const int place = (tile.outer * args.gemm.inner + tile.inner) * args.gemm.m + tile.m0;  // batches are cut from all places, in their order
    const int row = place / from.rows_x, image = row / from.rows_y, y = tap / from.taps_x;
    const int at_x = (place - row * from.rows_x) * from.step_x + from.low_x, at_y = (row - image * from.rows_y) * from.step_y + from.low_y;
    const int first = tile.n0 / from.columns * from.depth + channel;
    const uint16_t dx = uint16_t((tap - y * from.taps_x) * from.dilation_x);
    if constexpr (std::is_same_v<From, InVolumes>) {
      const int volume = image / from.rows_z, z = y / from.taps_y;
      copy_window(to, &args.a_map, barrier, first, at_x, at_y, (image - volume * from.rows_z) * from.step_z + from.low_z, volume, dx,
                  uint16_t((y - z * from.taps_y) * from.dilation_y), uint16_t(z * from.dilation_z));
    } else {
      copy_window(to, &args.a_map, barrier, first, at_x, at_y, image, dx, uint16_t(y * from.dilation_y));
    }
  }
  if (b) {
    copy_operand<Tile, Tile::kCols, true, Tile::kCluster>(to + Tile::kABytes, &args.b_map, barrier, tile.n0, channel, tap, 0,
                                                          Tile::kCluster > 1 ? rank : 0);
  }
}

/// @brief Whether a line of the window is one run of elements, none of which lies outside of the input, and fewer steps of `step` channels read
/// it as the channels of one element: the images of a first layer have few channels.
template <class T, int R>
bool reads_lines(const ConvInput<T, R, false>& x, int64_t step) {
  const int64_t taps = x.kernel[R - 1], steps = (taps * x.depth + step - 1) / step;
  return x.groups == 1 && x.pad[R - 1] == 0 && x.dilation[R - 1] == 1 && x.strides[R] == x.depth && x.strides[R + 1] == 1 &&
         (x.places[R - 1] - 1) * x.stride[R - 1] + taps <= x.size[R - 1] && steps < taps * ((x.depth + step - 1) / step);
}

/// @brief As `conv_simt`, on the tensor cores of Hopper: half or bfloat16, not transposed.
///
/// Several groups have multiples of 64 channels of x each, and of `Tile::kN` of the result. Channels of x and the elements of the window of a
/// channel in `w` are contiguous; their number and every other stride are multiples of 8. Where data or, if `kAligned`, rows of d or of an
/// extra operand start off 16-byte boundaries, or x has no elements, a slow kernel takes over.
/// @param early whether `w` is never written, as weights are
template <class Tile, bool kAligned, uint32_t kVectors, class F, class X, class T, class D, class... E>
int32_t conv_wgmma(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands,
                   bool early = false) {
  constexpr int kRank = X::kRank;
  constexpr bool kVolumes = kRank == 3;
  constexpr int kMapped = kVolumes ? 3 : 2;  // spatial dims of the map
  static_assert(!X::kSpreads);
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const bool rows = kAligned ? rows_aligned(d, d.col, d.row) && all_aligned<kVectors>(operands) && shape.n % kSpan == 0 : d.col == 1 && all_rows<kVectors>(operands);
  const int y = kVolumes ? 1 : 0, x_ = kRank - 1;  // of one dim, both are that dim; there is then one row
  if (!rows_aligned(w, w.row, w.col) || reinterpret_cast<uintptr_t>(x.data) % 16 != 0 || !rows || x.size[0] == 0 || x.size[y] == 0 ||
      x.size[x_] == 0) {
    return conv_simt<F>(ctx, shape, x, w, d, operands);
  }
  const bool flat = kRank == 1;
  const int64_t images = shape.outer * shape.inner * shape.m / (x.places[x_] * (flat ? 1 : x.places[y]) * (kVolumes ? x.places[0] : 1));
  using From = std::conditional_t<kVolumes, InVolumes, InWindows>;
  HopperArgs<From, T, D, E...> args{};
  args.gemm = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), tiles_of(shape.m, Tile::kM * Tile::kCluster),
               tiles_of(shape.n, Tile::kCols), {}, w, d, true, true, true, operands};
  args.b_early = early;
  // The copies of a window whose lines have `taps` elements along x, of `depth` channels each.
  const auto describe = [&](int taps, int64_t depth) {
    From from;
    static_cast<InWindows&>(from) = {tiles_of(depth, Tile::kK), taps, int(x.places[x_]), flat ? 1 : int(x.places[y]), flat ? 1 : int(x.stride[y]),
                         int(x.stride[x_]), flat ? 0 : -int(x.pad[y]), -int(x.pad[x_]), flat ? 1 : int(x.dilation[y]), int(x.dilation[x_]),
                         int(shape.n / x.groups), int(depth)};
    int64_t sizes[kMapped + 2], strides[kMapped + 1];
    int low[kMapped], places[kMapped], step[kMapped];
    const auto set = [&](int d, int64_t size, int64_t stride, int first, int count, int next) {
      sizes[d + 1] = size, strides[d + 1] = stride, low[d] = first, places[d] = count, step[d] = next;
    };
    if constexpr (kVolumes) {
      from.taps_y = int(x.kernel[1]), from.rows_z = int(x.places[0]), from.step_z = int(x.stride[0]);
      from.low_z = -int(x.pad[0]), from.dilation_z = int(x.dilation[0]);
      set(0, x.size[0], x.strides[1], from.low_z, from.rows_z, from.step_z);
    }
    sizes[0] = images, strides[0] = x.strides[0], sizes[kMapped + 1] = depth * x.groups;
    set(kMapped - 2, flat ? 1 : x.size[y], flat ? x.strides[0] : x.strides[y + 1], from.low_y, from.rows_y, from.step_y);
    set(kMapped - 1, x.size[x_], x.strides[kRank], from.low_x, from.rows_x, from.step_x);
    const int64_t all = shape.k / depth;
    args.from = from;
    args.steps = from.chunks * int(all);
    return window_map<kMapped>(&args.a_map, x.data, sizes, strides, low, places, step, Tile::kM) &&
           tensor_map(&args.b_map, w.data, depth, shape.n, w.col, all, depth, 1, 0, Tile::kCols / Tile::kCluster);
  };
  const bool mapped = (reads_lines(x, Tile::kK) && describe(1, x.kernel[x_] * x.depth)) || describe(int(x.kernel[x_]), x.depth);
  return launch_wgmma<Tile, true, true, kAligned, kVectors, F>(ctx, shape, args, mapped);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CONV_WGMMA_CUH_
