/// @file align_rows.cuh
/// @brief Copies of rows of 2-byte elements, which start on any address, to rows that start on words: of one or two matrices in one launch.
#ifndef AIT_KERNELS_GPU_ALIGN_ROWS_CUH_
#define AIT_KERNELS_GPU_ALIGN_ROWS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/vector.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief The rows of a matrix: `rows` of `length` elements, apart by so many elements on both sides.
template <class T>
struct AlignedRows {
  const T* in;
  T* out;
  int64_t rows, length, in_pitch, out_pitch;
};

/// Threads of a block, and the words of a lane; a warp copies a piece of a row.
inline constexpr int kAlignThreads = 256, kAlignWords = 4, kAlignPiece = 32 * kAlignWords;

/// @brief Rows in pieces of `kAlignPiece` words.
template <class T>
struct AlignedPieces {
  AlignedRows<T> all;
  uint32_t count;  ///< of all rows
  Divider of_row;

  /// Two neighbours of a row from element `at` on, of which `whole` says that both exist; the second counts as 0 if it does not.
  static __device__ __forceinline__ uint32_t pair(const T* row, int64_t at, bool whole) {
    using Bits = word_t<sizeof(T)>;
    const Bits* const from = reinterpret_cast<const Bits*>(row) + at;
    return uint32_t(from[0]) | (whole ? uint32_t(from[1]) << 16 : 0u);
  }

  /// Copies piece `number`.
  __device__ __forceinline__ void copy(uint32_t number) const {
    const uint32_t row = of_row.divide(number);
    const T* const from = all.in + row * all.in_pitch;
    T* const to = all.out + row * all.out_pitch;
    const int64_t first = int64_t(number - row * of_row.divisor) * kAlignPiece + threadIdx.x % 32;
    const bool odd = reinterpret_cast<uintptr_t>(from) % 4 != 0;  // the same for all lanes
    uint32_t words[kAlignWords];
#pragma unroll
    for (int u = 0; u < kAlignWords; ++u) {
      const int64_t at = (first + u * 32) * 2;
      words[u] = 0;
      if (at >= all.length) continue;
      const bool whole = at + 2 <= all.length;
      words[u] = odd || !whole ? pair(from, at, whole) : *reinterpret_cast<const uint32_t*>(from + at);
    }
#pragma unroll
    for (int u = 0; u < kAlignWords; ++u) {
      const int64_t at = (first + u * 32) * 2;
      if (at + 2 <= all.length) {
        *reinterpret_cast<uint32_t*>(to + at) = words[u];
      } else if (at < all.length) {
        to[at] = bit_cast<T>(static_cast<uint16_t>(words[u]));
      }
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kAlignThreads) align_rows_kernel(AlignedPieces<T> first, AlignedPieces<T> second) {
  wait_for_previous();
  allow_next();
  const uint32_t warps = gridDim.x * (kAlignThreads / 32), all = first.count + second.count;
  for (uint32_t number = blockIdx.x * (kAlignThreads / 32) + threadIdx.x / 32; number < all; number += warps) {
    if (number < first.count) {
      first.copy(number);
    } else {
      second.copy(number - first.count);
    }
  }
}

/// @brief Copies the rows of one matrix, or of two; nothing is written behind the elements of a row. Rows of the copies start on 4 bytes.
template <class T>
int32_t align_rows(const Context& ctx, const AlignedRows<T>& a, const AlignedRows<T>& b = {}) {
  static_assert(sizeof(T) == 2);
  const auto pieces = [](const AlignedRows<T>& x) {
    const int64_t of_row = (x.length + 2 * kAlignPiece - 1) / (2 * kAlignPiece);
    return AlignedPieces<T>{x, uint32_t(x.rows * of_row), Divider(uint32_t(of_row > 0 ? of_row : 1))};
  };
  const AlignedPieces<T> first = pieces(a), second = pieces(b);
  const int64_t all = int64_t(first.count) + second.count;
  if (all == 0) return 0;
  LaunchConfig config;
  config.grid = dim3(ceil_div(all, kAlignThreads / 32, 1 << 20));
  config.block = dim3(kAlignThreads);
  config.dependent = true;
  return launch(ctx, config, align_rows_kernel<T>, first, second);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_ALIGN_ROWS_CUH_
