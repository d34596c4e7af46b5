/// @file copy_rows.cuh
/// @brief Copies of rows that are contiguous on both sides, but begin at no boundary of 16 bytes on one of them.
#ifndef AIT_KERNELS_GPU_COPY_ROWS_CUH_
#define AIT_KERNELS_GPU_COPY_ROWS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

/// Rows that are contiguous on both sides, wherever they begin: their number, their elements, and the dims that they lie in.
struct RowCopy {
  int rank;
  uint32_t total;  ///< chunks of all rows
  int64_t length;
  Divider chunks;  ///< of a row
  CopyDim dims[kMaxCopyRank];
  Divider sizes[kMaxCopyRank];
};

/// A chunk is what 16 bytes hold, cut where the output is aligned: where it begins on both sides and in its row, and which elements exist.
template <class T>
struct RowChunk {
  const T* from;
  T* to;
  int64_t i;
  uint32_t live;

  __device__ __forceinline__ RowChunk(const RowCopy& plan, const T* in, T* out, uint32_t index) : from(in), to(out), live(0) {
    constexpr int kVec = 16 / sizeof(T), kLine = 128;
    uint32_t linear = plan.chunks.divide(index);
    i = static_cast<int64_t>(index - linear * plan.chunks.divisor) * kVec;
    for (int d = plan.rank - 1; d >= 0; --d) {
      const uint32_t quotient = plan.sizes[d].divide(linear);
      const int64_t coordinate = linear - quotient * plan.sizes[d].divisor;
      from += coordinate * plan.dims[d].in;
      to += coordinate * plan.dims[d].out;
      linear = quotient;
    }
    i -= static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine / sizeof(T));
    from += i, to += i;
    const int64_t first = i < 0 ? -i : 0, last = plan.length - i;
    if (first < kVec && last > first) {
      live = ((1u << kVec) - 1) & ~((1u << first) - 1);
      if (last < kVec) live &= (1u << last) - 1;
    }
  }
};

/// What lies around a chunk in the input is read and shifted.
template <class T>
__global__ void __launch_bounds__(256) copy_rows_kernel(RowCopy plan, const T* in, T* out) {
  constexpr int kVec = 16 / sizeof(T), kUnroll = 4;
  wait_for_previous();
  allow_next();
  const int64_t length = plan.length;
  const auto deep = [length](const RowChunk<T>& chunk) { return chunk.i >= kVec && chunk.i + 2 * kVec <= length; };
  const uint32_t block = blockDim.x * kUnroll;
  for (uint32_t base = blockIdx.x * block + threadIdx.x; base < plan.total; base += gridDim.x * block) {
    Words<T, kVec, true> words[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint32_t index = base + u * blockDim.x;
      if (index >= plan.total) continue;
      const RowChunk<T> chunk(plan, in, out, index);
      words[u].read(chunk.from, deep(chunk));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint32_t index = base + u * blockDim.x;
      if (index >= plan.total) continue;
      const RowChunk<T> chunk(plan, in, out, index);
      if (chunk.live == 0) continue;
      T elements[kVec];
      words[u].elements(chunk.from, deep(chunk), chunk.live, elements);
      store_within<kVec>(chunk.to, chunk.i, length - chunk.i, elements);
    }
  }
}

/// Rows shorter than this many bytes are not worth cutting.
inline constexpr int64_t kShortRow = 256;

template <class T>
int32_t launch_rows(const Context& ctx, const CopyPlan& plan, int64_t rows, const void* in, void* out) {
  constexpr int64_t kVec = 16 / sizeof(T), kLead = 128 / sizeof(T) - 1;
  RowCopy copy;
  copy.rank = plan.rank - 1;
  copy.length = plan.dims[plan.rank - 1].size;
  const int64_t chunks = (copy.length + kLead + kVec - 1) / kVec;
  copy.chunks = Divider(static_cast<uint32_t>(chunks));
  copy.total = static_cast<uint32_t>(rows * chunks);
  for (int d = 0; d < copy.rank; ++d) {
    copy.dims[d] = plan.dims[d];
    copy.sizes[d] = Divider(static_cast<uint32_t>(plan.dims[d].size));
  }
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(copy.total, 256 * 4, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, copy_rows_kernel<T>, copy, static_cast<const T*>(in), static_cast<T*>(out));
}

}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_ROWS_CUH_
