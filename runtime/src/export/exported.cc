#include "export/exported.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "dynamic_library.h"
#include "error.h"
#include "export/weights.h"
#include "ffi_errors.h"
#include "ffi_outputs.h"
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
  std::mutex lock;
  std::vector<std::unique_ptr<Model>> owned;
  std::vector<SetConstant> constants;
};

std::mutex& states_lock() {
  static std::mutex lock;
  return lock;
}

State& state_of(ExportedFunction& function) {
  void* const known = __atomic_load_n(&function.state, __ATOMIC_ACQUIRE);
  if (known != nullptr) return *static_cast<State*>(known);
  const std::lock_guard<std::mutex> held(states_lock());
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

void set_stored_weights(Model& model, const ExportedFunction& function) {
  if (function.num_weights == 0) return;
  const StoredWeights stored;
  const ait_model_v1& table = *function.table();
  for (int32_t w = 0; w < function.num_weights; ++w) {
    for (int32_t i = 0; i < table.num_constants; ++i) {
      const ait_constant_v1& constant = table.constants[i];
      if (std::string(constant.name) != function.weights[w].name) continue;
      DLTensor tensor{};
      tensor.data = const_cast<void*>(stored.at(function.weights[w].offset, constant.bytes));
      tensor.device = {kDLCPU, 0};
      tensor.ndim = constant.rank;
      tensor.dtype = ffi_type(constant.dtype);
      tensor.shape = const_cast<int64_t*>(constant.shape);
      model.constants().set({constant.name}, {&tensor}, {});
    }
  }
}

Model& model_on(ExportedFunction& function, int device) {
  State& state = state_of(function);
  if (device < 0 || device >= kMaxDevices) fail(ErrorKind::kInput, function.name, ": there is no device ", device);
  if (Model* const known = state.models[device].load(std::memory_order_acquire); known != nullptr) return *known;
  const std::lock_guard<std::mutex> held(state.lock);
  if (Model* const known = state.models[device].load(std::memory_order_acquire); known != nullptr) return *known;
  auto model = std::make_unique<Model>(function.table, function.num_runtimes, device);
  set_stored_weights(*model, function);
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
  const std::lock_guard<std::mutex> held(state.lock);
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
