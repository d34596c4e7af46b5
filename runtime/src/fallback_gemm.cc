/// @file fallback_gemm.cc
/// @brief Used where the device has no library gemm: a weak definition, which a device's own replaces.
#include "ait/gemm_service.h"

namespace ait::runtime {

__attribute__((weak)) int32_t library_gemm(const ait_gemm_v1*, void*, std::string* error) {
  *error = "this runtime library was built without a gemm library";
  return 1;
}

}  // namespace ait::runtime
