/// @file spatial.h
/// @brief Tensors with spatial dims between batch and channels, for host and device.
#ifndef AIT_KERNELS_SPATIAL_H_
#define AIT_KERNELS_SPATIAL_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief A tensor [batch, three spatial dims, channels] with any strides.
template <class T>
struct SpatialTensor {
  T* data;
  int64_t strides[5];

  AIT_FN T* at(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return data + n * strides[0] + d * strides[1] + h * strides[2] + w * strides[3];
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_SPATIAL_H_
