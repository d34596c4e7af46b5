/// @file histogram.cuh
/// @brief The number of occurrences of each small number. Blocks count in shared memory, if the bins fit, and add their counts.
#ifndef AIT_KERNELS_GPU_HISTOGRAM_CUH_
#define AIT_KERNELS_GPU_HISTOGRAM_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kHistogramThreads = 256, kSharedBins = 4096, kHistogramBlocks = 1024;

/// Adds to `out`, which must be 0 when the launch begins. `Count` is unsigned.
template <bool kShared, class T, class Count>
__global__ void __launch_bounds__(kHistogramThreads) histogram_kernel(int64_t count, const T* in, int64_t bins, Count* out) {
  __shared__ uint32_t shared[kShared ? kSharedBins : 1];
  wait_for_previous();
  allow_next();
  if constexpr (kShared) {
    for (int b = threadIdx.x; b < bins; b += kHistogramThreads) shared[b] = 0;
    __syncthreads();
  }
  const int64_t step = static_cast<int64_t>(gridDim.x) * kHistogramThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kHistogramThreads + threadIdx.x; i < count; i += step) {
    const int64_t bin = static_cast<int64_t>(in[i]);
    if (bin < 0 || bin >= bins) continue;
    if constexpr (kShared) {
      atomicAdd(shared + bin, 1u);
    } else {
      atomicAdd(out + bin, Count(1));
    }
  }
  if constexpr (kShared) {
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += kHistogramThreads) {
      if (shared[b] != 0) atomicAdd(out + b, static_cast<Count>(shared[b]));
    }
  }
}

/// @brief out[b] = how many of the `count` elements of `in` are b, for b from 0 to `bins` - 1; other elements are not counted.
template <class T, class Count>
int32_t histogram(const Context& ctx, int64_t count, const T* in, int64_t bins, Count* out) {
  using Unsigned = std::conditional_t<sizeof(Count) == 8, unsigned long long, unsigned>;  // the type for atomicAdd
  if (const int32_t status = fill_bytes(ctx, out, 0, static_cast<size_t>(bins) * sizeof(Count))) return status;
  if (count <= 0 || bins <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(kHistogramThreads);
  config.grid = dim3(ceil_div(count, 8 * kHistogramThreads, kHistogramBlocks));
  Unsigned* const to = reinterpret_cast<Unsigned*>(out);
  if (bins <= kSharedBins) return launch(ctx, config, histogram_kernel<true, T, Unsigned>, count, in, bins, to);
  return launch(ctx, config, histogram_kernel<false, T, Unsigned>, count, in, bins, to);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_HISTOGRAM_CUH_
