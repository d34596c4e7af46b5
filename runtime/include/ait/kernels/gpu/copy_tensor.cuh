/// @file copy_tensor.cuh
/// @brief The copy between a caller's tensor and memory in the order that kernels expect, with shape and strides from a table.
#ifndef AIT_KERNELS_GPU_COPY_TENSOR_CUH_
#define AIT_KERNELS_GPU_COPY_TENSOR_CUH_

#include "ait/kernels/gpu/copy.cuh"

namespace ait::gpu {

/// @brief Copies elements of `kBytes` bytes; `copy.rank` is at most `kMaxCopyRank`.
template <size_t kBytes>
int32_t copy_tensor(const Context& ctx, const ait_copy_v1& copy) {
  using Word = typename UnsignedOf<kBytes>::Type;
  int64_t sizes[kMaxCopyRank], from[kMaxCopyRank] = {}, to[kMaxCopyRank] = {};
  for (int d = 0; d < kMaxCopyRank; ++d) sizes[d] = 1;
  for (int d = 0; d < copy.rank; ++d) sizes[d] = copy.shape[d], from[d] = copy.from_strides[d], to[d] = copy.to_strides[d];
  return gpu::copy(ctx, sizes, static_cast<const Word*>(copy.from), from, static_cast<Word*>(copy.to), to);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_TENSOR_CUH_
