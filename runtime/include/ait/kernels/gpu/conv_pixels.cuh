/// @file conv_pixels.cuh
/// @brief Tiles of places of a convolution whose input a block keeps in shared memory, where all taps read it.
#ifndef AIT_KERNELS_GPU_CONV_PIXELS_CUH_
#define AIT_KERNELS_GPU_CONV_PIXELS_CUH_

#include <stdint.h>

#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The dims of a plane: those of an input of two spatial dims, or one line of an input of one.
struct Plane {
  int size[2], places[2], kernel[2], stride[2], dilation[2], pad[2];
  int64_t step[2];

  template <class X>
  static Plane of(const X& x) {
    Plane plane;
    for (int i = 0; i < 2; ++i) {
      const int d = i - (2 - X::kRank);
      const bool is = d >= 0;
      plane.size[i] = is ? int(x.size[d]) : 1, plane.places[i] = is ? int(x.places[d]) : 1, plane.kernel[i] = is ? int(x.kernel[d]) : 1;
      plane.stride[i] = is ? int(x.stride[d]) : 1, plane.dilation[i] = is ? int(x.dilation[d]) : 1, plane.pad[i] = is ? int(x.pad[d]) : 0;
      plane.step[i] = is ? x.strides[d + 1] : 0;
    }
    return plane;
  }
};

/// @brief The input of a convolution, its pixels side by side in planes.
template <class T>
struct Pixels {
  const T* x;
  int64_t image;  ///< elements from image to image
  int images;
  Plane plane;

  template <class X>
  static Pixels of(const X& x, const GemmShape& shape) {
    const Plane plane = Plane::of(x);
    return {x.data, x.strides[0], int(shape.outer * shape.inner * shape.m / (int64_t(plane.places[0]) * plane.places[1])), plane};
  }
};

/// @brief How places are cut: a tile has `images` x 2^high x 2^wide of them, which read `images` x in_y x in_x pixels.
struct PixelTiles {
  int wide = 0, high = 0, images = 0, in_y = 0, in_x = 0;
  int tiles_y = 0, tiles_x = 0, tiles = 0;  ///< along the dims of an image, and in all
  int pitch = 0;                            ///< bytes from pixel to pixel

  AIT_FN int rows() const { return images << (wide + high); }
  AIT_FN int pixels() const { return images * in_y * in_x; }
  /// The first pixel that a place of the tile reads.
  AIT_FN int pixel(const Plane& plane, int row) const {
    const int x = row & ((1 << wide) - 1), y = (row >> wide) & ((1 << high) - 1), image = row >> (wide + high);
    return (image * in_y + y * plane.stride[0]) * in_x + x * plane.stride[1];
  }
};

/// @brief Calls `use` with each way to cut the places into tiles of `rows`, a power of two, whose pixels are `pitch` bytes apart.
template <class Use>
void for_each_tile(const Plane& plane, int images, int rows, int pitch, const Use& use) {
  PixelTiles t;
  t.pitch = pitch;
  for (t.wide = 0; 1 << t.wide <= rows; ++t.wide) {
    const bool all_x = 1 << t.wide >= plane.places[1];
    if (!all_x && t.wide < 3) continue;
    for (t.high = 0; 1 << (t.wide + t.high) <= rows; ++t.high) {
      const bool all_y = 1 << t.high >= plane.places[0];
      t.images = rows >> (t.wide + t.high);
      if (t.images > 1 && !(all_x && all_y)) continue;
      t.in_y = ((1 << t.high) - 1) * plane.stride[0] + (plane.kernel[0] - 1) * plane.dilation[0] + 1;
      t.in_x = ((1 << t.wide) - 1) * plane.stride[1] + (plane.kernel[1] - 1) * plane.dilation[1] + 1;
      t.tiles_y = (plane.places[0] + (1 << t.high) - 1) >> t.high;
      t.tiles_x = (plane.places[1] + (1 << t.wide) - 1) >> t.wide;
      t.tiles = (images + t.images - 1) / t.images * t.tiles_y * t.tiles_x;
      use(t);
    }
  }
}

/// @brief The first place of a tile.
struct PlaceOfTile {
  int image, y, x;

  __device__ __forceinline__ PlaceOfTile(const PixelTiles& plan, int number) {
    const int line = number / plan.tiles_x, set = line / plan.tiles_y;
    image = set * plan.images, y = (line - set * plan.tiles_y) << plan.high, x = (number - line * plan.tiles_x) << plan.wide;
  }
  /// The number of a place of the tile among all, -1 for one that does not exist.
  template <class T>
  __device__ __forceinline__ int number(const Pixels<T>& pixels, const PixelTiles& plan, int row) const {
    const int in_x = x + (row & ((1 << plan.wide) - 1)), in_y = y + ((row >> plan.wide) & ((1 << plan.high) - 1));
    const int of = image + (row >> (plan.wide + plan.high));
    if (in_x >= pixels.plane.places[1] || in_y >= pixels.plane.places[0] || of >= pixels.images) return -1;
    return (of * pixels.plane.places[0] + in_y) * pixels.plane.places[1] + in_x;
  }
};

/// @brief Starts copies of the pixels of a tile, 16 bytes at a time; pixels outside of the input are zeros.
/// @tparam kThreads of the block
template <int kThreads, class T>
__device__ __forceinline__ void load_pixels(const Pixels<T>& from_all, const PixelTiles& plan, const PlaceOfTile& place, int channel, int channels,
                                            char* to) {
  const Plane& plane = from_all.plane;
  int across = 1;  // threads side by side over the channels of a pixel
  while (across * 8 < channels && across < 32) across *= 2;
  const int step = kThreads / across, first = int(threadIdx.x) % across * 8;
  const int y0 = place.y * plane.stride[0] - plane.pad[0], x0 = place.x * plane.stride[1] - plane.pad[1];
  int pixel = int(threadIdx.x) / across, y = pixel / plan.in_x, x = pixel - y * plan.in_x, image = y / plan.in_y;
  y -= image * plan.in_y;
  for (; pixel < plan.pixels(); pixel += step) {
    const int row = y0 + y, col = x0 + x;
    const bool inside = place.image + image < from_all.images && row >= 0 && row < plane.size[0] && col >= 0 && col < plane.size[1];
    const T* const from = from_all.x + (place.image + image) * from_all.image + row * plane.step[0] + col * plane.step[1] + channel;
    for (int c = first; c < channels; c += across * 8) {
      copy_async_16(shared_address(to + pixel * plan.pitch + c * 2), inside ? from + c : from_all.x, inside ? 16 : 0);
    }
    for (x += step; x >= plan.in_x; x -= plan.in_x) ++y;
    for (; y >= plan.in_y; y -= plan.in_y) ++image;
  }
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CONV_PIXELS_CUH_
