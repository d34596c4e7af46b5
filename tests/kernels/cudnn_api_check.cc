// Compares our declarations of cuDNN with its own header. Compiled by test_library_headers.py; never run.
#include <cudnn.h>

#include <type_traits>

#include "cudnn_api.h"

namespace dnn = ait::runtime::dnn;

static_assert(dnn::kSuccess == CUDNN_STATUS_SUCCESS);
static_assert(sizeof(dnn::Status) == sizeof(cudnnStatus_t) && sizeof(int) == sizeof(cudnnBackendAttributeName_t));

// cudnnBackendDescriptorType_t
static_assert(dnn::kPointwise == CUDNN_BACKEND_POINTWISE_DESCRIPTOR && dnn::kEngineConfig == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
static_assert(dnn::kEngineHeuristics == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && dnn::kGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
static_assert(dnn::kConvolution == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR && dnn::kEngine == CUDNN_BACKEND_ENGINE_DESCRIPTOR);
static_assert(dnn::kConvolutionOperation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
static_assert(dnn::kExecutionPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && dnn::kTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR);
static_assert(dnn::kPointwiseOperation == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
static_assert(dnn::kVariantPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && dnn::kMatmul == CUDNN_BACKEND_MATMUL_DESCRIPTOR);
static_assert(dnn::kMatmulOperation == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR && dnn::kReduction == CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
static_assert(dnn::kReductionOperation == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);

// cudnnBackendAttributeType_t
static_assert(dnn::kTypeHandle == CUDNN_TYPE_HANDLE && dnn::kTypeDataType == CUDNN_TYPE_DATA_TYPE);
static_assert(dnn::kTypeBoolean == CUDNN_TYPE_BOOLEAN && dnn::kTypeInt64 == CUDNN_TYPE_INT64 && dnn::kTypePointer == CUDNN_TYPE_VOID_PTR);
static_assert(dnn::kTypeFloat == CUDNN_TYPE_FLOAT && dnn::kTypeConvolutionMode == CUDNN_TYPE_CONVOLUTION_MODE);
static_assert(dnn::kTypeNumericalNote == CUDNN_TYPE_NUMERICAL_NOTE);
static_assert(dnn::kTypeHeuristicMode == CUDNN_TYPE_HEUR_MODE && dnn::kTypePointwiseMode == CUDNN_TYPE_POINTWISE_MODE);
static_assert(dnn::kTypeDescriptor == CUDNN_TYPE_BACKEND_DESCRIPTOR && dnn::kTypeReduction == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);

// cudnnBackendAttributeName_t
static_assert(dnn::kPointwiseMode == CUDNN_ATTR_POINTWISE_MODE && dnn::kPointwisePrecision == CUDNN_ATTR_POINTWISE_MATH_PREC);
static_assert(dnn::kPointwiseAxis == CUDNN_ATTR_POINTWISE_AXIS && dnn::kHeuristicsMode == CUDNN_ATTR_ENGINEHEUR_MODE);
static_assert(dnn::kHeuristicsGraph == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH && dnn::kHeuristicsResults == CUDNN_ATTR_ENGINEHEUR_RESULTS);
static_assert(dnn::kPlanHandle == CUDNN_ATTR_EXECUTION_PLAN_HANDLE && dnn::kPlanConfig == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
static_assert(dnn::kPlanWorkspace == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
static_assert(dnn::kConvolutionPrecision == CUDNN_ATTR_CONVOLUTION_COMP_TYPE && dnn::kConvolutionMode == CUDNN_ATTR_CONVOLUTION_CONV_MODE);
static_assert(dnn::kConvolutionDilations == CUDNN_ATTR_CONVOLUTION_DILATIONS);
static_assert(dnn::kConvolutionStrides == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
static_assert(dnn::kConvolutionPadAfter == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
static_assert(dnn::kConvolutionPadBefore == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
static_assert(dnn::kConvolutionSpatialDims == CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS && dnn::kConfigEngine == CUDNN_ATTR_ENGINECFG_ENGINE);
static_assert(dnn::kConvolutionOperationAlpha == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
static_assert(dnn::kConvolutionOperationBeta == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
static_assert(dnn::kConvolutionOperationDesc == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
static_assert(dnn::kConvolutionOperationW == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
static_assert(dnn::kConvolutionOperationX == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
static_assert(dnn::kConvolutionOperationY == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
static_assert(dnn::kEngineNotes == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
static_assert(dnn::kPointwiseOperationDesc == CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
static_assert(dnn::kPointwiseOperationX == CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
static_assert(dnn::kPointwiseOperationB == CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
static_assert(dnn::kPointwiseOperationY == CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
static_assert(dnn::kPointwiseOperationT == CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
static_assert(dnn::kGraphHandle == CUDNN_ATTR_OPERATIONGRAPH_HANDLE && dnn::kGraphOperations == CUDNN_ATTR_OPERATIONGRAPH_OPS);
static_assert(dnn::kTensorAlignment == CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT && dnn::kTensorDataType == CUDNN_ATTR_TENSOR_DATA_TYPE);
static_assert(dnn::kTensorDims == CUDNN_ATTR_TENSOR_DIMENSIONS && dnn::kTensorStrides == CUDNN_ATTR_TENSOR_STRIDES);
static_assert(dnn::kTensorId == CUDNN_ATTR_TENSOR_UNIQUE_ID && dnn::kTensorIsVirtual == CUDNN_ATTR_TENSOR_IS_VIRTUAL);
static_assert(dnn::kTensorIsByValue == CUDNN_ATTR_TENSOR_IS_BY_VALUE && dnn::kPackIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
static_assert(dnn::kPackPointers == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS && dnn::kPackWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
static_assert(dnn::kMatmulPrecision == CUDNN_ATTR_MATMUL_COMP_TYPE && dnn::kMatmulOperationA == CUDNN_ATTR_OPERATION_MATMUL_ADESC);
static_assert(dnn::kMatmulOperationB == CUDNN_ATTR_OPERATION_MATMUL_BDESC && dnn::kMatmulOperationC == CUDNN_ATTR_OPERATION_MATMUL_CDESC);
static_assert(dnn::kMatmulOperationDesc == CUDNN_ATTR_OPERATION_MATMUL_DESC);
static_assert(dnn::kReductionOperator == CUDNN_ATTR_REDUCTION_OPERATOR && dnn::kReductionPrecision == CUDNN_ATTR_REDUCTION_COMP_TYPE);
static_assert(dnn::kReductionOperationX == CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
static_assert(dnn::kReductionOperationY == CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
static_assert(dnn::kReductionOperationDesc == CUDNN_ATTR_OPERATION_REDUCTION_DESC);

// cudnnDataType_t, cudnnPointwiseMode_t, cudnnReduceTensorOp_t, cudnnBackendHeurMode_t
static_assert(dnn::kF32 == CUDNN_DATA_FLOAT && dnn::kF16 == CUDNN_DATA_HALF && dnn::kI32 == CUDNN_DATA_INT32);
static_assert(dnn::kBf16 == CUDNN_DATA_BFLOAT16 && dnn::kBool == CUDNN_DATA_BOOLEAN);
static_assert(dnn::kAdd == CUDNN_POINTWISE_ADD && dnn::kMul == CUDNN_POINTWISE_MUL && dnn::kDiv == CUDNN_POINTWISE_DIV);
static_assert(dnn::kSub == CUDNN_POINTWISE_SUB && dnn::kExp == CUDNN_POINTWISE_EXP && dnn::kLog == CUDNN_POINTWISE_LOG);
static_assert(dnn::kGreater == CUDNN_POINTWISE_CMP_GT && dnn::kGreaterEqual == CUDNN_POINTWISE_CMP_GE);
static_assert(dnn::kGenIndex == CUDNN_POINTWISE_GEN_INDEX && dnn::kSelect == CUDNN_POINTWISE_BINARY_SELECT);
static_assert(dnn::kRelu == CUDNN_POINTWISE_RELU_FWD && dnn::kTanh == CUDNN_POINTWISE_TANH_FWD && dnn::kSigmoid == CUDNN_POINTWISE_SIGMOID_FWD);
static_assert(dnn::kGelu == CUDNN_POINTWISE_GELU_FWD && dnn::kFastGelu == CUDNN_POINTWISE_GELU_APPROX_TANH_FWD);
static_assert(dnn::kSwish == CUDNN_POINTWISE_SWISH_FWD && dnn::kCrossCorrelation == CUDNN_CROSS_CORRELATION);
static_assert(dnn::kNoteTensorCore == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && dnn::kNoteDownConvert == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
static_assert(dnn::kNoteReducedReduction == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
static_assert(dnn::kNoteFft == CUDNN_NUMERICAL_NOTE_FFT && dnn::kNoteWinograd6x6 == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
static_assert(dnn::kNoteWinograd13x13 == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
static_assert(dnn::kReduceAdd == CUDNN_REDUCE_TENSOR_ADD && dnn::kReduceMax == CUDNN_REDUCE_TENSOR_MAX);
static_assert(dnn::kHeuristicsFallback == CUDNN_HEUR_MODE_FALLBACK && dnn::kHeuristicsA == CUDNN_HEUR_MODE_A);

// Signatures: every parameter is a pointer or an integer of the size that we declare.
template <class Ours, class Theirs>
struct SameShape : std::false_type {};
template <class A, class B>
inline constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class R, class S, class... A, class... B>
struct SameShape<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else if constexpr (std::is_void_v<R> || std::is_void_v<S>) {
      return std::is_void_v<R> && std::is_void_v<S> && (alike<A, B> && ...);
    } else {
      return alike<R, S> && (alike<A, B> && ...);
    }
  }();
};
#define CHECK(MEMBER, FUNCTION) static_assert(SameShape<decltype(dnn::Api::MEMBER), decltype(&FUNCTION)>::value)
CHECK(version, cudnnGetVersion);
CHECK(status_text, cudnnGetErrorString);
CHECK(last_error, cudnnGetLastErrorString);
CHECK(create, cudnnCreate);
CHECK(set_stream, cudnnSetStream);
CHECK(make, cudnnBackendCreateDescriptor);
CHECK(destroy, cudnnBackendDestroyDescriptor);
CHECK(set, cudnnBackendSetAttribute);
CHECK(get, cudnnBackendGetAttribute);
CHECK(finalize, cudnnBackendFinalize);
CHECK(execute, cudnnBackendExecute);
