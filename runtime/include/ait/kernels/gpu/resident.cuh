/// @file resident.cuh
/// @brief How many clusters of a kernel run at once (sm_90 and later).
#ifndef AIT_KERNELS_GPU_RESIDENT_CUH_
#define AIT_KERNELS_GPU_RESIDENT_CUH_

#include "ait/gpu/launch.h"

#if defined(AIT_CUDA)
namespace ait::gpu::detail {

/// How many clusters of `config` of this kernel the current device runs at once; 0 where it does not say.
template <class... Params>
int resident_clusters(const LaunchConfig& config, void (*kernel)(Params...)) {
  const int most = multiprocessors() / static_cast<int>(config.cluster);
  if (config.cluster == 1 || most == 0) return most;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = config.cluster, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch_config = {};
  launch_config.gridDim = dim3(config.cluster), launch_config.blockDim = config.block, launch_config.dynamicSmemBytes = config.shared_bytes;
  launch_config.attrs = &attribute, launch_config.numAttrs = 1;
  int count = 0;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(config.shared_bytes)) != kSuccess ||
      cudaOccupancyMaxActiveClusters(&count, function, &launch_config) != kSuccess) {
    (void)take_error();
    return 0;
  }
  return count < most ? count : most;
}

}  // namespace ait::gpu::detail
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_RESIDENT_CUH_
