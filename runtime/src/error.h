/// @file error.h
/// @brief The exception of the runtime library. Its kind decides the Python class: see `ait_mlir/errors.py`.
#ifndef AIT_RUNTIME_ERROR_H_
#define AIT_RUNTIME_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace ait::runtime {

enum class ErrorKind {
  kInput,     ///< a tensor, dim or name that the caller gave is wrong; nothing was launched
  kArtifact,  ///< the model library cannot be loaded or is not for this runtime
  kMemory,    ///< not enough memory
  kRun,       ///< the model or the device failed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// @brief Throws an Error whose message is all `parts`, streamed one after another.
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_ERROR_H_
