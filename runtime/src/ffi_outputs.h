/// @file ffi_outputs.h
/// @brief Runs that make their outputs: in the allocator of the framework that calls, else in memory of the model's device.
#ifndef AIT_RUNTIME_FFI_OUTPUTS_H_
#define AIT_RUNTIME_FFI_OUTPUTS_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model.h"

namespace ait::runtime {

/// @brief Runs a model on `inputs` and returns the outputs that have a buffer of their own, one or an array of several.
/// @param memory allocates them (`FromNDAlloc`) where no framework has an allocator
template <class Memory>
tvm::ffi::Any run_and_return(Model& model, const Memory& memory, const Tensors& inputs, const RunOptions& options) {
  namespace ffi = tvm::ffi;
  const ait_model_v1& table = model.table();
  const DLDevice device = model.device().dl();
  const bool of_framework = TVMFFIEnvGetDLPackManagedTensorAllocator() != nullptr;
  std::vector<ffi::Tensor> made;
  Tensors outputs;
  outputs.reserve(static_cast<size_t>(table.num_outputs));
  const Shapes room = model.infer(inputs);
  for (int32_t i = 0; i < table.num_outputs; ++i) {
    const ait_tensor_v1& output = table.outputs[i];
    if (output.in_place_of != 0) {
      outputs.push_back(inputs[static_cast<size_t>(output.in_place_of - 1)]);
      continue;
    }
    const auto rank = static_cast<size_t>(output.rank);
    const ffi::ShapeView shape(room.output(i), rank), strides(room.output_strides(i), rank);
    const int64_t elements = table.strides == nullptr ? 0 : extent(room.output(i), room.output_strides(i), output.rank);
    const ffi::ShapeView view = table.strides == nullptr ? shape : ffi::ShapeView(&elements, 1);
    made.push_back(of_framework ? ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, view, dl_dtype(output.dtype), device)
                                : ffi::Tensor::FromNDAlloc(memory, view, dl_dtype(output.dtype), device));
    if (table.strides != nullptr) made.back() = made.back().as_strided(shape, strides);
    outputs.push_back(made.back().GetDLTensorPtr());
  }
  const std::vector<int64_t> shapes = model.run(inputs, outputs, options);
  ffi::Array<ffi::Any> results;
  const int64_t* shape = shapes.data();
  for (int32_t i = 0, next = 0; i < table.num_outputs; shape += table.outputs[i++].rank) {
    if (table.outputs[i].in_place_of != 0) continue;
    ffi::Tensor& tensor = made[static_cast<size_t>(next++)];
    const auto rank = static_cast<size_t>(table.outputs[i].rank);
    if (!std::equal(shape, shape + rank, tensor.shape().begin())) {  // a dim that the run has bound is below its bound
      std::vector<int64_t> strides(rank, 1);
      for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * shape[d];
      tensor = tensor.as_strided(ffi::ShapeView(shape, rank), ffi::ShapeView(strides.data(), rank));
    }
    if (made.size() == 1) return tensor;
    results.push_back(tensor);
  }
  return results;
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_FFI_OUTPUTS_H_
