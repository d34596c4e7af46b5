/// @file nms.cuh
/// @brief Non-maximum suppression of boxes, the best first: first a bit for each pair that overlaps, then one block for each batch chooses the boxes.
#ifndef AIT_KERNELS_GPU_NMS_CUH_
#define AIT_KERNELS_GPU_NMS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/box.h"
#include "ait/kernels/gpu/vector.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// Boxes in one word of bits.
inline constexpr int kNmsGroup = 64;

/// @brief words[b, i, g] bit j = whether box i overlaps the later box 64 g + j. A block has 64 boxes i and one group g, which is not before them.
template <class T>
__global__ void __launch_bounds__(kNmsGroup) nms_overlap_kernel(int64_t blocks, int64_t groups, int64_t count, const T* boxes, double iou,
                                                                uint64_t* words) {
  using A = compute_t<T>;
  __shared__ Box<A> columns[kNmsGroup];
  wait_for_previous();
  allow_next();
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t column = block % groups, row = block / groups % groups, batch = block / groups / groups;
    if (column < row) continue;  // the same for all threads
    const int64_t first = column * kNmsGroup, left = count - first < kNmsGroup ? count - first : kNmsGroup;
    const T* const from = boxes + 4 * batch * count;
    __syncthreads();
    if (static_cast<int64_t>(threadIdx.x) < left) columns[threadIdx.x] = Box<A>::read(from + 4 * (first + threadIdx.x));
    __syncthreads();
    const int64_t i = row * kNmsGroup + threadIdx.x;
    if (i >= count) continue;
    const Box<A> own = Box<A>::read(from + 4 * i);
    uint64_t word = 0;
    for (int j = row == column ? static_cast<int>(threadIdx.x) + 1 : 0; j < left; ++j) {
      word |= static_cast<uint64_t>(overlap(own, columns[j], static_cast<A>(iou))) << j;
    }
    words[(batch * count + i) * groups + column] = word;
  }
}

/// @brief keep[b, i] = whether box i remains; one block for each batch. Shared memory: one word for each group.
template <int kThreads>
__global__ void __launch_bounds__(kThreads) nms_pick_kernel(int64_t batches, int64_t groups, int64_t count, const uint64_t* words,
                                                            const bool* valid, bool* keep) {
  AIT_DYNAMIC_SHARED(16, shared);
  uint64_t* const removed = reinterpret_cast<uint64_t*>(shared);
  __shared__ uint64_t own[kNmsGroup];
  wait_for_previous();
  allow_next();
  for (int64_t batch = blockIdx.x; batch < batches; batch += gridDim.x) {
    const uint64_t* const rows = words + batch * count * groups;
    for (int64_t g = threadIdx.x; g < groups; g += kThreads) {
      uint64_t word = 0;
      for (int64_t j = 0; j < kNmsGroup; ++j) {
        const int64_t i = g * kNmsGroup + j;
        const bool there = i < count && (valid == nullptr || valid[batch * count + i]);
        word |= static_cast<uint64_t>(!there) << j;
      }
      removed[g] = word;
    }
    __syncthreads();
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * kNmsGroup;
      for (int j = threadIdx.x; j < kNmsGroup; j += kThreads) own[j] = first + j < count ? rows[(first + j) * groups + g] : 0;
      __syncthreads();
      if (threadIdx.x == 0) {
        uint64_t word = removed[g];
        for (int j = 0; j < kNmsGroup; ++j) word |= word >> j & 1 ? 0 : own[j];
        removed[g] = word;
      }
      __syncthreads();
      const uint64_t word = removed[g];
      for (int64_t later = g + 1 + threadIdx.x; later < groups; later += kThreads) {
        uint64_t more = removed[later];
        for (int j = 0; j < kNmsGroup; ++j) {
          if (!(word >> j & 1)) more |= rows[(first + j) * groups + later];
        }
        removed[later] = more;
      }
      for (int64_t j = threadIdx.x; j < kNmsGroup; j += kThreads) {
        if (first + j < count) keep[batch * count + first + j] = !(word >> j & 1);
      }
      __syncthreads();
    }
  }
}

/// @brief The overlaps of boxes [batch, count, 4]; `words` are [batch, count, groups of 64 boxes].
template <class T>
int32_t nms_overlaps(const Context& ctx, int64_t batch, int64_t count, const T* boxes, double iou, int64_t* words) {
  const int64_t groups = (count + kNmsGroup - 1) / kNmsGroup, blocks = batch * groups * groups;
  LaunchConfig config;
  config.block = dim3(kNmsGroup);
  config.grid = dim3(ceil_div(blocks, 1, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, nms_overlap_kernel<T>, blocks, groups, count, boxes, iou, reinterpret_cast<uint64_t*>(words));
}

/// @brief keep[b, i] = whether box i of batch b remains; `valid` is [batch, count] or null.
inline int32_t nms_pick(const Context& ctx, int64_t batch, int64_t count, const int64_t* words, const bool* valid, bool* keep) {
  constexpr int kThreads = 256;
  const int64_t groups = (count + kNmsGroup - 1) / kNmsGroup;
  LaunchConfig config;
  config.block = dim3(kThreads);
  config.grid = dim3(count == 0 ? 0 : ceil_div(batch, 1, 1 << 20));
  config.shared_bytes = static_cast<uint32_t>(groups * static_cast<int64_t>(sizeof(uint64_t)));
  config.dependent = true;
  return launch(ctx, config, nms_pick_kernel<kThreads>, batch, groups, count, reinterpret_cast<const uint64_t*>(words), valid, keep);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_NMS_CUH_
