#include "checks.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "ait/checked.h"
#include "error.h"

namespace ait::runtime {
namespace {

/// "input 'x'", "output 'y'", "constant 'w'": how messages name a tensor.
struct Label {
  const char* role;
  const char* name;
};
std::ostream& operator<<(std::ostream& out, const Label& label) { return out << label.role << " '" << label.name << "'"; }

std::string shape_text(const int64_t* shape, int32_t rank) {
  std::ostringstream out;
  out << "[";
  for (int32_t i = 0; i < rank; ++i) out << (i ? ", " : "") << shape[i];
  out << "]";
  return out.str();
}

/// Elements of a shape; the largest number there is if it does not fit.
int64_t count(const int64_t* shape, int32_t rank) {
  int64_t total = 1;
  bool too_many = false;
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] == 0) return 0;
    too_many |= __builtin_mul_overflow(total, shape[i], &total);
  }
  return too_many ? INT64_MAX : total;
}

std::string dl_dtype_name(DLDataType type) {
  switch (type.code) {
    case kDLFloat8_e4m3fn: return "float8_e4m3fn";
    case kDLFloat8_e4m3fnuz: return "float8_e4m3fnuz";
    case kDLFloat8_e5m2: return "float8_e5m2";
    case kDLFloat8_e5m2fnuz: return "float8_e5m2fnuz";
    case kDLFloat8_e8m0fnu: return "float8_e8m0fnu";
    default: break;
  }
  const char* base = type.code == kDLFloat ? "float" : type.code == kDLBfloat ? "bfloat" : type.code == kDLInt ? "int"
                     : type.code == kDLUInt ? "uint" : type.code == kDLComplex ? "complex" : type.code == kDLBool ? "bool" : "type";
  if (type.code == kDLBool && type.bits == 8) return base;
  return base + std::to_string(type.bits) + (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

std::string dl_device_name(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU: return "cpu";
    case kDLCUDA: return "cuda:" + std::to_string(device.device_id);
    case kDLROCM: return "rocm:" + std::to_string(device.device_id);
    default: return "device type " + std::to_string(device.device_type) + ":" + std::to_string(device.device_id);
  }
}

bool same_device(DLDevice a, DLDevice b) { return a.device_type == b.device_type && a.device_id == b.device_id; }

bool on_host(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost;
}

void check_dtype(const Label& label, int32_t dtype, const DLTensor& tensor) {
  const DLDataType expected = dl_dtype(dtype), found = tensor.dtype;
  if (found.code != expected.code || found.bits != expected.bits || found.lanes != expected.lanes) {
    fail(ErrorKind::kInput, label, " has dtype ", dl_dtype_name(found), ", expected ", dtype_name(dtype));
  }
}

void check_rank(const Label& label, int32_t rank, const DLTensor& tensor) {
  if (tensor.ndim != rank) {
    fail(ErrorKind::kInput, label, " has rank ", tensor.ndim, " (shape ", shape_text(tensor.shape, tensor.ndim), "), expected rank ", rank);
  }
  for (int32_t i = 0; i < rank; ++i) {
    if (tensor.shape[i] < 0) fail(ErrorKind::kInput, label, " has a negative extent: shape ", shape_text(tensor.shape, tensor.ndim));
  }
}

/// Refuses a tensor that is larger, or reaches farther, than addresses do.
void check_reach(const Label& label, const DLTensor& tensor) {
  Checked elements = 1, low = 0, high = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t extent = tensor.shape[i], stride = tensor.strides == nullptr ? 0 : tensor.strides[i];
    elements = elements * max(extent, 1);
    if (extent > 1 || !Checked(stride).fits()) (stride < 0 ? low : high) = (stride < 0 ? low : high) + Checked(stride) * (extent - 1);
  }
  const int64_t element = (tensor.dtype.bits + 7) / 8;
  if ((elements * element).fits() && ((high - low) * element).fits()) return;
  fail(ErrorKind::kInput, label, " has shape ", shape_text(tensor.shape, tensor.ndim),
       tensor.strides == nullptr ? "" : " and strides " + shape_text(tensor.strides, tensor.ndim), ", more than 2^62 bytes: pass a smaller tensor");
}

void check_layout(const Label& label, const DLTensor& tensor) {
  if (is_row_major(tensor)) return;
  fail(ErrorKind::kInput, label, " has strides ", shape_text(tensor.strides, tensor.ndim), " for shape ", shape_text(tensor.shape, tensor.ndim),
       ", expected contiguous row-major data: pass a contiguous copy");
}

/// Bytes to whose multiples the address of a tensor is aligned that kernels read.
size_t alignment_of(const Device& device, const DLTensor& tensor) {
  return std::max(device.tensor_alignment(), static_cast<size_t>(tensor.dtype.bits + 7) / 8);
}

/// Refuses a tensor to be written of which two elements may be at one address.
void check_distinct(const Label& label, const DLTensor& tensor) {
  if (is_row_major(tensor)) return;
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride and extent
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] > 1) axes.emplace_back(std::abs(tensor.strides[i]), tensor.shape[i]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t room = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride < room) {
      fail(ErrorKind::kInput, label, " has strides ", shape_text(tensor.strides, tensor.ndim), " for shape ",
           shape_text(tensor.shape, tensor.ndim), ", so elements share memory: pass a buffer in which each has its own");
    }
    room = stride * (extent - 1) + room;
  }
}

/// Refuses a null pointer, unless no element of the `shape` that is read or written exists.
void check_pointer(const Label& label, const DLTensor& tensor, const int64_t* shape) {
  if (count(shape, tensor.ndim) == 0) return;
  if (tensor.data == nullptr) {
    fail(ErrorKind::kInput, label, " is a null pointer, expected data of shape ", shape_text(tensor.shape, tensor.ndim));
  }
}

void check_tensor(const Label& label, const ait_tensor_v1& expected, const Device& device, const DLTensor& tensor) {
  check_dtype(label, expected.dtype, tensor);
  check_rank(label, expected.rank, tensor);
  if (!same_device(tensor.device, device.dl()) && !(on_host(tensor.device) && device.dl().device_type == kDLCPU)) {
    fail(ErrorKind::kInput, label, " is on ", dl_device_name(tensor.device), ", expected ", device.name(), ": move it there");
  }
}

void check_count(const char* role, int32_t expected, size_t found) {
  if (found != static_cast<size_t>(expected)) {
    fail(ErrorKind::kInput, "the model has ", expected, " ", role, expected == 1 ? "" : "s", ", but ", found, found == 1 ? " was" : " were",
         " given");
  }
}

/// "batch = 8 (input 'x', axis 0), seq = 128 (input 'ids', axis 1)": where the values came from.
std::string dims_text(const ait_model_v1& table, const std::vector<int64_t>& dims) {
  std::ostringstream out;
  for (int32_t i = 0; i < table.num_dims; ++i) {
    const ait_dim_v1& dim = table.dims[i];
    out << (i ? ", " : "") << dim.name << " = " << dims[static_cast<size_t>(i)];
    if (dim.input < 0) continue;
    const int32_t rank = table.inputs[dim.input].rank, axis = dim.axis % rank;
    out << " (input '" << table.inputs[dim.input].name << "', " << (dim.axis < rank ? "axis " : "stride of axis ") << axis << ")";
  }
  return out.str();
}

/// Refuses dims for which a size is too large to be computed.
void check_sizes(const ait_model_v1& table, const std::vector<int64_t>& dims) {
  const char* const what = table.too_large == nullptr ? nullptr : table.too_large(dims.data());
  if (what != nullptr) fail(ErrorKind::kInput, what, " needs more than 2^62 bytes for ", dims_text(table, dims), ": pass smaller tensors");
}

int64_t stride_of(const DLTensor& tensor, int32_t axis) {
  if (tensor.strides != nullptr) return tensor.strides[axis];
  return count(tensor.shape + axis + 1, tensor.ndim - axis - 1);
}

/// Whether two tensors may share memory. A row-major one has `bytes` of it.
bool overlap(const DLTensor& a, int64_t a_bytes, const DLTensor& b, int64_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const Span x = span_of(a, a_bytes), y = span_of(b, b_bytes);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace

DLDataType dl_dtype(int32_t dtype) {
  const auto bits = static_cast<uint8_t>(8 * dtype_bytes(dtype));
  switch (dtype) {
    case AIT_BF16: return {kDLBfloat, bits, 1};
    case AIT_BOOL: return {kDLBool, bits, 1};
    case AIT_I8: case AIT_I16: case AIT_I32: case AIT_I64: return {kDLInt, bits, 1};
    case AIT_UI8: return {kDLUInt, bits, 1};
    case AIT_I4: return {kDLInt, bits, 1};
    case AIT_UI4: return {kDLUInt, bits, 1};
    case AIT_F8E4M3FN: return {kDLFloat8_e4m3fn, bits, 1};
    case AIT_F8E5M2: return {kDLFloat8_e5m2, bits, 1};
    case AIT_F8E8M0FNU: return {kDLFloat8_e8m0fnu, bits, 1};
    default: return {kDLFloat, bits, 1};
  }
}

void* data_of(const DLTensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
}

bool is_row_major(const DLTensor& tensor) {
  if (tensor.strides == nullptr || count(tensor.shape, tensor.ndim) == 0) return true;
  return are_packed(tensor.shape, tensor.strides, tensor.ndim);
}

Span span_of(const DLTensor& tensor, int64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data_of(tensor));
  if (is_row_major(tensor)) return {begin, begin + static_cast<uintptr_t>(bytes)};
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t reach = tensor.strides[i] * (tensor.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const int64_t element = (tensor.dtype.bits + 7) / 8;
  return {begin + static_cast<uintptr_t>(low * element), begin + static_cast<uintptr_t>((high + 1) * element)};
}

bool is_misaligned(const Device& device, const DLTensor& tensor) {
  if (count(tensor.shape, tensor.ndim) == 0) return false;
  return reinterpret_cast<uintptr_t>(data_of(tensor)) % alignment_of(device, tensor) != 0;
}

bool lies_at(const DLTensor& tensor, const int64_t* strides) {
  if (count(tensor.shape, tensor.ndim) == 0) return true;
  if (tensor.strides == nullptr) return are_packed(tensor.shape, strides, tensor.ndim);
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != strides[i]) return false;
  }
  return true;
}

std::vector<int64_t> bind_dims(const ait_model_v1& table, const Device& device, const Tensors& inputs) {
  check_count("input", table.num_inputs, inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Label label{"input", table.inputs[i].name};
    check_tensor(label, table.inputs[i], device, *inputs[i]);
    check_pointer(label, *inputs[i], inputs[i]->shape);
    check_reach(label, *inputs[i]);
  }

  std::vector<int64_t> dims(static_cast<size_t>(table.num_dims));
  for (size_t i = 0; i < dims.size(); ++i) {
    const ait_dim_v1& dim = table.dims[i];
    if (dim.input < 0) {
      dims[i] = dim.input == AIT_GIVEN ? dim.add : dim.lo;
      continue;
    }
    const Label label{"input", table.inputs[dim.input].name};
    const DLTensor& tensor = *inputs[static_cast<size_t>(dim.input)];
    if (dim.axis >= tensor.ndim) {
      const int64_t distance = stride_of(tensor, dim.axis - tensor.ndim) - dim.add;
      const bool fits = distance % dim.mul == 0 && distance / dim.mul >= dim.lo && distance / dim.mul <= dim.hi;
      dims[i] = fits ? distance / dim.mul : dim.lo;
      continue;
    }
    const int64_t extent = tensor.shape[dim.axis];
    if ((extent - dim.add) % dim.mul != 0) {
      fail(ErrorKind::kInput, label, " has extent ", extent, " on axis ", dim.axis, ", expected ", dim.mul, " * ", dim.name, " + ", dim.add,
           " for a whole ", dim.name);
    }
    dims[i] = (extent - dim.add) / dim.mul;
    if (dims[i] < dim.lo || dims[i] > dim.hi) {
      fail(ErrorKind::kInput, label, " has extent ", extent, " on axis ", dim.axis, ", so ", dim.name, " = ", dims[i],
           ", expected a value from ", dim.lo, " to ", dim.hi);
    }
  }
  if (table.bounds != nullptr) table.bounds(dims.data());
  check_sizes(table, dims);

  const Shapes shapes(table, dims.data());
  for (int32_t i = 0; i < table.num_inputs; ++i) {
    const int64_t* expected = shapes.input(i);
    const DLTensor& tensor = *inputs[static_cast<size_t>(i)];
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
      if (tensor.shape[axis] == expected[axis]) continue;
      const std::string where = dims_text(table, dims);
      fail(ErrorKind::kInput, "input '", table.inputs[i].name, "' has shape ", shape_text(tensor.shape, tensor.ndim), ", expected ",
           shape_text(expected, tensor.ndim), ": axis ", axis, " is ", tensor.shape[axis], ", not ", expected[axis],
           where.empty() ? "" : "; with " + where);
    }
  }
  return dims;
}

void check_outputs(const ait_model_v1& table, const Device& device, const Shapes& shapes, const Tensors& inputs, const Tensors& outputs) {
  check_count("output", table.num_outputs, outputs.size());
  std::vector<int64_t> bytes(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Label label{"output", table.outputs[i].name};
    const DLTensor& tensor = *outputs[i];
    const int64_t* needed = shapes.output(static_cast<int>(i));
    check_tensor(label, table.outputs[i], device, tensor);
    check_pointer(label, tensor, needed);
    check_reach(label, tensor);
    check_distinct(label, tensor);
    const int32_t own = table.outputs[i].in_place_of - 1;
    if (own >= 0 && (data_of(tensor) != data_of(*inputs[static_cast<size_t>(own)]) ||
                     is_row_major(tensor) != is_row_major(*inputs[static_cast<size_t>(own)]))) {
      fail(ErrorKind::kInput, label, " takes the place of input '", table.inputs[own].name, "', but is at another address, or has other strides: pass the same tensor");
    }
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
      if (tensor.shape[axis] < needed[axis]) {
        const bool smaller = count(tensor.shape, tensor.ndim) < count(needed, tensor.ndim);
        fail(ErrorKind::kInput, label, " has shape ", shape_text(tensor.shape, tensor.ndim),
             smaller ? ", too small for the result of shape " : ", expected that of the result, or more in each dim: ",
             shape_text(needed, tensor.ndim));
      }
    }
    bytes[i] = count(needed, tensor.ndim) * dtype_bytes(table.outputs[i].dtype);
    for (int32_t j = 0; j < table.num_inputs; ++j) {
      const DLTensor& input = *inputs[static_cast<size_t>(j)];
      if (j == own) continue;
      if (overlap(tensor, bytes[i], input, count(input.shape, input.ndim) * dtype_bytes(table.inputs[j].dtype))) {
        if (own >= 0) {
          fail(ErrorKind::kInput, "input '", table.inputs[own].name, "' is donated, but overlaps the memory of input '", table.inputs[j].name,
               "': pass a copy of one of them");
        }
        fail(ErrorKind::kInput, label, " overlaps the memory of input '", table.inputs[j].name, "': pass a buffer of its own");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (overlap(tensor, bytes[i], *outputs[j], bytes[j])) {
        fail(ErrorKind::kInput, label, " overlaps the memory of output '", table.outputs[j].name, "': pass a buffer of its own");
      }
    }
  }
}

void check_constant(const ait_constant_v1& constant, const Device& device, const DLTensor& value) {
  const Label label{"constant", constant.name};
  check_dtype(label, constant.dtype, value);
  const bool same_shape = value.ndim == constant.rank && std::equal(value.shape, value.shape + value.ndim, constant.shape);
  if (!same_shape) {
    fail(ErrorKind::kInput, label, " has shape ", shape_text(value.shape, value.ndim), ", expected ",
         shape_text(constant.shape, constant.rank));
  }
  if (!on_host(value.device) && value.device.device_type != device.dl().device_type) {
    fail(ErrorKind::kInput, label, " is on ", dl_device_name(value.device), ", expected cpu or ", device.name());
  }
  check_layout(label, value);
  if (value.data == nullptr && constant.bytes != 0) {
    fail(ErrorKind::kInput, label, " is a null pointer, expected data of shape ", shape_text(constant.shape, constant.rank));
  }
}

void check_bound_constant(const ait_constant_v1& constant, const Device& device, const DLTensor& value) {
  const Label label{"constant", constant.name};
  if (constant.can_be_bound == 0) {
    fail(ErrorKind::kInput, label, " is stored in another order, or together with others, so it cannot be read from memory of yours: set it with a copy");
  }
  if (!same_device(value.device, device.dl()) && !(on_host(value.device) && device.dl().device_type == kDLCPU)) {
    fail(ErrorKind::kInput, label, " is on ", dl_device_name(value.device), ", expected ", device.name(), " where no copy is made");
  }
  check_pointer(label, value, value.shape);
  if (!is_row_major(value) || is_misaligned(device, value)) {
    fail(ErrorKind::kInput, label, " is at an address that is not a multiple of ", alignment_of(device, value), " bytes: set it with a copy");
  }
}

void check_dims(const ait_model_v1& table, const std::vector<int64_t>& dims) {
  check_count("dim", table.num_dims, dims.size());
  for (int32_t i = 0; i < table.num_dims; ++i) {
    const ait_dim_v1& dim = table.dims[i];
    const int64_t value = dims[static_cast<size_t>(i)];
    if (value < dim.lo || value > dim.hi) {
      fail(ErrorKind::kInput, "dim ", dim.name, " = ", value, ", expected a value from ", dim.lo, " to ", dim.hi);
    }
  }
  check_sizes(table, dims);
}

}  // namespace ait::runtime
