/// @file read_dim.cuh
/// @brief The value of a dim that a launch has bound, read by the host.
#ifndef AIT_KERNELS_GPU_READ_DIM_CUH_
#define AIT_KERNELS_GPU_READ_DIM_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"

namespace ait::gpu {

/// @brief Waits for the stream and reads `source` into `value`, which holds the most that it may be. Fails for a value that is not
/// between 0 and that, and while the stream is recorded, for what is recorded has no values.
inline int32_t read_dim(const Context& ctx, const int64_t* source, int64_t* value) {
  const Stream stream = static_cast<Stream>(ctx.stream);
  int64_t found = -1;
#if defined(AIT_HIP)
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  Error error = hipStreamIsCapturing(stream, &status);
  if (error == kSuccess && status != hipStreamCaptureStatusNone) return ctx.fail("a dim cannot be read while the stream is recorded");
  if (error == kSuccess) error = hipMemcpyAsync(&found, source, sizeof found, hipMemcpyDeviceToHost, stream);
  if (error == kSuccess) error = hipStreamSynchronize(stream);
#else
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Error error = cudaStreamIsCapturing(stream, &status);
  if (error == kSuccess && status != cudaStreamCaptureStatusNone) return ctx.fail("a dim cannot be read while the stream is recorded");
  if (error == kSuccess) error = cudaMemcpyAsync(&found, source, sizeof found, cudaMemcpyDeviceToHost, stream);
  if (error == kSuccess) error = cudaStreamSynchronize(stream);
#endif
  if (error != kSuccess) return fail(ctx, "reading a dim", error);
  if (found < 0 || found > *value) return ctx.fail("a launch has bound a dim to a value outside of its bounds");
  *value = found;
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_READ_DIM_CUH_
