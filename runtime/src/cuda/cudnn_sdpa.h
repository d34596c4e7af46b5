/// @file cudnn_sdpa.h
/// @brief Attention as a graph of cuDNN operations, and the execution plan that its engines make of it.
///
/// cuDNN recognises flash attention by the shape of the graph: product, scale, mask, softmax spelled out, product. The order and the
/// types below are those that its engines know: an index is i32, a comparison boolean, everything else between the products f32, the
/// weights of the second product have the element type.
#ifndef AIT_CUDA_CUDNN_SDPA_H_
#define AIT_CUDA_CUDNN_SDPA_H_

#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "ait/model_abi.h"
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

/// @brief An execution plan for attention of one shape, with its graph and the scalars that it reads on the host.
class SdpaPlan {
 public:
  explicit SdpaPlan(const Api& api) : own_(api) {}

  std::atomic<int> pins{0};  ///< recorded CUDA graphs that launch its kernels

  /// @brief Builds the graph of `args` and the plan number `args.algo` of those that need at most `args.workspace_bytes`.
  /// @return whether there is one; if not, `error()` says why.
  bool make(const ait_attention_v1& args, Handle handle) {
    const Descriptor graph = make_graph(args, handle);
    const int wanted = args.algo > 0 ? args.algo : 0;
    int viable = 0;
    std::string reasons;
    for (int mode : {kHeuristicsA, kHeuristicsFallback}) {
      for (Descriptor config : configs_of(graph, mode)) {
        const Descriptor plan = own_.make(kExecutionPlan);
        own_.set(plan, kPlanHandle, kTypeHandle, 1, &handle);
        own_.set(plan, kPlanConfig, config);
        own_.finalize(plan, "building a plan");
        int64_t bytes = 0;
        if (own_.good() && read(plan, kPlanWorkspace, &bytes) && bytes <= args.workspace_bytes) {
          plan_ = plan, workspace_ = bytes;
          if (viable++ == wanted) return true;
        } else {
          reasons += "\n  " + (own_.good() ? "a plan needs " + std::to_string(bytes) + " bytes of workspace, there are " +
                                                 std::to_string(args.workspace_bytes)
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

  const std::string& error() const { return own_.error(); }
  int64_t workspace() const { return workspace_; }

  /// @brief Launches on the stream of `handle`. Returns a reason on failure, else an empty string.
  std::string execute(const ait_attention_v1& args, Handle handle) {
    Descriptors own(own_.api());
    std::vector<int64_t> ids{q_, k_, v_, o_};
    std::vector<void*> pointers{const_cast<void*>(args.q), const_cast<void*>(args.k), const_cast<void*>(args.v), args.o};
    if (mask_ != 0) ids.push_back(mask_), pointers.push_back(const_cast<void*>(args.mask));
    for (const Scalar& scalar : scalars_) {
      ids.push_back(scalar.id);
      pointers.push_back(const_cast<void*>(static_cast<const void*>(&scalar.value)));
    }
    const Descriptor pack = own.make(kVariantPack);
    own.set(pack, kPackPointers, kTypePointer, int64_t(pointers.size()), pointers.data());
    own.set(pack, kPackIds, kTypeInt64, int64_t(ids.size()), ids.data());
    own.set(pack, kPackWorkspace, kTypePointer, 1, &args.workspace);
    own.finalize(pack, "naming the tensors of a run");
    if (!own.good()) return own.error();
    const Status status = own_.api().execute(handle, plan_, pack);
    if (status == kSuccess) return {};
    char detail[512] = "";
    own_.api().last_error(detail, sizeof detail);
    return std::string(own_.api().status_text(status)) + ": " + detail;
  }

 private:
  struct Scalar {
    int64_t id;
    union {
      float f32;
      int32_t i32;
    } value;
  };

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
    const Descriptor map = own_.make(kPointwise), operation = own_.make(kPointwiseOperation), y = virtual_tensor(type, dims);
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
    return y;
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

  // ** the graph **

  Descriptor make_graph(const ait_attention_v1& args, Handle handle) {
    const int type = args.dtype == AIT_F16 ? kF16 : kBf16;
    const Four scores{args.batch, args.heads, args.rows, args.cols};
    auto heads = [&](int64_t count, int64_t length, int64_t width, const int64_t* strides, int64_t* id) {
      return tensor(type, {args.batch, count, length, width}, {strides[0], strides[1], strides[2], 1}, id);
    };
    const Descriptor q = heads(args.heads, args.rows, args.depth, args.strides_q, &q_);
    const Descriptor k_transposed = tensor(type, {args.batch, args.groups, args.depth, args.cols},
                                           {args.strides_k[0], args.strides_k[1], 1, args.strides_k[2]}, &k_);
    const Descriptor v = heads(args.groups, args.cols, args.width, args.strides_v, &v_);
    const Descriptor o = heads(args.heads, args.rows, args.width, args.strides_o, &o_);

    const Descriptor product = virtual_tensor(kF32, scores);
    matmul(q, k_transposed, product);
    Descriptor x = pointwise(kMul, product, scalar(args.scale), kF32, scores);
    if (args.mask != nullptr) {
      Four dims, strides;
      for (size_t i = 0; i < 4; ++i) dims[i] = args.strides_mask[i] == 0 ? 1 : scores[i];
      strides = contiguous(dims);
      for (size_t i = 0; i < 4; ++i) strides[i] = dims[i] == 1 ? strides[i] : args.strides_mask[i];
      x = pointwise(kAdd, x, tensor(args.mask_dtype == AIT_F32 ? kF32 : type, dims, strides, &mask_), kF32, scores);
    }
    if (args.causal || args.window > 0) x = band(args, x, scores);

    const Four column{args.batch, args.heads, args.rows, 1};
    const Descriptor highest = reduce(kReduceMax, x, column);
    const Descriptor powers = pointwise(kExp, pointwise(kSub, x, highest, kF32, scores), nullptr, kF32, scores);
    const Descriptor sum = reduce(kReduceAdd, powers, column);
    // The logarithm of the sum is read by nobody, but without it the engines do not know the softmax.
    pointwise(kAdd, highest, pointwise(kLog, sum, nullptr, kF32, column), kF32, column);
    matmul(pointwise(kDiv, powers, sum, type, scores), v, o);

    const Descriptor graph = own_.make(kGraph);
    own_.set(graph, kGraphOperations, kTypeDescriptor, int64_t(operations_.size()), operations_.data());
    own_.set(graph, kGraphHandle, kTypeHandle, 1, &handle);
    own_.finalize(graph, "building the graph of an attention");
    return graph;
  }

  /// Row s stands at column p = s + cols - rows. Causal hides what is right of p, a window what is `window` or more away from it.
  Descriptor band(const ait_attention_v1& args, Descriptor x, const Four& scores) {
    const float hidden = -std::numeric_limits<float>::infinity();
    const int64_t lead = args.cols - args.rows;
    Descriptor row = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 2), col = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 3);
    if (lead != 0) {
      row = pointwise(kAdd, row, scalar(int32_t(args.cols)), kI32, scores, kI32, 3);
      row = pointwise(kSub, row, scalar(int32_t(args.rows)), kI32, scores, kI32, 3);
    }
    if (!args.causal) row = pointwise(kAdd, row, scalar(int32_t(args.window - 1)), kI32, scores, kI32, 3);
    const Descriptor left = pointwise(kGreaterEqual, row, col, kBool, scores, kBool);
    x = pointwise(kSelect, x, scalar(hidden), kF32, scores, kF32, -1, left);
    if (args.window <= 0) return x;
    row = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 2), col = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 3);
    col = pointwise(kAdd, col, scalar(float(args.window - lead)), kF32, scores, kF32, 3);
    const Descriptor right = pointwise(kGreater, col, row, kBool, scores, kBool);
    return pointwise(kSelect, x, scalar(hidden), kF32, scores, kF32, -1, right);
  }

  Descriptors own_;
  std::vector<Descriptor> operations_;
  std::deque<Scalar> scalars_;
  int64_t last_id_ = 0, q_ = 0, k_ = 0, v_ = 0, o_ = 0, mask_ = 0;
  Descriptor plan_ = nullptr;
  int64_t workspace_ = 0;
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_SDPA_H_
