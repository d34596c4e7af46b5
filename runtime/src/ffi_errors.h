/// @file ffi_errors.h
/// @brief Errors of the runtime library as errors of tvm-ffi.
#ifndef AIT_RUNTIME_FFI_ERRORS_H_
#define AIT_RUNTIME_FFI_ERRORS_H_

#include <tvm/ffi/error.h>

#include <new>

#include "error.h"

namespace ait::runtime {

/// @brief The names under which a caller knows the classes of errors.
struct ErrorNames {
  const char *input, *artifact, *memory, *run;
};

/// @brief The classes of `ait_mlir/errors.py`.
inline constexpr ErrorNames kOwnErrors{"ait.InputError", "ait.ArtifactError", "ait.OutOfMemoryError", "ait.RunError"};
/// @brief Classes of Python, for callers without ait_mlir.
inline constexpr ErrorNames kPlainErrors{"ValueError", "RuntimeError", "MemoryError", "RuntimeError"};

/// @brief Runs `body`; an Error that it throws becomes one of tvm-ffi.
template <class Body>
auto guarded(Body&& body, const ErrorNames& names = kOwnErrors) -> decltype(body()) {
  const auto rethrow = [&names](ErrorKind kind, const char* message) {
    const char* name = names.run;
    if (kind == ErrorKind::kInput) name = names.input;
    if (kind == ErrorKind::kArtifact) name = names.artifact;
    if (kind == ErrorKind::kMemory) name = names.memory;
    throw tvm::ffi::Error(name, message, "");
  };
  try {
    return body();
  } catch (const Error& error) {
    rethrow(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    rethrow(ErrorKind::kMemory, "out of host memory");
  }
  TVM_FFI_UNREACHABLE();
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_FFI_ERRORS_H_
