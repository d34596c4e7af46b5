#include "export/exported.h"

#include <sys/mman.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "dynamic_library.h"
#include "error.h"
#include "export/weights.h"
#include "ffi_errors.h"
#include "ffi_outputs.h"
#include "forks.h"
#include "kernel_libraries.h"
#include "model.h"

namespace ait::runtime {
namespace {

namespace ffi = tvm::ffi;

constexpr int kMaxDevices = 64;

/// A copy of a constant that the caller has set, for devices on which the function has not run yet.
struct SetConstant {
  std::string name;
  ffi::Tensor value;
};

/// The models of one function, one for each device that it has run on.
struct State {
  std::atomic<Model*> models[kMaxDevices] = {};
  std::vector<std::unique_ptr<Model>> owned;
  std::vector<SetConstant> constants;
};

/// Held where a model is made and where a constant is set.
ProcessMutex& exported_lock() {
  static ProcessMutex lock(ProcessMutex::kExported);
  return lock;
}

State& state_of(ExportedFunction& function) {
  void* const known = __atomic_load_n(&function.state, __ATOMIC_ACQUIRE);
  if (known != nullptr) return *static_cast<State*>(known);
  const std::lock_guard<ProcessMutex> held(exported_lock());
  if (function.state == nullptr) {
    for (const LibraryPlaces* library = kLibraryPlaces; library->key != nullptr; ++library) {
      std::vector<std::string> places;
      for (const char* const* place = library->places; *place != nullptr; ++place) places.emplace_back(*place);
      set_library_candidates(library->key, std::move(places));
    }
    // Never destroyed: a call may go on while the process ends.
    __atomic_store_n(&function.state, static_cast<void*>(new State), __ATOMIC_RELEASE);
  }
  return *static_cast<State*>(function.state);
}

void set_stored_weights(Model& model, const ExportedFunction& function, const StoredWeights& stored) {
  const ait_model_v1& table = *function.table();
  for (int32_t w = 0; w < function.num_weights; ++w) {
    for (int32_t i = 0; i < table.num_constants; ++i) {
      const ait_constant_v1& constant = table.constants[i];
      if (std::string(constant.name) != function.weights[w].name) continue;
      DLTensor tensor{};
      tensor.data = const_cast<void*>(stored.at(function.weights[w].offset, constant.bytes));
      tensor.device = {kDLCPU, 0};
      tensor.ndim = constant.rank;
      tensor.dtype = dl_dtype(constant.dtype);
      tensor.shape = const_cast<int64_t*>(constant.shape);
      model.constants().set({constant.name}, {&tensor}, {});
      stored.release(function.weights[w].offset, constant.bytes);
    }
  }
}

/// A file in memory under a name that ends with ".so", as tvm-ffi's loader wants it. The folder of the name is new, because the system's loader
/// takes a second library under the same name for the first one.
class MemoryFile {
 public:
  MemoryFile(const char* data, int64_t bytes) {
    file_ = memfd_create("ait_kernel_library", MFD_CLOEXEC);
    for (int64_t done = 0; file_ >= 0 && done < bytes;) {
      const ssize_t written = write(file_, data + done, static_cast<size_t>(bytes - done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      done += written;
      if (done == bytes) whole_ = true;
    }
    const char* const place = std::getenv("TMPDIR");
    folder_ = std::string(place != nullptr && *place != '\0' ? place : "/tmp") + "/ait_XXXXXX";
    if (!whole_ || mkdtemp(folder_.data()) == nullptr || symlink(("/proc/self/fd/" + std::to_string(file_)).c_str(), path().c_str()) != 0) {
      const std::string why = std::strerror(errno);
      remove();
      fail(ErrorKind::kMemory, "a kernel library of ", bytes, " bytes cannot be written to a file in memory, named in ", folder_, ": ", why);
    }
  }
  ~MemoryFile() { remove(); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return folder_ + "/kernels.so"; }

 private:
  void remove() {
    (void)unlink(path().c_str());
    (void)rmdir(folder_.c_str());
    if (file_ >= 0) close(file_);
  }

  int file_ = -1;
  bool whole_ = false;
  std::string folder_;
};

/// Loads the kernel libraries of the file, at the first call. The caller has the lock.
void load_stored_libraries(const StoredWeights& stored) {
  static bool loaded = false;
  if (loaded) return;
  for (const StoredLibrary* library = kStoredLibraries; library->sha256 != nullptr; ++library) {
    const MemoryFile file(static_cast<const char*>(stored.at(library->offset, library->bytes)), library->bytes);
    load_kernel_library(library->sha256, file.path());
  }
  loaded = true;
}

Model& model_on(ExportedFunction& function, int device) {
  State& state = state_of(function);
  if (device < 0 || device >= kMaxDevices) fail(ErrorKind::kInput, function.name, ": there is no device ", device);
  if (Model* const known = state.models[device].load(std::memory_order_acquire); known != nullptr) return *known;
  const std::lock_guard<ProcessMutex> held(exported_lock());
  if (Model* const known = state.models[device].load(std::memory_order_acquire); known != nullptr) return *known;
  std::optional<StoredWeights> stored;
  if (function.num_weights > 0 || kStoredLibraries[0].sha256 != nullptr) stored.emplace();
  if (stored) load_stored_libraries(*stored);
  auto model = std::make_unique<Model>(function.table, function.num_runtimes, device);
  if (stored) set_stored_weights(*model, function, *stored);
  for (const SetConstant& constant : state.constants) model->constants().set({constant.name}, {constant.value.GetDLTensorPtr()}, {});
  state.owned.push_back(std::move(model));
  state.models[device].store(state.owned.back().get(), std::memory_order_release);
  return *state.owned.back();
}

/// Memory of a model's device.
struct OwnMemory {
  Model* model;

  void AllocData(DLTensor* tensor) {
    const DeviceScope scope(model->device());
    const size_t bytes = ffi::GetDataSize(*tensor);
    tensor->data = bytes == 0 ? nullptr : model->device().allocate(bytes, "an output");
  }
  void FreeData(DLTensor* tensor) {
    const DeviceScope scope(model->device());
    if (tensor->data != nullptr) model->device().release(tensor->data);
  }
};

/// "tiny(x, y, out)": how errors show what a function takes.
std::string signature(const ait_model_v1& table, const char* name, bool with_outputs) {
  std::string text = std::string(name) + "(";
  for (int32_t i = 0; i < table.num_inputs; ++i) text += std::string(i > 0 ? ", " : "") + table.inputs[i].name;
  for (int32_t i = 0; with_outputs && i < table.num_outputs; ++i) {
    if (table.outputs[i].in_place_of == 0) text += std::string(text.back() == '(' ? "" : ", ") + table.outputs[i].name;
  }
  return text + ")";
}

void call(ExportedFunction& function, ffi::PackedArgs args, ffi::Any* result) {
  const ait_model_v1& table = *function.table();
  int32_t own = 0;
  for (int32_t i = 0; i < table.num_outputs; ++i) own += table.outputs[i].in_place_of == 0;
  const bool returns = args.size() == table.num_inputs && own > 0;
  if (!returns && args.size() != table.num_inputs + own) {
    fail(ErrorKind::kInput, function.name, " was given ", args.size(), " arguments, expected ", table.num_inputs, " inputs, ",
         signature(table, function.name, false), ", or also tensors for the outputs, ", signature(table, function.name, true));
  }
  Tensors inputs, outputs;
  inputs.reserve(static_cast<size_t>(table.num_inputs));
  outputs.reserve(static_cast<size_t>(table.num_outputs));
  int device = 0;
  for (int i = 0; i < args.size(); ++i) {
    const auto tensor = args[i].try_cast<DLTensor*>();
    if (!tensor) {
      fail(ErrorKind::kInput, function.name, ": argument ", i, " is a ", args[i].GetTypeKey(), ", expected a tensor: ",
           signature(table, function.name, true));
    }
    (i < table.num_inputs ? inputs : outputs).push_back(*tensor);
    if (i == 0 && (*tensor)->device.device_type != kDLCPU) device = (*tensor)->device.device_id;
  }
  Model& model = model_on(function, device);
  RunOptions options;
  const DLDevice place = model.device().dl();
  options.stream = TVMFFIEnvGetStream(place.device_type, place.device_id);
  options.sync = false;
  if (returns) {
    *result = run_and_return(model, OwnMemory{&model}, inputs, options);
    return;
  }
  Tensors all;
  all.reserve(static_cast<size_t>(table.num_outputs));
  for (int32_t i = 0, next = 0; i < table.num_outputs; ++i) {
    const int32_t input = table.outputs[i].in_place_of - 1;
    all.push_back(input >= 0 ? inputs[static_cast<size_t>(input)] : outputs[static_cast<size_t>(next++)]);
  }
  (void)model.run(inputs, all, options);
}

void set_constant(ExportedFunction& function, ffi::PackedArgs args) {
  if (args.size() != 2) fail(ErrorKind::kInput, function.name, "_set_constant takes a name and a tensor");
  const std::string name(args[0].cast<ffi::String>());
  const auto value = args[1].cast<DLTensor*>();
  State& state = state_of(function);
  const ait_model_v1& table = *function.table();
  const bool gpu = std::string(table.target) != "cpu";
  Model& first = model_on(function, gpu && value->device.device_type != kDLCPU ? value->device.device_id : 0);
  const std::lock_guard<ProcessMutex> held(exported_lock());
  first.constants().set({name}, {value}, {});  // checks the value
  const ffi::Tensor copy = ffi::Tensor::FromNDAlloc(OwnMemory{&first}, ffi::ShapeView(value->shape, static_cast<size_t>(value->ndim)), value->dtype,
                                                    first.device().dl());
  if (ffi::GetDataSize(*value) > 0) {
    const DeviceScope scope(first.device());
    first.device().copy(copy.data_ptr(), data_of(*value), ffi::GetDataSize(*value));
  }
  for (std::atomic<Model*>& other : state.models) {
    Model* const model = other.load(std::memory_order_acquire);
    if (model != nullptr && model != &first) model->constants().set({name}, {copy.GetDLTensorPtr()}, {});
  }
  state.constants.push_back({name, copy});
}

template <class Body>
int safely(Body&& body) {
  TVM_FFI_SAFE_CALL_BEGIN();
  guarded(body, kPlainErrors);
  TVM_FFI_SAFE_CALL_END();
}

ffi::PackedArgs packed(const TVMFFIAny* args, int32_t count) { return {reinterpret_cast<const ffi::AnyView*>(args), count}; }

}  // namespace

int call_exported(ExportedFunction* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return safely([&] { call(*function, packed(args, num_args), reinterpret_cast<ffi::Any*>(result)); });
}

int set_exported_constant(ExportedFunction* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny*) {
  return safely([&] { set_constant(*function, packed(args, num_args)); });
}

int describe_exported(ExportedFunction* function, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  return safely([&] { *reinterpret_cast<ffi::Any*>(result) = ffi::String(Library(function->table).describe()); });
}

}  // namespace ait::runtime
