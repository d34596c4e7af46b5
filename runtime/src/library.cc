#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sstream>

#include "ait/checked.h"
#include "device.h"
#include "error.h"
#include "services.h"

namespace ait::runtime {
namespace {

struct DtypeInfo {
  const char* name;
  int64_t bytes;
};

constexpr DtypeInfo kDtypes[] = {{"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
                                 {"bool", 1},    {"int8", 1},     {"int32", 4},   {"int64", 8},
                                 {"uint8", 1},   {"int16", 2},    {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
                                 {"float8_e8m0fnu", 1}, {"int4", 1}, {"uint4", 1}};
static_assert(std::size(kDtypes) == AIT_DTYPES);

const DtypeInfo& dtype_info(int32_t dtype) {
  if (dtype < 0 || dtype >= AIT_DTYPES) fail(ErrorKind::kArtifact, "the model library uses the unknown dtype ", dtype);
  return kDtypes[dtype];
}

std::string json_string(const char* text) {
  std::string out = "\"";
  for (const char* c = text; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += *c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += *c;
    }
  }
  return out + '"';
}

void describe_tensors(std::ostream& out, const char* key, const ait_tensor_v1* tensors, int32_t count) {
  out << "\"" << key << "\":[";
  for (int32_t i = 0; i < count; ++i) {
    out << (i ? "," : "") << "{\"name\":" << json_string(tensors[i].name) << ",\"dtype\":\"" << dtype_name(tensors[i].dtype)
        << "\",\"rank\":" << tensors[i].rank << ",\"in_place_of\":" << tensors[i].in_place_of - 1 << "}";
  }
  out << "]";
}

}  // namespace

const char* dtype_name(int32_t dtype) { return dtype_info(dtype).name; }
int64_t dtype_bytes(int32_t dtype) { return dtype_info(dtype).bytes; }

int64_t extent(const int64_t* shape, const int64_t* strides, int32_t rank) {
  int64_t last = 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

bool are_packed(const int64_t* shape, const int64_t* strides, int32_t rank) {
  int64_t step = 1;
  for (int32_t i = rank; i-- > 0; step = (Checked(step) * shape[i]).value()) {
    if (shape[i] != 1 && strides[i] != step) return false;
  }
  return true;
}

Shapes::Shapes(const ait_model_v1& table, const int64_t* dims) : num_inputs_(static_cast<size_t>(table.num_inputs)) {
  size_t total = 0;
  for (int32_t i = 0; i < table.num_inputs; ++i) {
    starts_.push_back(total);
    total += static_cast<size_t>(table.inputs[i].rank);
  }
  for (int32_t i = 0; i < table.num_outputs; ++i) {
    starts_.push_back(total);
    total += static_cast<size_t>(table.outputs[i].rank);
  }
  starts_.push_back(total);
  values_.resize(total);
  strides_.resize(total);
  table.shapes(dims, values_.data());
  if (table.strides != nullptr) table.strides(dims, strides_.data());
  for (size_t which = 0; table.strides == nullptr && which + 1 < starts_.size(); ++which) {
    int64_t step = 1;
    for (size_t i = starts_[which + 1]; i-- > starts_[which]; step = (Checked(step) * values_[i]).value()) strides_[i] = step;
  }
}

Library::Library(const std::string& path, const std::string& symbol) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    fail(ErrorKind::kArtifact, "the model library cannot be loaded: ", reason == nullptr ? path.c_str() : reason);
  }
  try {
    const auto get = reinterpret_cast<ait_model_get_fn>(dlsym(handle_, symbol.c_str()));
    if (get == nullptr) fail(ErrorKind::kArtifact, path, " is not a model library: it does not export ", symbol);
    open(get, path);
  } catch (...) {
    dlclose(handle_);
    throw;
  }
}

Library::Library(ait_model_get_fn get) { open(get, "this library"); }

void Library::open(ait_model_get_fn get, const std::string& path) {
  table_ = get();
  if (table_ == nullptr || table_->version != AIT_MODEL_ABI_VERSION) {
    fail(ErrorKind::kArtifact, path, " has model ABI version ", table_ == nullptr ? 0 : table_->version,
         ", this runtime reads version ", AIT_MODEL_ABI_VERSION, ": compile the model again");
  }
  if (std::strcmp(table_->target, device_target()) != 0) {
    fail(ErrorKind::kArtifact, path, " was compiled for target ", table_->target, ", this runtime runs target ", device_target());
  }
  for (int32_t i = 0; i < table_->num_dims; ++i) {
    const ait_dim_v1& dim = table_->dims[i];
    const bool bound = dim.input >= 0 && dim.input < table_->num_inputs && dim.axis >= 0 &&
                       dim.axis < table_->inputs[dim.input].rank * (table_->strides == nullptr ? 1 : 2) && dim.mul != 0;
    if (dim.input == AIT_BOUND && table_->bounds != nullptr) continue;
    if (dim.input == AIT_GIVEN) continue;
    if (!bound && dim.lo != dim.hi) fail(ErrorKind::kArtifact, path, ": no input gives the value of dim ", dim.name);
  }
  bind_services(*table_, path);
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::vector<int64_t> Library::maximum_output_shapes() const {
  // A dim of an output may shrink when a named dim grows (seq1 - seq0), so look at every corner, not only the upper one.
  constexpr int32_t kMaxCornerDims = 10;
  const int32_t free_dims = std::min(table_->num_dims, kMaxCornerDims);
  std::vector<int64_t> dims(static_cast<size_t>(table_->num_dims)), maximum;
  for (uint32_t corner = 0; corner < (1u << free_dims); ++corner) {
    for (int32_t i = 0; i < table_->num_dims; ++i) {
      const bool low = i < free_dims && ((corner >> i) & 1u) != 0;
      dims[static_cast<size_t>(i)] = low ? table_->dims[i].lo : table_->dims[i].hi;
    }
    const std::vector<int64_t> shape = Shapes(*table_, dims.data()).outputs();
    if (maximum.empty()) maximum = shape;
    for (size_t i = 0; i < shape.size(); ++i) maximum[i] = std::max(maximum[i], shape[i]);
  }
  return maximum;
}

bool Library::needs(const char* service) const {
  const ait_service_v1* needed = table_->services == nullptr ? nullptr : table_->services();
  while (needed != nullptr && std::strcmp(needed->name, service) != 0) needed = needed->next;
  return needed != nullptr;
}

std::string Library::describe() const {
  const ait_model_v1& t = *table_;
  std::ostringstream out;
  out << "{\"name\":" << json_string(t.name) << ",\"target\":" << json_string(t.target) << ",";
  describe_tensors(out, "inputs", t.inputs, t.num_inputs);
  out << ",";
  describe_tensors(out, "outputs", t.outputs, t.num_outputs);
  out << ",\"dims\":[";
  for (int32_t i = 0; i < t.num_dims; ++i) {
    const ait_dim_v1& dim = t.dims[i];
    out << (i ? "," : "") << "{\"name\":" << json_string(dim.name) << ",\"lo\":" << dim.lo << ",\"hi\":" << dim.hi
        << ",\"bound\":" << (dim.input == AIT_BOUND ? "true" : "false") << "}";
  }
  out << "],\"constants\":[";
  for (int32_t i = 0; i < t.num_constants; ++i) {
    const ait_constant_v1& c = t.constants[i];
    out << (i ? "," : "") << "{\"name\":" << json_string(c.name) << ",\"dtype\":\"" << dtype_name(c.dtype) << "\",\"shape\":[";
    for (int32_t d = 0; d < c.rank; ++d) out << (d ? "," : "") << c.shape[d];
    out << "]}";
  }
  out << "],\"launches\":[";
  for (int32_t i = 0; i < t.num_launches; ++i) out << (i ? "," : "") << json_string(t.launches[i]);
  const std::vector<int64_t> maximum = maximum_output_shapes();
  out << "],\"maximum_output_shapes\":[";
  for (size_t i = 0; i < maximum.size(); ++i) out << (i ? "," : "") << maximum[i];
  out << "],\"constants_bytes\":" << t.constants_bytes << "}";
  return out.str();
}

}  // namespace ait::runtime
