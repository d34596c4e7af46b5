/// @file cudnn_api.h
/// @brief The part of the cuDNN 9 graph interface that we call, declared here so that building needs no cuDNN headers.
///
/// The library itself is loaded at run time (see `Api::load`). Values and signatures are those of cuDNN 9;
/// `tests/kernels/test_cudnn_api.py` compares them with the real header where there is one.
#ifndef AIT_CUDA_CUDNN_API_H_
#define AIT_CUDA_CUDNN_API_H_

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include <string>
#include <type_traits>
#include <vector>

namespace ait::runtime::dnn {

using Handle = void*;
using Descriptor = void*;
using Status = int;

inline constexpr Status kSuccess = 0;

// cudnnBackendDescriptorType_t
inline constexpr int kPointwise = 0, kEngineConfig = 3, kEngineHeuristics = 4, kExecutionPlan = 5, kPointwiseOperation = 13, kGraph = 15,
                     kVariantPack = 16, kTensor = 17, kMatmul = 18, kMatmulOperation = 19, kReduction = 21, kReductionOperation = 22;

// cudnnBackendAttributeType_t
inline constexpr int kTypeHandle = 0, kTypeDataType = 1, kTypeBoolean = 2, kTypeInt64 = 3, kTypePointer = 6, kTypeHeuristicMode = 8,
                     kTypePointwiseMode = 14, kTypeDescriptor = 15, kTypeReduction = 18;

// cudnnBackendAttributeName_t
inline constexpr int kPointwiseMode = 0, kPointwisePrecision = 1, kPointwiseAxis = 9;
inline constexpr int kHeuristicsMode = 200, kHeuristicsGraph = 201, kHeuristicsResults = 202;
inline constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
inline constexpr int kPointwiseOperationDesc = 750, kPointwiseOperationX = 751, kPointwiseOperationB = 752, kPointwiseOperationY = 753,
                     kPointwiseOperationT = 758;
inline constexpr int kGraphHandle = 800, kGraphOperations = 801;
inline constexpr int kTensorAlignment = 900, kTensorDataType = 901, kTensorDims = 902, kTensorStrides = 903, kTensorId = 906,
                     kTensorIsVirtual = 907, kTensorIsByValue = 908;
inline constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
inline constexpr int kMatmulPrecision = 1500;
inline constexpr int kMatmulOperationA = 1520, kMatmulOperationB = 1521, kMatmulOperationC = 1522, kMatmulOperationDesc = 1523;
inline constexpr int kReductionOperator = 1600, kReductionPrecision = 1601;
inline constexpr int kReductionOperationX = 1610, kReductionOperationY = 1611, kReductionOperationDesc = 1612;

// cudnnDataType_t
inline constexpr int kF32 = 0, kF16 = 2, kI32 = 4, kBf16 = 9, kBool = 11;
// cudnnPointwiseMode_t
inline constexpr int kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kGreater = 302, kGreaterEqual = 303, kGenIndex = 501,
                     kSelect = 601;
// cudnnReduceTensorOp_t
inline constexpr int kReduceAdd = 0, kReduceMax = 3;
// cudnnBackendHeurMode_t
inline constexpr int kHeuristicsFallback = 2, kHeuristicsA = 3;

/// @brief The functions of a loaded cuDNN.
struct Api {
  size_t (*version)();
  const char* (*status_text)(Status);
  void (*last_error)(char* message, size_t bytes);
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, void* stream);
  Status (*make)(int kind, Descriptor*);
  Status (*destroy)(Descriptor);
  Status (*set)(Descriptor, int attribute, int type, int64_t count, const void*);
  Status (*get)(Descriptor, int attribute, int type, int64_t wanted, int64_t* count, void*);
  Status (*finalize)(Descriptor);
  Status (*execute)(Handle, Descriptor plan, Descriptor variant_pack);

  /// Attention of earlier versions lacks windows on both sides, or is known to be wrong (9.10.0 and 9.10.1).
  static constexpr size_t kFirstVersion = 91002;

  /// @brief Loads the first candidate that can be loaded, has every function and is recent enough.
  /// @return whether there is one; if not, `error` says what was tried.
  bool load(const std::vector<std::string>& candidates, std::string* error) {
    std::string tried;
    for (const std::string& path : candidates) {
      void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        const char* reason = dlerror();
        tried += "\n  " + path + ": " + (reason != nullptr ? reason : "cannot be loaded");
        continue;
      }
      bool whole = true;
      auto bind = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
        if (function == nullptr) {
          whole = false;
          tried += "\n  " + path + ": has no " + name;
        }
      };
      bind(version, "cudnnGetVersion");
      bind(status_text, "cudnnGetErrorString");
      bind(last_error, "cudnnGetLastErrorString");
      bind(create, "cudnnCreate");
      bind(set_stream, "cudnnSetStream");
      bind(make, "cudnnBackendCreateDescriptor");
      bind(destroy, "cudnnBackendDestroyDescriptor");
      bind(set, "cudnnBackendSetAttribute");
      bind(get, "cudnnBackendGetAttribute");
      bind(finalize, "cudnnBackendFinalize");
      bind(execute, "cudnnBackendExecute");
      if (whole && (version() / 10000 != 9 || version() < kFirstVersion)) {
        whole = false;
        tried += "\n  " + path + ": is version " + std::to_string(version()) + ", expected a cuDNN 9 from 9.10.2 on";
      }
      if (whole) return true;
      dlclose(library);
    }
    *error = "cuDNN cannot be loaded: install nvidia-cudnn-cu13, or set AIT_CUDNN to the path of libcudnn.so.9; tried:" + tried;
    return false;
  }
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_API_H_
