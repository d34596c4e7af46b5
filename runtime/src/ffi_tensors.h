/// @file ffi_tensors.h
/// @brief Arguments of tvm-ffi as the runtime library takes them: tensors, shapes, strings.
#ifndef AIT_RUNTIME_FFI_TENSORS_H_
#define AIT_RUNTIME_FFI_TENSORS_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <string>
#include <vector>

#include "model.h"

namespace ait::runtime {

/// @brief Tensors of a call, from tensor arguments or from addresses of DLTensor structures that the caller keeps alive.
class TensorArguments {
 public:
  TensorArguments(const tvm::ffi::PackedArgs& args, int begin, int end) {
    tensors_.reserve(static_cast<size_t>(end - begin));
    for (int i = begin; i < end; ++i) {
      const bool is_address = args[i].type_index() == TVMFFITypeIndex::kTVMFFIOpaquePtr;
      tensors_.push_back(is_address ? static_cast<const DLTensor*>(args[i].cast<void*>()) : args[i].cast<DLTensor*>());
    }
  }
  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

inline tvm::ffi::Shape to_shape(const std::vector<int64_t>& values) { return tvm::ffi::Shape(values.begin(), values.end()); }

inline std::vector<int64_t> to_vector(const tvm::ffi::Shape& shape) { return {shape.begin(), shape.end()}; }

inline std::vector<std::string> to_strings(const tvm::ffi::Array<tvm::ffi::String>& list) {
  std::vector<std::string> strings;
  for (const tvm::ffi::String& text : list) strings.emplace_back(text);
  return strings;
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_FFI_TENSORS_H_
