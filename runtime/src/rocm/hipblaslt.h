/// @file hipblaslt.h
/// @brief The part of the hipBLASLt C interface that we call, under the names of `cuda/cublaslt_api.h`, declared here so that building needs no
/// hipBLASLt. Values and signatures are those of ROCm 6.
///
/// hipBLASLt takes no preference but the workspace, and its algorithms have no description that outlives a process: a gemm that names an
/// algorithm runs on the first of the library's own list.
#ifndef AIT_ROCM_HIPBLASLT_H_
#define AIT_ROCM_HIPBLASLT_H_

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <string>
#include <vector>

#include "dynamic_library.h"
#include "gemm.h"

namespace ait::runtime::lt {

using Handle = void*;
using Descriptor = void*;
using Status = int;

inline constexpr Status kSuccess = 0;

inline const LibraryName kLibrary{"hipBLASLt", "hipblaslt", "AIT_HIPBLASLT", "install hipblaslt (ROCm 6 or later)",
                                  {"libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"}};

// hipDataType
inline constexpr int kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14;
// hipblasComputeType_t
inline constexpr int kComputeF32 = 2, kComputeBf16 = 5, kComputeTf32 = 6, kComputeF64 = 7;
// hipblasOperation_t
inline constexpr int32_t kNoTranspose = 111, kTranspose = 112;
// hipblasLtMatrixLayoutAttribute_t
inline constexpr int kLayoutBatchCount = 0, kLayoutBatchStride = 1;
// hipblasLtMatmulDescAttributes_t
inline constexpr int kDescTransA = 0, kDescTransB = 1, kDescEpilogue = 2, kDescBias = 3;
// hipblasLtEpilogue_t
inline constexpr uint32_t kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;
// hipblasLtMatmulPreferenceAttributes_t
inline constexpr int kPreferWorkspace = 1;

inline constexpr uint32_t kReduceInComputeType = 0, kReduceNothing = 0;  // not asked for

struct Algorithm {
  uint8_t data[16];
  size_t most_workspace;
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

/// @brief The functions of a loaded hipBLASLt.
struct Api {
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
  Status (*matmul)(Handle, Descriptor desc, const void* alpha, const void* a, Descriptor a_layout, const void* b, Descriptor b_layout,
                   const void* beta, const void* c, Descriptor c_layout, void* d, Descriptor d_layout, const Algorithm*, void* workspace,
                   size_t workspace_bytes, void* stream);

  const char* status_text(Status status) const { return status == 7 ? "not supported" : status == 3 ? "invalid value" : "failed"; }

  /// @brief Loads the first of `places` that has every function.
  /// @return whether there is one; if not, `error` lists the libraries that were tried.
  bool load(const std::vector<std::string>& places, std::string* error) {
    const std::vector<Symbol> symbols{
        {"hipblasLtCreate", create},
        {"hipblasLtMatrixLayoutCreate", layout_create},
        {"hipblasLtMatrixLayoutSetAttribute", layout_set},
        {"hipblasLtMatrixLayoutDestroy", layout_destroy},
        {"hipblasLtMatmulDescCreate", desc_create},
        {"hipblasLtMatmulDescSetAttribute", desc_set},
        {"hipblasLtMatmulDescDestroy", desc_destroy},
        {"hipblasLtMatmulPreferenceCreate", preference_create},
        {"hipblasLtMatmulPreferenceSetAttribute", preference_set},
        {"hipblasLtMatmulPreferenceDestroy", preference_destroy},
        {"hipblasLtMatmulAlgoGetHeuristic", heuristic},
        {"hipblasLtMatmul", matmul},
    };
    return load_functions(kLibrary, places, symbols, error);
  }
};

inline Status prefer(const Api&, Descriptor, uint32_t, const std::array<int64_t, 4>&) { return kSuccess; }

/// @brief A gemm as the library is told of it: element, compute and scale types, the operation, and its four matrices.
struct Matmul {
  int type = 0, compute = 0, scale = 0;
  Descriptor desc = nullptr;
  Descriptor a = nullptr, b = nullptr, c = nullptr, d = nullptr;
};

inline bool describe(const Api&, const Algorithm&, ait_gemm_algorithm_v1*) { return false; }
inline int roundings(const Api&, const Algorithm&, const Gemm&, bool) { return 1; }
inline int64_t room_for(const ait_gemm_algorithm_v1&, const Gemm&) { return 0; }
inline bool takes(const Api&, Handle, const Matmul&, const Gemm&, bool, int64_t, const ait_gemm_algorithm_v1&, Algorithm*) { return false; }

}  // namespace ait::runtime::lt

#endif  // AIT_ROCM_HIPBLASLT_H_
