/// @file kernel_libraries.cc
/// @brief Functions of kernel libraries, called through tvm-ffi as part of a run.
#include "kernel_libraries.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ait/checked.h"
#include "environment.h"
#include "forks.h"
#include "services.h"

namespace ait::runtime {
namespace {

namespace ffi = tvm::ffi;

/// A function that was found, and how errors call it. Runs read it, so it never changes.
struct Found {
  ffi::Function function;
  std::string label;
};

struct Registry {
  ProcessMutex lock{ProcessMutex::kKernelLibraries};
  std::map<std::string, std::string> paths;
  std::map<std::string, ffi::Module> modules;
  std::map<std::string, std::unique_ptr<Found>> functions;
  std::vector<std::unique_ptr<Found>> replaced;  ///< functions that the process has registered anew since; models may still call them
};

/// Never destroyed: a library may not be unloaded while anything of it may run.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

/// The parts of "kernel_library:SHA256:LIBRARY:FUNCTION".
struct CalleeName {
  std::string sha256, library, function;

  static std::optional<CalleeName> parse(const std::string& text) {
    if (text.compare(0, kCalleePrefix.size(), kCalleePrefix) != 0) return std::nullopt;
    const size_t first = kCalleePrefix.size(), second = text.find(':', first);
    const size_t third = second == std::string::npos ? second : text.find(':', second + 1);
    if (third == std::string::npos) return std::nullopt;
    return CalleeName{text.substr(first, second - first), text.substr(second + 1, third - second - 1), text.substr(third + 1)};
  }
};

std::optional<ffi::Function> look_up(Registry& all, const CalleeName& name, std::string* error) {
  if (name.sha256.empty()) {
    std::optional<ffi::Function> found = ffi::Function::GetGlobal(name.function);
    if (!found) *error = "no function '" + name.function + "' is registered in this process: register it before the model is loaded";
    return found;
  }
  auto module = all.modules.find(name.sha256);
  if (module == all.modules.end()) {
    const auto path = all.paths.find(name.sha256);
    if (path == all.paths.end()) {
      *error = "kernel library '" + name.library + "' with SHA-256 " + name.sha256 + " is not known to this process";
      return std::nullopt;
    }
    module = all.modules.emplace(name.sha256, ffi::Module::LoadFromFile(path->second)).first;
  }
  const ffi::Optional<ffi::Function> found = module->second->GetFunction(name.function, false);
  if (!found.has_value()) {
    *error = "kernel library '" + name.library + "' has no function '" + name.function + "'";
    return std::nullopt;
  }
  return *found;
}

/// A tensor in memory that others own.
struct Borrowed {
  void* data;
  void AllocData(DLTensor* tensor) { tensor->data = data; }
  void FreeData(DLTensor*) {}
};

DLDataType type_of(const ait_ffi_value_v1& value) { return {value.type_code, value.type_bits, 1}; }

ffi::Any to_any(const ait_ffi_value_v1& value, DLDevice device) {
  switch (value.kind) {
    case AIT_FFI_TENSOR: {
      static constexpr int64_t kNoDims[1] = {0};  // rank 0 has no shape, but tvm-ffi wants a pointer
      const auto rank = static_cast<size_t>(value.rank);
      const ffi::ShapeView shape(rank == 0 ? kNoDims : value.shape, rank), strides(rank == 0 ? kNoDims : value.strides, rank);
      return ffi::Tensor::FromNDAllocStrided(Borrowed{value.data}, shape, strides, type_of(value), device);
    }
    case AIT_FFI_INT: return value.integer;
    case AIT_FFI_BOOL: return value.integer != 0;
    case AIT_FFI_FLOAT: return value.number;
    case AIT_FFI_STRING: return ffi::String(value.text);
    default: return nullptr;
  }
}

/// An argument as an error shows it: "float32[2, 768]", "0.5", "none".
std::string to_text(const ait_ffi_value_v1& value) {
  std::ostringstream out;
  switch (value.kind) {
    case AIT_FFI_TENSOR:
      out << ffi::DLDataTypeToString(type_of(value)) << "[";
      for (int32_t i = 0; i < value.rank; ++i) out << (i ? ", " : "") << value.shape[i];
      out << "]";
      break;
    case AIT_FFI_INT: out << value.integer; break;
    case AIT_FFI_BOOL: out << (value.integer != 0 ? "true" : "false"); break;
    case AIT_FFI_FLOAT: out << value.number; break;
    case AIT_FFI_STRING: out << '"' << value.text << '"'; break;
    default: out << "none";
  }
  return out.str();
}

std::string device_text(DLDevice device) {
  if (device.device_type == kDLCPU) return "cpu";
  return (device.device_type == kDLROCM ? "rocm:" : "cuda:") + std::to_string(device.device_id);
}

std::string arguments_text(const ait_ffi_call_v1& call, DLDevice device) {
  std::string text = "it was given (";
  for (int32_t i = 0; i < call.num_values; ++i) text += (i ? ", " : "") + to_text(call.values[i]);
  return text + ") on " + device_text(device);
}

// ** tensors that a function makes **

/// A tensor that a foreign function makes by `FromEnvAlloc` where no framework has an allocator.
struct Made {
  DLManagedTensorVersioned managed;
  std::vector<int64_t> shape, strides;
  void* stream;
};

void free_made(DLManagedTensorVersioned* self) {
  const std::unique_ptr<Made> made(static_cast<Made*>(self->manager_ctx));
  release_on(made->stream, self->dl_tensor.data);
}

using SetError = void (*)(void* context, const char* kind, const char* message);

int make_tensor(DLTensor* prototype, DLManagedTensorVersioned** out, void* context, SetError set_error) {
  auto made = std::make_unique<Made>();
  made->shape.assign(prototype->shape, prototype->shape + prototype->ndim);
  made->strides.resize(made->shape.size());
  Checked elements = 1;
  for (size_t i = made->shape.size(); i-- > 0;) {
    made->strides[i] = elements.value();
    elements = elements * made->shape[i];
  }
  const bool fits = (elements * ((prototype->dtype.bits * prototype->dtype.lanes + 7) / 8)).fits();
  made->stream = TVMFFIEnvGetStream(prototype->device.device_type, prototype->device.device_id);
  void* const data = fits ? allocate_on(made->stream, ffi::GetDataSize(static_cast<size_t>(elements.value()), prototype->dtype)) : nullptr;
  if (data == nullptr) {
    set_error(context, "MemoryError", "there is no memory for a tensor that a kernel library makes");
    return -1;
  }
  made->managed = {};
  made->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  made->managed.deleter = free_made;
  made->managed.dl_tensor = *prototype;
  made->managed.dl_tensor.data = data;
  made->managed.dl_tensor.byte_offset = 0;
  made->managed.dl_tensor.shape = made->shape.data();
  made->managed.dl_tensor.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  *out = &made.release()->managed;
  return 0;
}

/// While a graph is recorded, memory that is freed after the call may not be used: the graph would use it again.
int refuse_tensor(DLTensor*, DLManagedTensorVersioned**, void* context, SetError set_error) {
  set_error(context, "RuntimeError", "a function that allocates tensors cannot be recorded into a graph");
  return -1;
}

/// The stream, and an allocator, of the environment for one call.
class Environment {
 public:
  Environment(DLDevice device, void* stream) : device_(device) {
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvSetStream(device.device_type, device.device_id, stream, &stream_));
    allocator_ = TVMFFIEnvGetDLPackManagedTensorAllocator();
    if (is_recorded(stream)) {
      set(refuse_tensor);
    } else if (allocator_ == nullptr) {
      set(make_tensor);
    }
  }
  ~Environment() {
    (void)TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream_, nullptr);
    if (replaced_) set(allocator_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(DLPackManagedTensorAllocator allocator) {
    replaced_ = true;
    (void)TVMFFIEnvSetDLPackManagedTensorAllocator(allocator, 0, nullptr);
  }

  DLDevice device_;
  TVMFFIStreamHandle stream_ = nullptr;
  DLPackManagedTensorAllocator allocator_ = nullptr;
  bool replaced_ = false;
};

/// The error in the value that a function returned; empty if it returned nothing, or the status 0.
std::string returned_problem(const ffi::Any& result) {
  if (result == nullptr) return {};
  if (const auto status = result.as<int64_t>()) return *status == 0 ? "" : "returned status " + std::to_string(*status);
  return "returned a " + result.GetTypeKey() + ", expected nothing: it must write its results into its arguments";
}

int32_t call(const ait_host_v1* host, const ait_ffi_call_v1* args, void* stream) {
  const auto* const found = static_cast<const Found*>(args->callee);
  if (found == nullptr) return host->fail(host->self, "a function was called in a library that no runtime library has loaded");
  const DLDevice device = current_device();
  std::string problem;
  try {
    const Environment environment(device, stream);
    std::vector<ffi::Any> values;
    values.reserve(static_cast<size_t>(args->num_values));
    for (int32_t i = 0; i < args->num_values; ++i) values.push_back(to_any(args->values[i], device));
    const std::vector<ffi::AnyView> views(values.begin(), values.end());
    ffi::Any result;
    found->function.CallPacked(views.data(), static_cast<int32_t>(views.size()), &result);
    problem = returned_problem(result);
    if (problem.empty()) return 0;
  } catch (const ffi::Error& error) {
    problem = "raised " + error.kind() + ": " + error.message();
  } catch (const std::exception& error) {
    problem = std::string("failed: ") + error.what();
  } catch (...) {
    problem = "threw something that is no std::exception";
  }
  return host->fail(host->self, (found->label + " " + problem + "; " + arguments_text(*args, device)).c_str());
}

}  // namespace

const ait_ffi_service_v1 kFfiService{call};

void add_kernel_library(const std::string& sha256, const std::string& path) {
  Registry& all = registry();
  const std::lock_guard<ProcessMutex> held(all.lock);
  all.paths[sha256] = path;
}

void load_kernel_library(const std::string& sha256, const std::string& path) {
  Registry& all = registry();
  const std::lock_guard<ProcessMutex> held(all.lock);
  if (all.modules.count(sha256) == 0) all.modules.emplace(sha256, ffi::Module::LoadFromFile(path));
}

const void* find_callee(const std::string& name, std::string* error) {
  const std::optional<CalleeName> parts = CalleeName::parse(name);
  if (!parts) {
    *error = "'" + name + "' names no function";
    return nullptr;
  }
  Registry& all = registry();
  const std::lock_guard<ProcessMutex> held(all.lock);
  std::unique_ptr<Found>& known = all.functions[name];
  try {
    if (known == nullptr || parts->sha256.empty()) {
      const std::optional<ffi::Function> function = look_up(all, *parts, error);
      if (!function) return nullptr;
      if (known != nullptr && known->function.same_as(*function)) return known.get();
      if (known != nullptr) all.replaced.push_back(std::move(known));
      const std::string of = parts->library.empty() ? "" : " of kernel library '" + parts->library + "'";
      known = std::make_unique<Found>(Found{*function, "function '" + parts->function + "'" + of});
    }
    return known.get();
  } catch (const std::exception& failure) {
    *error = "kernel library '" + parts->library + "' cannot be loaded: " + failure.what();
    return nullptr;
  }
}

}  // namespace ait::runtime
