/// @file compact.cuh
/// @brief The rows of a tensor where a mask is true, in order.
///
/// Each block has a stretch of rows. The first launch counts those of each stretch that are selected; in the second a block adds up the
/// counts of the stretches before its own, which says where its rows go.
#ifndef AIT_KERNELS_GPU_COMPACT_CUH_
#define AIT_KERNELS_GPU_COMPACT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

inline constexpr int kCompactThreads = 256;
inline constexpr int64_t kCompactBlocks = 1024;  ///< the most there are: `counts` has room for so many

namespace detail {

/// The sum of the values of the threads up to and including this one, and that of all; `shared` has an element for each thread.
__device__ __forceinline__ int64_t scan_block(int64_t value, int64_t* shared, int64_t* all) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int step = 1; step < kCompactThreads; step *= 2) {
    const int64_t other = thread >= step ? shared[thread - step] : 0;
    __syncthreads();
    shared[thread] += other;
    __syncthreads();
  }
  const int64_t sum = shared[thread];
  *all = shared[kCompactThreads - 1];
  __syncthreads();
  return sum;
}

}  // namespace detail

template <class Mask>
__global__ void __launch_bounds__(kCompactThreads) compact_count_kernel(int64_t rows, int64_t stretch, const Mask* mask, int64_t* counts) {
  __shared__ int64_t shared[kCompactThreads];
  wait_for_previous();
  allow_next();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * stretch;
  const int64_t last = first + stretch < rows ? first + stretch : rows;
  int64_t mine = 0, all = 0;
  for (int64_t row = first + threadIdx.x; row < last; row += kCompactThreads) mine += mask[row] ? 1 : 0;
  (void)detail::scan_block(mine, shared, &all);
  if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

template <class T>
__global__ void __launch_bounds__(kCompactThreads) compact_kernel(int64_t rows, int64_t stretch, int64_t width, const T* in, const bool* mask,
                                                                  const int64_t* counts, T* out, int64_t* count) {
  __shared__ int64_t shared[kCompactThreads];
  wait_for_previous();
  allow_next();
  int64_t mine = 0, place = 0;
  for (int64_t block = threadIdx.x; block < blockIdx.x; block += kCompactThreads) mine += counts[block];
  (void)detail::scan_block(mine, shared, &place);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * stretch;
  const int64_t last = first + stretch < rows ? first + stretch : rows;
  for (int64_t chunk = first; chunk < last; chunk += kCompactThreads) {
    const int64_t row = chunk + threadIdx.x;
    const bool taken = row < last && mask[row];
    int64_t all = 0;
    const int64_t to = place + detail::scan_block(taken ? 1 : 0, shared, &all) - 1;
    if (taken) {
      for (int64_t i = 0; i < width; ++i) out[to * width + i] = in[row * width + i];
    }
    place += all;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) *count = place;
}

/// @brief Writes the rows of `in` whose place in `mask` is true to `out`, one after another, and how many they are to `count`.
///
/// `rows` rows of `width` elements, contiguous everywhere; `counts` is scratch memory of `kCompactBlocks` numbers.
template <class T>
int32_t compact(const Context& ctx, int64_t rows, int64_t width, const T* in, const bool* mask, T* out, int64_t* count, int64_t* counts) {
  constexpr int64_t kLeast = 16 * kCompactThreads;  // rows for which a block is worth its start
  int64_t blocks = (rows + kLeast - 1) / kLeast;
  blocks = blocks < 1 ? 1 : blocks < kCompactBlocks ? blocks : kCompactBlocks;
  const int64_t stretch = (rows + blocks - 1) / blocks;
  LaunchConfig config;
  config.block = dim3(kCompactThreads);
  config.grid = dim3(grid_size(blocks));
  config.dependent = true;
  if (const int32_t status = launch(ctx, config, compact_count_kernel<bool>, rows, stretch, mask, counts)) return status;
  using Word = word_t<sizeof(T)>;
  return launch(ctx, config, compact_kernel<Word>, rows, stretch, width, reinterpret_cast<const Word*>(in), mask,
                static_cast<const int64_t*>(counts), reinterpret_cast<Word*>(out), count);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COMPACT_CUH_
