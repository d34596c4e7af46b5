/// @file cublaslt_api.h
/// @brief The part of the cuBLASLt C interface that we call, declared here so that building needs no cuBLAS headers.
///
/// The library itself is loaded at run time (see `Api::load`). Values and signatures are those of cuBLASLt 12 and 13;
/// `tests/kernels/test_library_headers.py` compares them with the real header where there is one.
#ifndef AIT_CUDA_CUBLASLT_API_H_
#define AIT_CUDA_CUBLASLT_API_H_

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <string>
#include <vector>

#include "dynamic_library.h"

namespace ait::runtime::lt {

using Handle = void*;
using Descriptor = void*;
using Status = int;

inline constexpr Status kSuccess = 0;

inline const LibraryName kLibrary{"cuBLASLt", "cublaslt", "AIT_CUBLASLT", "install nvidia-cublas (CUDA 13)",
                                  {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}};

// cudaDataType_t
inline constexpr int kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14;
// cublasComputeType_t
inline constexpr int kComputeF32 = 68, kComputeBf16 = 75, kComputeTf32 = 77, kComputeF64 = 70;
// cublasOperation_t
inline constexpr int32_t kNoTranspose = 0, kTranspose = 1;
// cublasLtMatrixLayoutAttribute_t
inline constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
// cublasLtMatmulDescAttributes_t
inline constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBias = 8;
// cublasLtEpilogue_t
inline constexpr uint32_t kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kPreferWorkspace = 1, kPreferReduction = 3, kPreferAlignA = 5, kPreferAlignB = 6, kPreferAlignC = 7, kPreferAlignD = 8;

// Masks of cublasLtReductionScheme_t: partial sums in the compute type, never in the result's; or none, so that k is not split
inline constexpr uint32_t kReduceInComputeType = 2, kReduceNothing = 0;

// cublasLtMatmulAlgoConfigAttributes_t
inline constexpr int kAlgorithmId = 0, kAlgorithmTile = 1, kAlgorithmSplitK = 2, kAlgorithmReduction = 3, kAlgorithmSwizzle = 4,
                     kAlgorithmCustom = 5, kAlgorithmStages = 6, kAlgorithmInner = 7, kAlgorithmCluster = 8;

struct Algorithm {
  uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

/// @brief The functions of a loaded cuBLASLt.
struct Api {
  size_t (*version)();
  const char* (*status_text)(Status);
  Status (*create)(Handle*);
  Status (*layout_create)(Descriptor*, int type, uint64_t rows, uint64_t cols, int64_t ld);
  Status (*layout_set)(Descriptor, int attribute, const void*, size_t);
  Status (*layout_destroy)(Descriptor);
  Status (*desc_create)(Descriptor*, int compute, int scale);
  Status (*desc_set)(Descriptor, int attribute, const void*, size_t);
  Status (*desc_destroy)(Descriptor);
  Status (*preference_create)(Descriptor*);
  Status (*preference_set)(Descriptor, int attribute, const void*, size_t);
  Status (*preference_destroy)(Descriptor);
  Status (*heuristic)(Handle, Descriptor desc, Descriptor a, Descriptor b, Descriptor c, Descriptor d, Descriptor preference, int wanted,
                      Heuristic* results, int* found);
  Status (*algorithm_init)(Handle, int compute, int scale, int a, int b, int c, int d, int id, Algorithm*);
  Status (*algorithm_set)(Algorithm*, int attribute, const void*, size_t);
  Status (*algorithm_check)(Handle, Descriptor desc, Descriptor a, Descriptor b, Descriptor c, Descriptor d, const Algorithm*, Heuristic*);
  Status (*algorithm_get)(const Algorithm*, int attribute, void*, size_t, size_t* written);
  Status (*matmul)(Handle, Descriptor desc, const void* alpha, const void* a, Descriptor a_layout, const void* b, Descriptor b_layout,
                   const void* beta, const void* c, Descriptor c_layout, void* d, Descriptor d_layout, const Algorithm*, void* workspace,
                   size_t workspace_bytes, void* stream);

  /// @brief Loads the first of `places` that has every function.
  /// @return whether there is one; if not, `error` lists the libraries that were tried.
  bool load(const std::vector<std::string>& places, std::string* error) {
    const std::vector<Symbol> symbols{
        {"cublasLtGetVersion", version},
        {"cublasLtGetStatusString", status_text},
        {"cublasLtCreate", create},
        {"cublasLtMatrixLayoutCreate", layout_create},
        {"cublasLtMatrixLayoutSetAttribute", layout_set},
        {"cublasLtMatrixLayoutDestroy", layout_destroy},
        {"cublasLtMatmulDescCreate", desc_create},
        {"cublasLtMatmulDescSetAttribute", desc_set},
        {"cublasLtMatmulDescDestroy", desc_destroy},
        {"cublasLtMatmulPreferenceCreate", preference_create},
        {"cublasLtMatmulPreferenceSetAttribute", preference_set},
        {"cublasLtMatmulPreferenceDestroy", preference_destroy},
        {"cublasLtMatmulAlgoGetHeuristic", heuristic},
        {"cublasLtMatmulAlgoInit", algorithm_init},
        {"cublasLtMatmulAlgoConfigSetAttribute", algorithm_set},
        {"cublasLtMatmulAlgoCheck", algorithm_check},
        {"cublasLtMatmulAlgoConfigGetAttribute", algorithm_get},
        {"cublasLtMatmul", matmul},
    };
    return load_functions(kLibrary, places, symbols, error);
  }
};

/// @brief Asks for algorithms that add up partial sums in the ways of a mask only, on matrices that begin on so many bytes (A, B, C, D).
inline Status prefer(const Api& api, Descriptor preference, uint32_t reductions, const std::array<int64_t, 4>& alignments) {
  constexpr int kAttributes[] = {kPreferAlignA, kPreferAlignB, kPreferAlignC, kPreferAlignD};
  Status status = api.preference_set(preference, kPreferReduction, &reductions, sizeof reductions);
  for (size_t i = 0; i < alignments.size(); ++i) {
    const uint32_t bytes = uint32_t(alignments[i]);
    if (status == kSuccess) status = api.preference_set(preference, kAttributes[i], &bytes, sizeof bytes);
  }
  return status;
}

}  // namespace ait::runtime::lt

#endif  // AIT_CUDA_CUBLASLT_API_H_
