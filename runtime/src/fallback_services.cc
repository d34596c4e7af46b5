/// @file fallback_services.cc
/// @brief Used where the device has no such library: weak definitions, which a device's own replace.
#include "ait/amx_service.h"
#include "ait/attention_service.h"
#include "ait/gemm_service.h"

namespace ait::runtime {

__attribute__((weak)) int32_t library_gemm(const ait_gemm_v1*, void*, std::string* error) {
  *error = "this runtime library was built without a gemm library";
  return 1;
}

__attribute__((weak)) int32_t library_gemm_algorithms(const ait_gemm_v1*, std::vector<ait_gemm_algorithm_v1>*, std::string*) { return 0; }

__attribute__((weak)) int32_t library_attention(const ait_attention_v1*, void*, std::string* error) {
  *error = "this runtime library was built without an attention library";
  return 1;
}

__attribute__((weak)) bool may_use_amx() { return false; }
__attribute__((weak)) bool set_amx(bool) { return false; }

}  // namespace ait::runtime
