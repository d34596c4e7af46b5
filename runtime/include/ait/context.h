/// @file context.h
/// @brief What a kernel function knows about the run it belongs to.
#ifndef AIT_CONTEXT_H_
#define AIT_CONTEXT_H_

#include "ait/model_abi.h"

namespace ait {

/// @brief The stream to launch on and the services of the runtime library. A status of 0 means success.
struct Context {
  void* stream;                      ///< cudaStream_t or hipStream_t; null on the CPU
  const ait_services_v1* services;

  /// @brief Keeps `message` as the reason of the failure; returns a non-zero status to pass on.
  int32_t fail(const char* message) const { return services->fail(services->self, message); }

  /// @brief Runs a library gemm on the stream of this run.
  int32_t gemm(const ait_gemm_v1& args) const { return services->gemm(services->self, &args, stream); }

  /// @brief Runs a library attention on the stream of this run.
  int32_t attention(const ait_attention_v1& args) const {
    if (services->version < 2) return fail("the runtime library is older than this model: it offers no attention; update ait_mlir");
    return services->attention(services->self, &args, stream);
  }

  /// @brief Whether the processor has AMX for bf16, and this process may use it.
  bool may_use_amx() const { return services->version >= 3 && services->amx != 0; }
};

}  // namespace ait

#endif  // AIT_CONTEXT_H_
