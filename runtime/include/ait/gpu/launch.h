/// @file launch.h
/// @brief The one way in which generated code launches a kernel.
#ifndef AIT_GPU_LAUNCH_H_
#define AIT_GPU_LAUNCH_H_

#include <stdint.h>
#include <stdio.h>

#include <type_traits>

#include "ait/context.h"
#include "ait/gpu/gpu.h"

namespace ait::gpu {

/// @brief Grid, block and attributes of a launch.
struct LaunchConfig {
  dim3 grid;
  dim3 block;
  uint32_t shared_bytes = 0;  ///< dynamic shared memory; above 48 KiB the kernel's limit is raised
  uint32_t cluster = 1;       ///< blocks per cluster along x (CUDA, sm_90 and later)
  /// Programmatic dependent launch (CUDA, sm_90 and later): blocks may start before the launches before have ended, so the kernel must
  /// call `wait_for_previous()` before it reads or writes what others do. Ignored elsewhere.
  bool dependent = false;
};

/// Blocks of a cluster that every card with clusters has room for; a kernel must allow more, up to 16.
inline constexpr uint32_t kPortableCluster = 8;

/// @brief The extent of a grid, for `LaunchConfig::grid`. One that is too large for its type stays too large, so that `launch` refuses it.
inline uint32_t grid_size(int64_t blocks) {
  return blocks < 0 || blocks > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(blocks);
}

/// @brief Keeps "`what`: text of `error`" as the reason of the failure and clears the error of this thread.
inline int32_t fail(const Context& ctx, const char* what, Error error) {
  char message[512];
  snprintf(message, sizeof message, "%s: %s", what, error_text(error));
  (void)take_error();
  return ctx.fail(message);
}

/// @brief Launches `kernel(args...)` on the stream of `ctx`. Nothing is launched for an empty grid.
/// @return 0, or the status of `ctx.fail` with the reason.
template <class... Params, class... Args>
int32_t launch(const Context& ctx, const LaunchConfig& config, void (*kernel)(Params...), Args... args) {
  static_assert(sizeof...(Params) == sizeof...(Args), "a launch needs one argument for each parameter of the kernel");
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return 0;
  if (config.grid.x > INT32_MAX || config.grid.y > 65535 || config.grid.z > 65535) {
    return ctx.fail("a tensor is too large for one launch, which has at most 2^31 - 1 blocks along x and 65535 along y and z: pass smaller tensors");
  }
  // A block gets 48 KiB of shared memory unless it asks for more. Up to 32 KiB of these are left for the kernel's static shared memory.
  constexpr uint32_t kDefaultShared = 16 * 1024;
#if defined(AIT_HIP)
  if (config.shared_bytes > kDefaultShared) {
    const Error error = hipFuncSetAttribute(reinterpret_cast<const void*>(kernel), hipFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(config.shared_bytes));
    if (error != kSuccess) return fail(ctx, "raising the shared memory of a kernel", error);
  }
  hipLaunchKernelGGL(kernel, config.grid, config.block, config.shared_bytes, static_cast<Stream>(ctx.stream), static_cast<Params>(args)...);
  const Error error = take_error();
#else
  if (config.shared_bytes > kDefaultShared) {
    const Error error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(config.shared_bytes));
    if (error != kSuccess) return fail(ctx, "raising the shared memory of a kernel", error);
  }
  cudaLaunchAttribute attributes[2];
  unsigned count = 0;
  if (config.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (config.cluster > kPortableCluster) {
    const Error error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != kSuccess) return fail(ctx, "allowing a cluster of more than 8 blocks", error);
  }
  if (config.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = config.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count++].val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t launch_config = {};
  launch_config.gridDim = config.grid;
  launch_config.blockDim = config.block;
  launch_config.dynamicSmemBytes = config.shared_bytes;
  launch_config.stream = static_cast<Stream>(ctx.stream);
  launch_config.attrs = attributes;
  launch_config.numAttrs = count;
  const Error error = cudaLaunchKernelEx(&launch_config, kernel, static_cast<Params>(args)...);
#endif
  return error == kSuccess ? 0 : fail(ctx, "kernel launch", error);
}

/// @brief Zeroes or fills bytes on the stream of `ctx`.
inline int32_t fill_bytes(const Context& ctx, void* data, int value, size_t bytes) {
  if (bytes == 0) return 0;
#if defined(AIT_HIP)
  const Error error = hipMemsetAsync(data, value, bytes, static_cast<Stream>(ctx.stream));
#else
  const Error error = cudaMemsetAsync(data, value, bytes, static_cast<Stream>(ctx.stream));
#endif
  return error == kSuccess ? 0 : fail(ctx, "filling memory", error);
}

}  // namespace ait::gpu

#endif  // AIT_GPU_LAUNCH_H_
