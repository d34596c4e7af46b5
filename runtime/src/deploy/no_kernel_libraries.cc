/// @file no_kernel_libraries.cc
/// @brief This library has no tvm-ffi, so models that call kernel libraries are refused when they are loaded.
#include "kernel_libraries.h"

namespace ait::runtime {
namespace {

int32_t call(const ait_host_v1* host, const ait_ffi_call_v1*, void*) {
  return host->fail(host->self, "this library has no tvm-ffi, so it calls no kernel libraries");
}

}  // namespace

const ait_ffi_service_v1 kFfiService{call};

void add_kernel_library(const std::string&, const std::string&) {}

const void* find_callee(const std::string& name, std::string* error) {
  *error = "it calls '" + name.substr(name.rfind(':') + 1) +
           "' of a kernel library, for which this library has no tvm-ffi: run the model in Python";
  return nullptr;
}

}  // namespace ait::runtime
