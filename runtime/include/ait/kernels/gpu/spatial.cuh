/// @file spatial.cuh
/// @brief Accesses of several channels at once.
#ifndef AIT_KERNELS_GPU_SPATIAL_CUH_
#define AIT_KERNELS_GPU_SPATIAL_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/spatial.h"

namespace ait::gpu {

namespace detail {
/// The widest access of a type, in elements.
template <class T>
inline constexpr int kChannelVector = sizeof(T) < 2 ? 8 : static_cast<int>(16 / sizeof(T));

/// Whether `kVec` channels can be read or written at once.
template <int kVec, class T>
bool channel_vectors(const SpatialTensor<T>& tensor) {
  bool aligned = tensor.strides[4] == 1 && reinterpret_cast<uintptr_t>(tensor.data) % kAccessBytes<T, kVec> == 0;
  for (int d = 0; d < 4; ++d) aligned = aligned && tensor.strides[d] % kVec == 0;
  return aligned;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SPATIAL_CUH_
