/// @file kernel_libraries.h
/// @brief The kernel libraries that models of this process may call: files by their SHA-256.
#ifndef AIT_RUNTIME_KERNEL_LIBRARIES_H_
#define AIT_RUNTIME_KERNEL_LIBRARIES_H_

#include <string>

#include "ait/ffi_service.h"

namespace ait::runtime {

/// @brief Says where the file of a library is. Its hash is checked already. Called before a model that needs it is loaded.
void add_kernel_library(const std::string& sha256, const std::string& path);

/// @brief Loads a library now, so that its file may go afterwards. Throws tvm-ffi's error if that fails.
void load_kernel_library(const std::string& sha256, const std::string& path);

/// @brief The function of a `Callee` by its name, or null with the reason in `error`. Loads the library when it is needed first; what was
/// found lives as long as the process.
const void* find_callee(const std::string& name, std::string* error);

extern const ait_ffi_service_v1 kFfiService;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_KERNEL_LIBRARIES_H_
