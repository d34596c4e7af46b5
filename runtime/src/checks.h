/// @file checks.h
/// @brief Everything that is checked about the tensors of a run before its first launch. All failures are Errors of kind kInput.
#ifndef AIT_RUNTIME_CHECKS_H_
#define AIT_RUNTIME_CHECKS_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device.h"
#include "library.h"

namespace ait::runtime {

using Tensors = std::vector<const DLTensor*>;

/// @brief The first byte of a tensor; null only if it has no elements.
void* data_of(const DLTensor& tensor);

/// @brief DLPack's type for an `ait_dtype`.
DLDataType dl_dtype(int32_t dtype);

/// @brief Whether the elements of a tensor lie in order, without gaps.
bool is_row_major(const DLTensor& tensor);

/// @brief The addresses of a tensor: [begin, end).
struct Span {
  uintptr_t begin, end;
};

/// @brief All addresses between the first and the last element; `bytes` are those of a row-major tensor, which may be less than its shape says.
Span span_of(const DLTensor& tensor, int64_t bytes);

/// @brief Whether an address is not aligned as kernels require for this tensor; a tensor without elements needs no alignment.
bool is_misaligned(const Device& device, const DLTensor& tensor);

/// @brief Whether the elements of a tensor lie at `strides`; those of dims of 1 do not matter.
bool lies_at(const DLTensor& tensor, const int64_t* strides);

/// @brief Checks number, dtype, rank, device, layout and pointer of each input, finds the value of each dim, and checks that every
/// input has the shape that those values ask for. A dim of a stride has its least value where the stride does not fit. Returns the values in
/// the order of the table.
std::vector<int64_t> bind_dims(const ait_model_v1& table, const Device& device, const Tensors& inputs);

/// @brief Checks that each output can hold its shape (its buffer may be larger in any dim) and overlaps no other tensor of the run.
void check_outputs(const ait_model_v1& table, const Device& device, const Shapes& shapes, const Tensors& inputs, const Tensors& outputs);

/// @brief Checks the value of a constant; it may be on the host, on the device of the model or on another one of its kind.
void check_constant(const ait_constant_v1& constant, const Device& device, const DLTensor& value);

/// @brief Checks that a run can read a constant from the memory of `value` itself.
void check_bound_constant(const ait_constant_v1& constant, const Device& device, const DLTensor& value);

/// @brief Checks values that are given for the dims rather than read from inputs, and that no size is too large for them.
void check_dims(const ait_model_v1& table, const std::vector<int64_t>& dims);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CHECKS_H_
