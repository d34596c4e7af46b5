/// @file pool_tile.cuh
/// @brief Pools whose windows the compiler knows, with the channels last: a thread computes neighbouring windows and reads shared elements once.
///
/// `pool.cuh` computes all others. An output of 3 x 3 by 2 there takes some 530 instructions and 9 reads, 3 of them on their way at a time; here, in a
/// tile of 4 x 2 windows, 5.6 reads, and a line of 5 is on its way while the one before it is used.
#ifndef AIT_KERNELS_GPU_POOL_TILE_CUH_
#define AIT_KERNELS_GPU_POOL_TILE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/spatial.cuh"
#include "ait/kernels/pool_shape.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief The elements of a window and the steps between windows along the last two spatial dims; without `kHigh` these are not known.
template <int kHighOf = 0, int kWideOf = 0, int kDownOf = 1, int kAlongOf = 1>
struct PoolTaps {
  static constexpr int kHigh = kHighOf, kWide = kWideOf, kDown = kDownOf, kAlong = kAlongOf, kMost = 5;
  /// Windows of a thread. Where windows share lines, more of them save reads.
  static constexpr int kTileHigh = kHigh == 1 ? 1 : kHigh > kDown ? 4 : 2, kTileWide = kHigh == 1 ? 4 : 2;
  static constexpr int kLines = (kTileHigh - 1) * kDown + kHigh, kColumns = (kTileWide - 1) * kAlong + kWide;
  /// Whether `pool_tile_kernel` is made for them: a few elements, none between windows that nobody needs.
  static constexpr bool kTiles = kHigh * kWide > 1 && kDown <= kHigh && kHigh <= kMost && kAlong <= kWide && kWide <= kMost;
};

/// @brief The larger one; no number if one is none.
template <class A>
__device__ __forceinline__ A larger_of(A a, A b) {
#if defined(AIT_CUDA)
  if constexpr (std::is_same_v<A, float>) return max_or_nan(a, b);
#endif
  return b > a || b != b ? b : a;
}

/// @brief The larger of each of two neighbours of 16 bits, where there is an instruction.
template <class T>
__device__ __forceinline__ uint32_t larger_pair([[maybe_unused]] uint32_t a, [[maybe_unused]] uint32_t b) {
#if defined(AIT_CUDA)
  return max_or_nan_pair<T>(a, b);
#else
  return 0;
#endif
}

/// @brief a = the larger one of each pair of elements.
template <class T, int kVec>
__device__ __forceinline__ void keep_larger(T (&a)[kVec], const T (&b)[kVec]) {
#if defined(AIT_CUDA)
  constexpr bool kPairs = (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) && kVec % 2 == 0;
#else
  constexpr bool kPairs = false;
#endif
  if constexpr (kPairs) {  // two at a time, without a conversion
    uint32_t pairs[kVec / 2], others[kVec / 2];
    copy_bytes(&pairs, &a, sizeof(a));
    copy_bytes(&others, &b, sizeof(b));
#pragma unroll
    for (int j = 0; j < kVec / 2; ++j) pairs[j] = larger_pair<T>(pairs[j], others[j]);
    copy_bytes(&a, &pairs, sizeof(a));
  } else {
    using A = compute_t<T>;
#pragma unroll
    for (int j = 0; j < kVec; ++j) a[j] = convert<T>(larger_of(convert<A>(a[j]), convert<A>(b[j])));
  }
}

/// Divisors of sums of half below which one correction makes a quotient exact.
inline constexpr int64_t kLeastDivisor = 1 << 16;

/// @brief values / divisor, as division rounds it. The product with the inverse of a power of two is the same number. For sums of half, which are far from
/// the ends of the range of float and never -0, a product with the rounded inverse and one correction is, too (Markstein, 1990).
/// @tparam kSmall whether the divisor is known to be less than `kLeastDivisor`
template <class T, bool kSmall, class A, int kVec>
__device__ __forceinline__ void divide_all(A (&values)[kVec], int64_t divisor) {
  const A by = static_cast<A>(divisor), inverse = A(1) / by;
  if (divisor > 0 && (divisor & (divisor - 1)) == 0) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) values[j] *= inverse;
  } else if (std::is_same_v<T, half> && std::is_same_v<A, float> && (kSmall || (divisor > -kLeastDivisor && divisor < kLeastDivisor))) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const A near = values[j] * inverse, better = fma(fma(-near, by, values[j]), inverse, near);
      values[j] = near - near == 0 ? better : near;  // infinities and no numbers stay
    }
  } else {
#pragma unroll
    for (int j = 0; j < kVec; ++j) values[j] /= by;
  }
}

/// @brief The lines and columns of an image [lines, columns, channels] and its pads, with places and offsets of 32 bits.
struct PoolImage {
  int lines, columns, before_line, before_column, behind_line, behind_column;
  uint32_t line, column;  ///< strides, in elements
  int places_high, places_wide;
  uint32_t line_out, column_out;
  bool exclude_pad;
  int64_t divisor;  ///< of every mean, unless 0

  /// @brief The divisor of the sum of the window from a line and column on.
  template <class Taps>
  __device__ __forceinline__ int64_t count(int first_line, int first_column) const {
    if (divisor != 0) return divisor;
    return elements(first_line, Taps::kHigh, lines, behind_line) * elements(first_column, Taps::kWide, columns, behind_column);
  }

 private:
  __device__ __forceinline__ int elements(int first, int taps, int size, int behind) const {
    const int begin = exclude_pad && first < 0 ? 0 : first, most = exclude_pad ? size : size + behind;
    return (first + taps < most ? first + taps : most) - begin;
  }
};

/// @brief Each thread computes `Taps::kTileHigh` x `Taps::kTileWide` windows for `kVec` channels. The dims of `space` are batch, tiles down, tiles along and
/// chunks of channels. A largest element is sought along lines first, and places outside of the image stand for those at its edge, which are in the
/// same window; sums are taken in the order of the elements.
/// @tparam kPadded whether a window has places outside of the image
template <bool kMax, bool kPadded, class Taps, int kVec, class T>
__global__ void __launch_bounds__(256) pool_tile_kernel(Space<4, false> space, uint32_t total, PoolImage image, SpatialTensor<const T> x, SpatialTensor<T> y) {
  using A = compute_t<T>;
  using Raw = std::conditional_t<kMax, T, A>;
  using Word = word_t<kAccessBytes<T, kVec>>;
  static_assert(sizeof(Word) == sizeof(T) * kVec, "one word");
  constexpr int kLines = Taps::kLines, kColumns = Taps::kColumns, kTileHigh = Taps::kTileHigh, kTileWide = Taps::kTileWide;
  wait_for_previous();
  allow_next();
  const uint32_t task = blockIdx.x * 256u + threadIdx.x;
  if (task >= total) return;
  int64_t at[4];
  space.split(task, at);
  const int top = static_cast<int>(at[1]) * kTileHigh, left = static_cast<int>(at[2]) * kTileWide;
  const int first_line = top * Taps::kDown - image.before_line, first_column = left * Taps::kAlong - image.before_column;
  const T* const origin = x.data + (at[0] * x.strides[0] + at[3] * kVec);
  const T* columns[kColumns];
  bool inside[kColumns];
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const int column = first_column + k, nearest = column < 0 ? 0 : (column < image.columns ? column : image.columns - 1);
    inside[k] = nearest == column;
    columns[k] = origin + static_cast<uint32_t>(nearest) * image.column;
  }
  T* const to = y.data + (at[0] * y.strides[0] + at[3] * kVec + static_cast<uint32_t>(top) * image.line_out + static_cast<uint32_t>(left) * image.column_out);

  Word raws[2][kColumns];
  const auto read = [&](int r) {
    const int line = first_line + r, nearest = line < 0 ? 0 : (line < image.lines ? line : image.lines - 1);
    const uint32_t offset = static_cast<uint32_t>(nearest) * image.line;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      raws[r % 2][k] = Word{};
      if (kMax || !kPadded || (inside[k] && nearest == line)) raws[r % 2][k] = *reinterpret_cast<const Word*>(columns[k] + offset);
      if constexpr (!kMax && kPadded) keep_whole(raws[r % 2][k]);
    }
  };
  const auto elements = [&](int r, int k, T(&to)[kVec]) { copy_bytes(&to, &raws[r % 2][k], sizeof(to)); };
  Raw results[kTileHigh][kTileWide][kVec];
  read(0);
#pragma unroll
  for (int r = 0; r < kLines; ++r) {
    if (r + 1 < kLines) read(r + 1);
#pragma unroll
    for (int j = 0; j < kTileWide; ++j) {
      Raw line[kVec];
      if constexpr (kMax) {
        elements(r, j * Taps::kAlong, line);
#pragma unroll
        for (int k = 1; k < Taps::kWide; ++k) {
          T next[kVec];
          elements(r, j * Taps::kAlong + k, next);
          keep_larger(line, next);
        }
      }
#pragma unroll
      for (int i = 0; i < kTileHigh; ++i) {
        const int b = r - i * Taps::kDown;
        if (b < 0 || b >= Taps::kHigh) continue;
        if constexpr (kMax) {
          if (b == 0) {
            copy_bytes(&results[i][j], &line, sizeof(line));
          } else {
            keep_larger(results[i][j], line);
          }
        } else {
#pragma unroll
          for (int k = 0; k < Taps::kWide; ++k) {
            T next[kVec];
            elements(r, j * Taps::kAlong + k, next);
            A values[kVec];
            convert_all(next, values);
#pragma unroll
            for (int e = 0; e < kVec; ++e) results[i][j][e] = (b == 0 && k == 0 ? A(0) : results[i][j][e]) + values[e];
          }
        }
        if (b < Taps::kHigh - 1 || top + i >= image.places_high || left + j >= image.places_wide) continue;
        T* const place = to + (static_cast<uint32_t>(i) * image.line_out + static_cast<uint32_t>(j) * image.column_out);
        if constexpr (kMax) {
          store<kVec>(place, results[i][j]);
        } else {
          divide_all<T, true>(results[i][j], image.count<Taps>(first_line + i * Taps::kDown, first_column + j * Taps::kAlong));
          T rounded[kVec];
#pragma unroll
          for (int e = 0; e < kVec; ++e) rounded[e] = convert<T>(results[i][j][e]);
          store<kVec>(place, rounded);
        }
      }
    }
  }
}

namespace detail {
/// Threads a multiprocessor that keep the memory busy; with fewer, each computes one window.
inline constexpr int64_t kPoolFillingThreads = 512;

/// @brief Fills `image`; whether `pool_tile_kernel` computes this pool: of the last two spatial dims, each window with an element of the image.
template <class Taps, class T>
bool tiles_image(const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, PoolImage& image) {
  constexpr int64_t kMost = (int64_t(1) << 31) / sizeof(T);  // so that an offset in bytes has 32 bits
  const PoolAxis &d = shape.axes[0], &h = shape.axes[1], &w = shape.axes[2];
  bool fits = d.size == 1 && d.places == 1 && d.taps == 1 && d.before == 0;
  for (const PoolAxis* axis : {&h, &w}) {
    fits = fits && axis->taps > 0 && axis->dilation == 1 && axis->is_narrow() && axis->before < axis->taps && axis->size > 0 &&
           (axis->places - 1) * axis->stride - axis->before < axis->size;
  }
  for (int s = 1; s < 5; ++s) fits = fits && x.strides[s] >= 0 && y.strides[s] >= 0;
  fits = fits && (h.size - 1) * x.strides[2] + (w.size - 1) * x.strides[3] + shape.channels <= kMost;
  fits = fits && h.places * y.strides[2] + w.places * y.strides[3] + shape.channels <= kMost;
  fits = fits && shape.divisor > -kLeastDivisor && shape.divisor < kLeastDivisor && Taps::kHigh * Taps::kWide < kLeastDivisor;
  if (!fits) return false;
  image = {int(h.size),         int(w.size),         int(h.before),   int(w.before),   int(h.behind),          int(w.behind),
           uint32_t(x.strides[2]), uint32_t(x.strides[3]), int(h.places), int(w.places), uint32_t(y.strides[2]), uint32_t(y.strides[3]),
           shape.exclude_pad,   shape.divisor};
  return true;
}

/// @brief Launches `pool_tile_kernel` if it computes this pool and there is enough to do; whether it did.
template <bool kMax, class Taps, int kVec, class T>
bool launched_pool_tiles(const Context& ctx, const PoolShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, int32_t& status) {
  PoolImage image;
  if (!tiles_image<Taps>(shape, x, y, image)) return false;
  const int64_t down = (shape.axes[1].places + Taps::kTileHigh - 1) / Taps::kTileHigh, along = (shape.axes[2].places + Taps::kTileWide - 1) / Taps::kTileWide;
  const int64_t sizes[4] = {shape.batch, down, along, shape.channels / kVec};
  const int64_t total = shape.batch * down * along * (shape.channels / kVec);
  if (total < kPoolFillingThreads * multiprocessors() || total >= int64_t(1) << 31) return false;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, int64_t(1) << 31));
  config.dependent = true;
  bool padded = false;  // the largest element does not ask
  for (const PoolAxis* axis : {&shape.axes[1], &shape.axes[2]}) {
    padded = padded || axis->before > 0 || (axis->places - 1) * axis->stride + axis->taps > axis->size;
  }
  const auto kernel = padded && !kMax ? pool_tile_kernel<kMax, !kMax, Taps, kVec, T> : pool_tile_kernel<kMax, false, Taps, kVec, T>;
  status = launch(ctx, config, kernel, Space<4, false>(sizes), uint32_t(total), image, x, y);
  return true;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_POOL_TILE_CUH_
