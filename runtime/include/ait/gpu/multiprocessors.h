/// @file multiprocessors.h
/// @brief How many multiprocessors a card has, for either target; gpu.h says it for CUDA.
#ifndef AIT_GPU_MULTIPROCESSORS_H_
#define AIT_GPU_MULTIPROCESSORS_H_

#include "ait/gpu/gpu.h"

#if defined(AIT_GPU) && defined(AIT_HIP)
namespace ait::gpu {

/// @brief How many multiprocessors the current device has; 0 on an error.
inline int multiprocessors() {
  int device = 0, count = 0;
  if (hipGetDevice(&device) != kSuccess) return 0;
  return hipDeviceGetAttribute(&count, hipDeviceAttributeMultiprocessorCount, device) == kSuccess ? count : 0;
}

}  // namespace ait::gpu
#endif  // AIT_GPU && AIT_HIP
#endif  // AIT_GPU_MULTIPROCESSORS_H_
