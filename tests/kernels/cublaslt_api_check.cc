// Compares our declarations of cuBLASLt with its own header. Compiled by test_library_headers.py; never run.
#include <cublasLt.h>

#include <type_traits>

#include "cublaslt_api.h"

namespace lt = ait::runtime::lt;

static_assert(lt::kSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(lt::kF32 == CUDA_R_32F && lt::kF64 == CUDA_R_64F && lt::kF16 == CUDA_R_16F && lt::kBf16 == CUDA_R_16BF);
static_assert(lt::kComputeF32 == CUBLAS_COMPUTE_32F && lt::kComputeF64 == CUBLAS_COMPUTE_64F);
static_assert(lt::kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32 && lt::kComputeBf16 == CUBLAS_COMPUTE_32F_FAST_16BF);
static_assert(lt::kNoTranspose == CUBLAS_OP_N && lt::kTranspose == CUBLAS_OP_T);
static_assert(lt::kLayoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(lt::kLayoutBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(lt::kDescTransA == CUBLASLT_MATMUL_DESC_TRANSA && lt::kDescTransB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(lt::kDescEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && lt::kDescBias == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(lt::kEpilogueDefault == CUBLASLT_EPILOGUE_DEFAULT && lt::kEpilogueRelu == CUBLASLT_EPILOGUE_RELU);
static_assert(lt::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS && lt::kEpilogueGelu == CUBLASLT_EPILOGUE_GELU);
static_assert((lt::kEpilogueRelu | lt::kEpilogueBias) == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert((lt::kEpilogueGelu | lt::kEpilogueBias) == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(lt::kPreferWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(lt::kPreferReduction == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(lt::kReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(lt::kReduceNothing == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(lt::kPreferAlignA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(lt::kPreferAlignB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(lt::kPreferAlignC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(lt::kPreferAlignD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(lt::kAlgorithmId == CUBLASLT_ALGO_CONFIG_ID && lt::kAlgorithmSplitK == CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
static_assert(lt::kAlgorithmTile == CUBLASLT_ALGO_CONFIG_TILE_ID && lt::kAlgorithmStages == CUBLASLT_ALGO_CONFIG_STAGES_ID);
static_assert(lt::kAlgorithmReduction == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME && lt::kAlgorithmSwizzle == CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
static_assert(lt::kAlgorithmCustom == CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION && lt::kAlgorithmInner == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
static_assert(lt::kAlgorithmCluster == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) && sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(lt::Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(lt::Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

// Signatures: every parameter is a pointer or an integer of the size that we declare.
template <class Ours, class Theirs>
struct SameShape : std::false_type {};
template <class A, class B>
inline constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class R, class... A, class S, class... B>
struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && alike<R, S> && (alike<A, B> && ...)> {};
#define CHECK(MEMBER, FUNCTION) static_assert(SameShape<decltype(lt::Api::MEMBER), decltype(&FUNCTION)>::value)
CHECK(version, cublasLtGetVersion);
CHECK(status_text, cublasLtGetStatusString);
CHECK(create, cublasLtCreate);
CHECK(layout_create, cublasLtMatrixLayoutCreate);
CHECK(layout_set, cublasLtMatrixLayoutSetAttribute);
CHECK(layout_destroy, cublasLtMatrixLayoutDestroy);
CHECK(desc_create, cublasLtMatmulDescCreate);
CHECK(desc_set, cublasLtMatmulDescSetAttribute);
CHECK(desc_destroy, cublasLtMatmulDescDestroy);
CHECK(preference_create, cublasLtMatmulPreferenceCreate);
CHECK(preference_set, cublasLtMatmulPreferenceSetAttribute);
CHECK(preference_destroy, cublasLtMatmulPreferenceDestroy);
CHECK(heuristic, cublasLtMatmulAlgoGetHeuristic);
CHECK(algorithm_init, cublasLtMatmulAlgoInit);
CHECK(algorithm_set, cublasLtMatmulAlgoConfigSetAttribute);
CHECK(algorithm_check, cublasLtMatmulAlgoCheck);
CHECK(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute);
CHECK(matmul, cublasLtMatmul);
