/// @file context.h
/// @brief The run that a kernel function belongs to, as the function sees it.
#ifndef AIT_CONTEXT_H_
#define AIT_CONTEXT_H_

#include "ait/model_abi.h"

namespace ait {

/// @brief The stream to launch on, and where to report a failure. A status of 0 means success.
struct Context {
  void* stream;             ///< cudaStream_t or hipStream_t; null on the CPU
  const ait_host_v1* host;

  /// @brief Keeps `message` as the reason of the failure; returns a non-zero status to pass on.
  int32_t fail(const char* message) const { return host->fail(host->self, message); }
};

}  // namespace ait

#endif  // AIT_CONTEXT_H_
