/// @file api.h
/// @brief The functions of the CUDA and of the HIP runtime under one name: `GPU(StreamSynchronize)` is `cudaStreamSynchronize` or
/// `hipStreamSynchronize`. For host code; kernels have `ait/gpu/gpu.h`.
#ifndef AIT_RUNTIME_GPU_API_H_
#define AIT_RUNTIME_GPU_API_H_

#if defined(AIT_HIP)
#include <hip/hip_runtime_api.h>
#define GPU(name) hip##name
#else
#include <cuda_runtime_api.h>
#define GPU(name) cuda##name
#endif

namespace ait::runtime::gpu {

#if defined(AIT_HIP)
inline constexpr bool kIsRocm = true;
inline constexpr const char* kTarget = "rocm";
inline constexpr const char* kPlatform = "ROCm";
inline constexpr const char* kListsCards = "rocminfo";
inline constexpr auto kCacheBytes = hipDeviceAttributeL2CacheSize;
inline constexpr auto kLanes = hipDeviceAttributeWarpSize;
inline constexpr int kLanesNeeded = 64;  ///< kWarpSize of ait/gpu/gpu.h
#else
inline constexpr bool kIsRocm = false;
inline constexpr const char* kTarget = "cuda";
inline constexpr const char* kPlatform = "CUDA";
inline constexpr const char* kListsCards = "nvidia-smi";
inline constexpr auto kCacheBytes = cudaDevAttrL2CacheSize;
inline constexpr auto kLanes = cudaDevAttrWarpSize;
inline constexpr int kLanesNeeded = 32;
#endif

using Error = GPU(Error_t);
using Stream = GPU(Stream_t);

inline constexpr Error kSuccess = GPU(Success);

}  // namespace ait::runtime::gpu

#endif  // AIT_RUNTIME_GPU_API_H_
