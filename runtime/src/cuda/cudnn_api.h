/// @file cudnn_api.h
/// @brief The part of the cuDNN 9 graph interface that we call, declared here so that building needs no cuDNN headers.
///
/// The library itself is loaded at run time (see `Api::load`). Values and signatures are those of cuDNN 9;
/// `tests/kernels/test_cudnn_api.py` compares them with the real header where there is one.
#ifndef AIT_CUDA_CUDNN_API_H_
#define AIT_CUDA_CUDNN_API_H_

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "dynamic_library.h"

namespace ait::runtime::dnn {

using Handle = void*;
using Descriptor = void*;
using Status = int;

inline constexpr Status kSuccess = 0;

inline const LibraryName kLibrary{"cuDNN", "cudnn", "AIT_CUDNN", "install nvidia-cudnn-cu13", {"libcudnn.so.9"}};

// cudnnBackendDescriptorType_t
inline constexpr int kPointwise = 0, kConvolution = 1, kEngine = 2, kEngineConfig = 3, kEngineHeuristics = 4, kExecutionPlan = 5,
                     kConvolutionOperation = 10, kPointwiseOperation = 13, kGraph = 15,
                     kVariantPack = 16, kTensor = 17, kMatmul = 18, kMatmulOperation = 19, kReduction = 21, kReductionOperation = 22;

// cudnnBackendAttributeType_t
inline constexpr int kTypeHandle = 0, kTypeDataType = 1, kTypeBoolean = 2, kTypeInt64 = 3, kTypeFloat = 4, kTypePointer = 6,
                     kTypeConvolutionMode = 7, kTypeHeuristicMode = 8, kTypeNumericalNote = 11,
                     kTypePointwiseMode = 14, kTypeDescriptor = 15, kTypeReduction = 18;

// cudnnBackendAttributeName_t
inline constexpr int kPointwiseMode = 0, kPointwisePrecision = 1, kPointwiseAxis = 9;
inline constexpr int kConvolutionPrecision = 100, kConvolutionMode = 101, kConvolutionDilations = 102, kConvolutionStrides = 103,
                     kConvolutionPadAfter = 104, kConvolutionPadBefore = 105, kConvolutionSpatialDims = 106;
inline constexpr int kHeuristicsMode = 200, kHeuristicsGraph = 201, kHeuristicsResults = 202;
inline constexpr int kConfigEngine = 300;
inline constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
inline constexpr int kConvolutionOperationAlpha = 700, kConvolutionOperationBeta = 701, kConvolutionOperationDesc = 702,
                     kConvolutionOperationW = 703, kConvolutionOperationX = 704, kConvolutionOperationY = 705;
inline constexpr int kPointwiseOperationDesc = 750, kPointwiseOperationX = 751, kPointwiseOperationB = 752, kPointwiseOperationY = 753,
                     kPointwiseOperationT = 758;
inline constexpr int kGraphHandle = 800, kGraphOperations = 801;
inline constexpr int kTensorAlignment = 900, kTensorDataType = 901, kTensorDims = 902, kTensorStrides = 903, kTensorId = 906,
                     kTensorIsVirtual = 907, kTensorIsByValue = 908;
inline constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
inline constexpr int kEngineNotes = 1303;
inline constexpr int kMatmulPrecision = 1500;
inline constexpr int kMatmulOperationA = 1520, kMatmulOperationB = 1521, kMatmulOperationC = 1522, kMatmulOperationDesc = 1523;
inline constexpr int kReductionOperator = 1600, kReductionPrecision = 1601;
inline constexpr int kReductionOperationX = 1610, kReductionOperationY = 1611, kReductionOperationDesc = 1612;

// cudnnDataType_t
inline constexpr int kF32 = 0, kF16 = 2, kI32 = 4, kBf16 = 9, kBool = 11;
// cudnnPointwiseMode_t
inline constexpr int kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kRelu = 100, kTanh = 101,
                     kSigmoid = 102, kGelu = 104, kSwish = 106, kFastGelu = 107, kGreater = 302, kGreaterEqual = 303, kGenIndex = 501,
                     kSelect = 601;
// cudnnConvolutionMode_t
inline constexpr int kCrossCorrelation = 1;
// cudnnBackendNumericalNote_t
inline constexpr int kNoteTensorCore = 0, kNoteDownConvert = 1, kNoteReducedReduction = 2, kNoteFft = 3, kNoteWinograd6x6 = 7, kNoteWinograd13x13 = 8;
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

  /// @brief Loads the first of `places` that has every function and is recent enough.
  /// @return whether there is one; if not, `error` lists the libraries that were tried.
  bool load(const std::vector<std::string>& places, std::string* error) {
    const std::vector<Symbol> symbols{
        {"cudnnGetVersion", version},
        {"cudnnGetErrorString", status_text},
        {"cudnnGetLastErrorString", last_error},
        {"cudnnCreate", create},
        {"cudnnSetStream", set_stream},
        {"cudnnBackendCreateDescriptor", make},
        {"cudnnBackendDestroyDescriptor", destroy},
        {"cudnnBackendSetAttribute", set},
        {"cudnnBackendGetAttribute", get},
        {"cudnnBackendFinalize", finalize},
        {"cudnnBackendExecute", execute},
    };
    return load_functions(kLibrary, places, symbols, error, [this] {
      const bool recent = version() / 10000 == 9 && version() >= kFirstVersion;
      return recent ? std::string() : "is version " + std::to_string(version()) + ", expected a cuDNN 9 from 9.10.2 on";
    });
  }
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_API_H_
