/// @file copy_tensor.cuh
/// @brief The copy between a caller's tensor and memory in the order that kernels expect, with shape and strides from a table.
#ifndef AIT_KERNELS_GPU_COPY_TENSOR_CUH_
#define AIT_KERNELS_GPU_COPY_TENSOR_CUH_

#include "ait/kernels/gpu/copy.cuh"

namespace ait::gpu {

/// @brief Copies elements of `kBytes` bytes, at most `kMost` in one launch; `copy.rank` is at most `kMaxCopyRank`.
template <size_t kBytes, int64_t kMost = (int64_t(1) << 31) - 1>
int32_t copy_tensor(const Context& ctx, const ait_copy_v1& copy) {
  using Word = typename UnsignedOf<kBytes>::Type;
  int64_t sizes[kMaxCopyRank], from[kMaxCopyRank] = {}, to[kMaxCopyRank] = {}, elements = 1;
  for (int d = 0; d < kMaxCopyRank; ++d) sizes[d] = 1;
  for (int d = 0; d < copy.rank; ++d) {
    sizes[d] = copy.shape[d], from[d] = copy.from_strides[d], to[d] = copy.to_strides[d];
    elements *= sizes[d];
  }
  if (elements > kMost) {  // in halves along the longest dim
    int longest = 0;
    for (int d = 1; d < copy.rank; ++d) longest = sizes[d] > sizes[longest] ? d : longest;
    const int64_t half = sizes[longest] / 2, whole = sizes[longest];
    ait_copy_v1 part = copy;
    part.shape = sizes;
    sizes[longest] = half;
    if (const int32_t status = copy_tensor<kBytes, kMost>(ctx, part)) return status;
    sizes[longest] = whole - half;
    part.from = static_cast<const Word*>(copy.from) + half * from[longest];
    part.to = static_cast<Word*>(copy.to) + half * to[longest];
    return copy_tensor<kBytes, kMost>(ctx, part);
  }
  return gpu::copy<true>(ctx, copy_piece(sizes, static_cast<const Word*>(copy.from), from, static_cast<Word*>(copy.to), to));
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_TENSOR_CUH_
