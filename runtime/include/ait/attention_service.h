/// @file attention_service.h
/// @brief The library attention that the runtime library offers to model libraries: `src/cuda/cudnn.cc`.
#ifndef AIT_ATTENTION_SERVICE_H_
#define AIT_ATTENTION_SERVICE_H_

#include <stdint.h>

#include <string>
#include <vector>

#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief Computes `args` on `stream`. Called by several threads at once. The first call for a shape makes a plan, which takes
/// milliseconds and cannot be done while a stream is captured; later calls only launch, and can be captured.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t library_attention(const ait_attention_v1* args, void* stream, std::string* error);

/// @brief Where to look for the library that `library_attention` loads (libcudnn), best first: paths, then plain sonames for the
/// loader. Set by Python before the first model is made.
const std::vector<std::string>& attention_library_candidates();

}  // namespace ait::runtime

#endif  // AIT_ATTENTION_SERVICE_H_
