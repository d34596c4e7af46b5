/// @file no_kernel_libraries.cc
/// @brief Functions of kernel libraries are called through tvm-ffi, which the library for C and C++ programs does without.
#include "environment.h"
#include "kernel_libraries.h"

namespace ait::runtime {
namespace {

constexpr const char* kReason = "it calls functions of kernel libraries, which the library for C and C++ programs does not have";

int32_t call(const ait_host_v1* host, const ait_ffi_call_v1*, void*) { return host->fail(host->self, kReason); }

}  // namespace

const ait_ffi_service_v1 kFfiService{call};

const void* find_callee(const std::string&, std::string* error) {
  *error = kReason;
  return nullptr;
}

}  // namespace ait::runtime
