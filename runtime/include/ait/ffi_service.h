/// @file ffi_service.h
/// @brief The service "ffi": calls of functions of kernel libraries on tvm-ffi, which a model uses beside its own kernels.
///
/// A `Callee` names one function. It is on the list of services that the model library needs, so the runtime library looks it up when it
/// loads the model, and refuses the model if there is no such function.
#ifndef AIT_FFI_SERVICE_H_
#define AIT_FFI_SERVICE_H_

#include <stdint.h>

#include "ait/service.h"

typedef enum ait_ffi_kind {
  AIT_FFI_NONE = 0,
  AIT_FFI_TENSOR = 1,
  AIT_FFI_INT = 2,
  AIT_FFI_FLOAT = 3,
  AIT_FFI_BOOL = 4,
  AIT_FFI_STRING = 5
} ait_ffi_kind;

/// One argument of a call.
typedef struct ait_ffi_value_v1 {
  int32_t kind;            ///< ait_ffi_kind
  int64_t integer;         ///< of an integer or a boolean
  double number;           ///< of a float
  const char* text;        ///< of a string, UTF-8
  void* data;              ///< of a tensor, on the device of the run
  uint8_t type_code;       ///< of a tensor, DLPack's
  uint8_t type_bits;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;  ///< in elements
} ait_ffi_value_v1;

typedef struct ait_ffi_call_v1 {
  const void* callee;  ///< what the runtime library found for the `Callee`
  const ait_ffi_value_v1* values;
  int32_t num_values;
} ait_ffi_call_v1;

struct ait_ffi_service_v1 {
  static constexpr const char* kName = "ffi";
  static constexpr int32_t kVersion = 1;
  /// Calls a function. While it runs, `TVMFFIEnvGetStream` of the device of the run is `stream`.
  int32_t (*call)(const ait_host_v1* host, const ait_ffi_call_v1* args, void* stream);
};

namespace ait {

/// @brief A function of a kernel library that this model library calls. One object for each, at namespace scope.
class Callee {
 public:
  /// @param name "kernel_library:SHA256:LIBRARY:FUNCTION"; without a library both are empty
  explicit Callee(const char* name) : entry_{name, 1, nullptr, detail::first_service} { detail::first_service = &entry_; }
  Callee(const Callee&) = delete;
  Callee& operator=(const Callee&) = delete;

  const void* found() const { return entry_.table; }

 private:
  ait_service_v1 entry_;
};

inline ait_ffi_value_v1 ffi_none() { return {}; }

inline ait_ffi_value_v1 ffi_int(int64_t value) {
  ait_ffi_value_v1 result{};
  result.kind = AIT_FFI_INT;
  result.integer = value;
  return result;
}

inline ait_ffi_value_v1 ffi_bool(bool value) {
  ait_ffi_value_v1 result = ffi_int(value);
  result.kind = AIT_FFI_BOOL;
  return result;
}

inline ait_ffi_value_v1 ffi_float(double value) {
  ait_ffi_value_v1 result{};
  result.kind = AIT_FFI_FLOAT;
  result.number = value;
  return result;
}

inline ait_ffi_value_v1 ffi_string(const char* value) {
  ait_ffi_value_v1 result{};
  result.kind = AIT_FFI_STRING;
  result.text = value;
  return result;
}

/// @brief A tensor. `shape` and `strides` must live until the call returns; both may be null for rank 0.
inline ait_ffi_value_v1 ffi_tensor(const void* data, uint8_t code, uint8_t bits, int32_t rank, const int64_t* shape, const int64_t* strides) {
  ait_ffi_value_v1 result{};
  result.kind = AIT_FFI_TENSOR;
  result.data = const_cast<void*>(data);
  result.type_code = code;
  result.type_bits = bits;
  result.rank = rank;
  result.shape = shape;
  result.strides = strides;
  return result;
}

/// @brief Calls a function of a kernel library on the stream of this run.
template <int N>
int32_t call_ffi(const Context& ctx, const Callee& callee, const ait_ffi_value_v1 (&values)[N]) {
  return call_service(ctx, &ait_ffi_service_v1::call, ait_ffi_call_v1{callee.found(), values, N});
}

}  // namespace ait

#endif  // AIT_FFI_SERVICE_H_
