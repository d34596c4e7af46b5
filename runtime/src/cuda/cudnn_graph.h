/// @file cudnn_graph.h
/// @brief A graph of cuDNN operations, and the execution plan that its engines make of it.
#ifndef AIT_CUDA_CUDNN_GRAPH_H_
#define AIT_CUDA_CUDNN_GRAPH_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cudnn_api.h"

namespace ait::runtime::dnn {

using Four = std::array<int64_t, 4>;

inline Four contiguous(const Four& dims) { return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}; }

/// @brief Descriptors, owned together. The first failure is kept, and everything after it does nothing.
class Descriptors {
 public:
  explicit Descriptors(const Api& api) : api_(api) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    for (auto it = made_.rbegin(); it != made_.rend(); ++it) api_.destroy(*it);
  }

  const Api& api() const { return api_; }
  bool good() const { return error_.empty(); }
  const std::string& error() const { return error_; }

  Descriptor make(int kind) {
    Descriptor made = nullptr;
    if (good() && keep(api_.make(kind, &made), "creating a descriptor of kind", kind)) made_.push_back(made);
    return made;
  }
  void set(Descriptor to, int attribute, int type, int64_t count, const void* values) {
    if (good()) keep(api_.set(to, attribute, type, count, values), "setting attribute", attribute);
  }
  void set(Descriptor to, int attribute, int type, int value) { set(to, attribute, type, 1, &value); }
  void set(Descriptor to, int attribute, Descriptor value) { set(to, attribute, kTypeDescriptor, 1, &value); }
  void finalize(Descriptor which, const char* what) {
    if (good()) keep(api_.finalize(which), what, -1);
  }
  void clear_error() { error_.clear(); }
  void fail(std::string reason) { error_ = std::move(reason); }

 private:
  bool keep(Status status, const char* what, int number) {
    if (status == kSuccess) return true;
    char detail[512] = "";
    api_.last_error(detail, sizeof detail);
    error_ = what + (number < 0 ? std::string() : " " + std::to_string(number)) + ": " + api_.status_text(status) + " (status " +
             std::to_string(status) + ")" + (*detail != 0 ? std::string(": ") + detail : std::string());
    return false;
  }

  const Api& api_;
  std::vector<Descriptor> made_;
  std::string error_;
};

/// @brief A graph with the plan that runs it. A derived class adds the tensors and the operations.
class Plan {
 public:
  explicit Plan(const Api& api) : own_(api) {}

  std::atomic<int> pins{0};  ///< recorded CUDA graphs that launch its kernels

  const std::string& error() const { return own_.error(); }

 protected:
  /// @brief A tensor of a run and where it lies.
  struct Binding {
    int64_t id;
    const void* data;
  };

  struct Scalar {
    int64_t id;
    union {
      float f32;
      int32_t i32;
    } value;
  };

  /// @brief Makes the graph of the operations so far, and its plan number `wanted` among those that need at most `room` bytes of workspace.
  /// The last one there is where there are fewer.
  /// @param exact leaves out the engines that compute with less than the precision of f32.
  /// @return whether there is one; if not, `error()` says why.
  bool choose(Handle handle, int wanted, int64_t room, bool exact = false) {
    const Descriptor graph = own_.make(kGraph);
    own_.set(graph, kGraphOperations, kTypeDescriptor, int64_t(operations_.size()), operations_.data());
    own_.set(graph, kGraphHandle, kTypeHandle, 1, &handle);
    own_.finalize(graph, "building a graph");
    int viable = 0;
    std::string reasons;
    for (int mode : {kHeuristicsA, kHeuristicsFallback}) {
      for (Descriptor config : configs_of(graph, mode)) {
        if (!is_precise(config, exact)) continue;
        const Descriptor plan = own_.make(kExecutionPlan);
        own_.set(plan, kPlanHandle, kTypeHandle, 1, &handle);
        own_.set(plan, kPlanConfig, config);
        own_.finalize(plan, "building a plan");
        int64_t bytes = 0;
        if (own_.good() && read(plan, kPlanWorkspace, &bytes) && bytes <= room) {
          plan_ = plan;
          if (viable++ >= wanted) return true;
        } else {
          reasons += "\n  " + (own_.good() ? "a plan needs " + std::to_string(bytes) + " bytes of workspace, there are " + std::to_string(room)
                                           : own_.error());
          own_.clear_error();
        }
      }
      if (viable > 0) return true;
      if (!own_.good()) reasons += "\n  " + own_.error();
      own_.clear_error();
    }
    own_.fail(reasons.empty() ? "\n  no engine takes it" : reasons);
    return false;
  }

  /// @brief Launches on the stream of `handle`. Returns a reason on failure, else an empty string.
  std::string launch(const std::vector<Binding>& tensors, const void* workspace, Handle handle) {
    Descriptors own(own_.api());
    std::vector<int64_t> ids;
    std::vector<const void*> pointers;
    for (const Binding& tensor : tensors) ids.push_back(tensor.id), pointers.push_back(tensor.data);
    for (const Scalar& scalar : scalars_) ids.push_back(scalar.id), pointers.push_back(&scalar.value);
    const Descriptor pack = own.make(kVariantPack);
    own.set(pack, kPackPointers, kTypePointer, int64_t(pointers.size()), pointers.data());
    own.set(pack, kPackIds, kTypeInt64, int64_t(ids.size()), ids.data());
    own.set(pack, kPackWorkspace, kTypePointer, 1, &workspace);
    own.finalize(pack, "naming the tensors of a run");
    if (!own.good()) return own.error();
    const Status status = own_.api().execute(handle, plan_, pack);
    if (status == kSuccess) return {};
    char detail[512] = "";
    own_.api().last_error(detail, sizeof detail);
    return std::string(own_.api().status_text(status)) + ": " + detail;
  }

  bool read(Descriptor from, int attribute, int64_t* value) {
    int64_t count = 0;
    return own_.api().get(from, attribute, kTypeInt64, 1, &count, value) == kSuccess && count == 1;
  }

  std::vector<Descriptor> configs_of(Descriptor graph, int mode) {
    const Descriptor heuristics = own_.make(kEngineHeuristics);
    own_.set(heuristics, kHeuristicsGraph, graph);
    own_.set(heuristics, kHeuristicsMode, kTypeHeuristicMode, mode);
    own_.finalize(heuristics, "asking for engines");
    std::vector<Descriptor> configs;
    int64_t count = 0;
    if (!own_.good() || own_.api().get(heuristics, kHeuristicsResults, kTypeDescriptor, 0, &count, nullptr) != kSuccess) return {};
    for (int64_t i = 0; i < count; ++i) configs.push_back(own_.make(kEngineConfig));
    if (!own_.good()) return {};
    if (own_.api().get(heuristics, kHeuristicsResults, kTypeDescriptor, count, &count, configs.data()) != kSuccess) count = 0;
    configs.resize(size_t(count));
    return configs;
  }

  /// Whether the engine of a configuration adds up in f32, without transforms that lose digits, and if `exact`, without tensor cores, which
  /// round f32 operands.
  bool is_precise(Descriptor config, bool exact) {
    const Descriptor engine = own_.make(kEngine);
    Descriptor found = engine;
    int64_t count = 0;
    int notes[32];
    if (!own_.good() || own_.api().get(config, kConfigEngine, kTypeDescriptor, 1, &count, &found) != kSuccess) return false;
    if (own_.api().get(engine, kEngineNotes, kTypeNumericalNote, 32, &count, notes) != kSuccess) return false;
    for (int64_t i = 0; i < count && i < 32; ++i) {
      if (exact && (notes[i] == kNoteTensorCore || notes[i] == kNoteFft)) return false;
      if (notes[i] == kNoteDownConvert || notes[i] == kNoteReducedReduction || notes[i] == kNoteWinograd6x6 || notes[i] == kNoteWinograd13x13) {
        return false;
      }
    }
    return true;
  }

  // ** tensors **

  Descriptor tensor(int type, const Four& dims, const Four& strides, int64_t* id = nullptr, bool is_virtual = false,
                    bool by_value = false) {
    const Descriptor made = own_.make(kTensor);
    const int64_t alignment = 16, number = ++last_id_;
    if (id != nullptr) *id = number;
    own_.set(made, kTensorDataType, kTypeDataType, type);
    own_.set(made, kTensorDims, kTypeInt64, 4, dims.data());
    own_.set(made, kTensorStrides, kTypeInt64, 4, strides.data());
    own_.set(made, kTensorId, kTypeInt64, 1, &number);
    own_.set(made, kTensorAlignment, kTypeInt64, 1, &alignment);
    if (is_virtual) own_.set(made, kTensorIsVirtual, kTypeBoolean, 1, &is_virtual);
    if (by_value) own_.set(made, kTensorIsByValue, kTypeBoolean, 1, &by_value);
    own_.finalize(made, "describing a tensor");
    return made;
  }
  Descriptor virtual_tensor(int type, const Four& dims) { return tensor(type, dims, contiguous(dims), nullptr, true); }
  Descriptor scalar(float value) {
    scalars_.emplace_back();
    scalars_.back().value.f32 = value;
    return tensor(kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, &scalars_.back().id, false, true);
  }
  Descriptor scalar(int32_t value) {
    scalars_.emplace_back();
    scalars_.back().value.i32 = value;
    return tensor(kI32, {1, 1, 1, 1}, {1, 1, 1, 1}, &scalars_.back().id, false, true);
  }

  // ** operations: each appends itself to the graph **

  void matmul(Descriptor a, Descriptor b, Descriptor c) {
    const Descriptor product = own_.make(kMatmul), operation = own_.make(kMatmulOperation);
    own_.set(product, kMatmulPrecision, kTypeDataType, kF32);
    own_.finalize(product, "describing a product");
    own_.set(operation, kMatmulOperationA, a);
    own_.set(operation, kMatmulOperationB, b);
    own_.set(operation, kMatmulOperationC, c);
    own_.set(operation, kMatmulOperationDesc, product);
    append(operation);
  }

  Descriptor pointwise(int mode, Descriptor x, Descriptor b, int type, const Four& dims, int precision = kF32, int64_t axis = -1,
                       Descriptor t = nullptr) {
    const Descriptor y = virtual_tensor(type, dims);
    pointwise_into(y, mode, x, b, precision, axis, t);
    return y;
  }

  void pointwise_into(Descriptor y, int mode, Descriptor x, Descriptor b, int precision = kF32, int64_t axis = -1, Descriptor t = nullptr) {
    const Descriptor map = own_.make(kPointwise), operation = own_.make(kPointwiseOperation);
    own_.set(map, kPointwiseMode, kTypePointwiseMode, mode);
    own_.set(map, kPointwisePrecision, kTypeDataType, precision);
    if (axis >= 0) own_.set(map, kPointwiseAxis, kTypeInt64, 1, &axis);
    own_.finalize(map, "describing an elementwise operation");
    own_.set(operation, kPointwiseOperationDesc, map);
    own_.set(operation, kPointwiseOperationX, x);
    if (b != nullptr) own_.set(operation, kPointwiseOperationB, b);
    if (t != nullptr) own_.set(operation, kPointwiseOperationT, t);
    own_.set(operation, kPointwiseOperationY, y);
    append(operation);
  }

  Descriptor reduce(int op, Descriptor x, const Four& dims) {
    const Descriptor reduction = own_.make(kReduction), operation = own_.make(kReductionOperation), y = virtual_tensor(kF32, dims);
    own_.set(reduction, kReductionOperator, kTypeReduction, op);
    own_.set(reduction, kReductionPrecision, kTypeDataType, kF32);
    own_.finalize(reduction, "describing a reduction");
    own_.set(operation, kReductionOperationX, x);
    own_.set(operation, kReductionOperationY, y);
    own_.set(operation, kReductionOperationDesc, reduction);
    append(operation);
    return y;
  }

  void append(Descriptor operation) {
    own_.finalize(operation, "describing an operation");
    operations_.push_back(operation);
  }

  Descriptors own_;
  std::vector<Descriptor> operations_;
  std::deque<Scalar> scalars_;
  int64_t last_id_ = 0;

 private:
  Descriptor plan_ = nullptr;
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_GRAPH_H_
