/// @file resize.cuh
/// @brief Resampling of the spatial dims.
#ifndef AIT_KERNELS_GPU_RESIZE_CUH_
#define AIT_KERNELS_GPU_RESIZE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/spatial.cuh"
#include "ait/kernels/resize_shape.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes `kVec` channels of one element of the result. The dims of `space` are batch, channels and spatial dims, or, with `kChannels`,
/// the channels last: neighbouring threads access neighbouring memory. Instructions take longer than memory, so places have 32 bits unless `kWide`.
template <ResizeMode kMode, int kDims, bool kChannels, int kVec, bool kWide, class T>
__global__ void __launch_bounds__(256) resize_kernel(Space<5, kWide> space, int64_t total, ResizeShape shape, SpatialTensor<const T> x,
                                                     SpatialTensor<T> y) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; task < total; task += stride) {
    int64_t at[5];
    space.split(static_cast<typename Space<5, kWide>::Index>(task), at);
    const int64_t n = at[0], c = (kChannels ? at[4] : at[1]) * kVec;
    const int64_t place[3] = {at[kChannels ? 1 : 2], at[kChannels ? 2 : 3], at[kChannels ? 3 : 4]};
    const ResizeWindow<kMode, kDims, A, std::conditional_t<kWide, int64_t, int>> window(shape, place);
    T results[kVec];
    if constexpr (kResizeTaps<kMode> == 1) {
      window.each(x, n, [&](const T* from, A) { load<kVec>(from + c * x.strides[4], results); });
    } else {
      A sums[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] = A(0);
      window.each(x, n, [&](const T* from, A weight) {
        T elements[kVec];
        load<kVec>(from + c * x.strides[4], elements);
        A values[kVec];
        convert_all(elements, values);
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[j] += weight * values[j];
      });
#pragma unroll
      for (int j = 0; j < kVec; ++j) results[j] = convert<T>(sums[j]);
    }
    store<kVec>(y.at(n, place[0], place[1], place[2]) + c * y.strides[4], results);
  }
}

/// @brief The weights of the elements from which a place is computed, where the last two dims double: they are the same for all odd places along a dim,
/// and for all even ones. Odd places and the even ones behind them have the same elements if these are more than one.
template <ResizeMode kMode, class A>
struct Doubling {
  static constexpr int kTaps = kResizeTaps<kMode>, kShift = kTaps > 1 ? 1 : 0;
  A weights[2][kTaps];

  /// @brief Of places far from both ends.
  static Doubling made() {
    Doubling result;
    const ResizeAxis axis = ResizeAxis{16, 32, 0.0, false}.prepared();
    for (int i = 0; i < 2; ++i) {
      const auto taps = axis.taps<kMode, A>(16 - kShift + i);
      for (int k = 0; k < kTaps; ++k) result.weights[i][k] = taps.weight[k];
    }
    return result;
  }
  /// @brief The elements of pair `p` of places along a dim, and their weights for each of the two.
  __device__ __forceinline__ void along(int p, int size, int (&index)[kTaps], A (&weight)[2][kTaps]) const {
    const auto clamped = [&](int i) { return i < 0 ? 0 : (i < size ? i : size - 1); };
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      index[k] = clamped(p + k - kTaps / 2);
#pragma unroll
      for (int i = 0; i < 2; ++i) weight[i][k] = weights[i][k];
    }
    if constexpr (kMode == ResizeMode::linear) {  // the first and the last place are elements
      if (p == 0) index[1] = clamped(1);
      if (p == 0 || p == size) {
#pragma unroll
        for (int i = 0; i < 2; ++i) weight[i][0] = A(1), weight[i][1] = A(0);
      }
    }
  }
};

/// @brief The last two spatial dims of the input, and the strides of both tensors along them in elements: offsets have 32 bits.
struct DoubledImage {
  int high, wide;
  uint32_t line, column, line_out, column_out;
};

/// @brief `resize_kernel` where the last two dims double and the one before them stays: each thread reads the elements that two by two places share and
/// computes these. The dims of `space` are batch, the dim that stays, pairs of places along the other two, and chunks of channels.
template <ResizeMode kMode, int kVec, class T>
__global__ void __launch_bounds__(256) resize_double_kernel(Space<5, false> space, uint32_t total, DoubledImage image, Doubling<kMode, compute_t<T>> doubling,
                                                            SpatialTensor<const T> x, SpatialTensor<T> y) {
  using A = compute_t<T>;
  constexpr int kTaps = kResizeTaps<kMode>, kShift = Doubling<kMode, A>::kShift;
  wait_for_previous();
  allow_next();
  const uint32_t task = blockIdx.x * 256u + threadIdx.x;
  if (task >= total) return;
  int64_t at[5];
  space.split(task, at);
  const int lines = static_cast<int>(at[2]), columns = static_cast<int>(at[3]);
  const T* const from = x.at(at[0], at[1], 0, 0) + at[4] * kVec;
  T* const to = y.at(at[0], at[1], 0, 0) + at[4] * kVec;
  int line[kTaps], column[kTaps];
  A of_line[2][kTaps], of_column[2][kTaps];
  doubling.along(lines, image.high, line, of_line);
  doubling.along(columns, image.wide, column, of_column);
  uint32_t behind[kTaps];
#pragma unroll
  for (int k = 0; k < kTaps; ++k) behind[k] = static_cast<uint32_t>(column[k]) * image.column;
  T results[2][2][kVec];
  if constexpr (kTaps == 1) {
    load<kVec>(from + (static_cast<uint32_t>(line[0]) * image.line + behind[0]), results[0][0]);
  } else {
    constexpr int kAtOnce = kTaps == 2 ? 2 : 1;  // lines on their way
    A sums[2][2][kVec];
#pragma unroll
    for (int b = 0; b < kTaps; b += kAtOnce) {
      T elements[kAtOnce][kTaps][kVec];
#pragma unroll
      for (int a = 0; a < kAtOnce; ++a) {
#pragma unroll
        for (int k = 0; k < kTaps; ++k) load<kVec>(from + (static_cast<uint32_t>(line[b + a]) * image.line + behind[k]), elements[a][k]);
      }
#pragma unroll
      for (int a = 0; a < kAtOnce; ++a) {
#pragma unroll
        for (int k = 0; k < kTaps; ++k) {
          A values[kVec];
          convert_all(elements[a][k], values);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const A weight = of_column[i % 2][k] * of_line[i / 2][b + a];
#pragma unroll
            for (int j = 0; j < kVec; ++j) {
              if (b + a + k == 0) sums[i / 2][i % 2][j] = A(0);
              sums[i / 2][i % 2][j] += weight * values[j];
            }
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) results[i / 2][i % 2][j] = convert<T>(sums[i / 2][i % 2][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int h = 2 * lines - kShift + i / 2, w = 2 * columns - kShift + i % 2;
    if (h < 0 || h >= 2 * image.high || w < 0 || w >= 2 * image.wide) continue;
    store<kVec>(to + (static_cast<uint32_t>(h) * image.line_out + static_cast<uint32_t>(w) * image.column_out), kTaps == 1 ? results[0][0] : results[i / 2][i % 2]);
  }
}

namespace detail {
/// Threads a multiprocessor that keep the memory busy; with fewer, each computes one place.
inline constexpr int64_t kResizeFillingThreads = 512;

/// @brief Whether a dim doubles, and each place is computed as if it was far from both ends but for `Doubling::along`.
inline bool doubles(const ResizeAxis& axis) {
  return axis.out == 2 * axis.in && !axis.corners && (axis.scale == 0 || axis.scale == 2) && axis.in < int64_t(1) << 29;
}

/// @brief Launches `resize_double_kernel` if it computes this and there is enough to do; whether it did.
template <ResizeMode kMode, int kVec, class T>
bool launched_double(const Context& ctx, const ResizeShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y, int32_t& status) {
  using Weights = Doubling<kMode, compute_t<T>>;
  if (!doubles(shape.axes[1]) || !doubles(shape.axes[2]) || shape.axes[0].in != shape.axes[0].out) return false;
  constexpr int64_t kMost = (int64_t(1) << 31) / sizeof(T);  // so that an offset in bytes has 32 bits
  const int64_t high = shape.axes[1].in, wide = shape.axes[2].in;
  for (int s = 2; s < 4; ++s) {
    if (x.strides[s] < 0 || y.strides[s] < 0) return false;
  }
  if (high * x.strides[2] + wide * x.strides[3] + shape.channels > kMost || 2 * (high * y.strides[2] + wide * y.strides[3]) + shape.channels > kMost) return false;
  const DoubledImage image{int(high), int(wide), uint32_t(x.strides[2]), uint32_t(x.strides[3]), uint32_t(y.strides[2]), uint32_t(y.strides[3])};
  const int64_t sizes[5] = {shape.batch, shape.axes[0].in, high + Weights::kShift, wide + Weights::kShift, shape.channels / kVec};
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  if (total < kResizeFillingThreads * multiprocessors() || total >= int64_t(1) << 31) return false;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, int64_t(1) << 31));
  config.dependent = true;
  status = launch(ctx, config, resize_double_kernel<kMode, kVec, T>, Space<5, false>(sizes), uint32_t(total), image, Weights::made(), x, y);
  return true;
}

template <ResizeMode kMode, int kDims, bool kChannels, int kVec, class T>
int32_t launch_resize(const Context& ctx, ResizeShape shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  if constexpr (kResizeTaps<kMode> > 1 && !std::is_same_v<T, double>) {  // a multiple of a rounded step may be an ulp off
    for (ResizeAxis& axis : shape.axes) axis = axis.prepared();
  }
  const int64_t channels = shape.channels / kVec, d = shape.axes[0].out, h = shape.axes[1].out, w = shape.axes[2].out;
  const int64_t last[5] = {shape.batch, d, h, w, channels}, second[5] = {shape.batch, channels, d, h, w};
  const int64_t(&sizes)[5] = kChannels ? last : second;
  const int64_t total = shape.batch * channels * d * h * w;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  bool narrow = total < int64_t(1) << 31;
  constexpr int64_t kMost = int64_t(1) << 30;
  for (const ResizeAxis& axis : shape.axes) {  // a scale may lead far beyond the input
    narrow = narrow && axis.in < kMost && axis.out < kMost && axis.place(static_cast<double>(axis.out)) < static_cast<double>(kMost);
  }
  if (narrow) return launch(ctx, config, resize_kernel<kMode, kDims, kChannels, kVec, false, T>, Space<5, false>(sizes), total, shape, x, y);
  return launch(ctx, config, resize_kernel<kMode, kDims, kChannels, kVec, true, T>, Space<5, true>(sizes), total, shape, x, y);
}
}  // namespace detail

/// @brief y = x resampled to the sizes of `shape`, along the last `kDims` of three spatial dims. Any strides.
/// @tparam kChannels whether the channels are contiguous in both tensors
template <ResizeMode kMode, int kDims, bool kChannels, class T>
int32_t resize(const Context& ctx, const ResizeShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<T>& y) {
  if constexpr (kChannels) {
    constexpr int kVec = detail::kChannelVector<T>;
    if (shape.channels % kVec == 0 && detail::channel_vectors<kVec>(x) && detail::channel_vectors<kVec>(y)) {
      if constexpr (kDims == 2) {
        int32_t status;
        if (detail::launched_double<kMode, kVec>(ctx, shape, x, y, status)) return status;
      }
      return detail::launch_resize<kMode, kDims, true, kVec>(ctx, shape, x, y);
    }
  }
  return detail::launch_resize<kMode, kDims, kChannels, 1>(ctx, shape, x, y);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_RESIZE_CUH_
