/// @file nccl.h
/// @brief The part of the C interface of NCCL that we call, declared here so that building needs no NCCL. RCCL has the same one. Values and
/// signatures are those of NCCL 2.7 and later.
#ifndef AIT_RUNTIME_GPU_NCCL_H_
#define AIT_RUNTIME_GPU_NCCL_H_

#include <stddef.h>

#include <string>
#include <vector>

#include "ait/model_abi.h"
#include "dynamic_library.h"
#include "gpu/api.h"

namespace ait::runtime::nccl {

using Comm = void*;
using Result = int;

inline constexpr Result kSuccess = 0, kInProgress = 7;

struct UniqueId {
  char internal[128];
};

// ncclDataType_t
inline constexpr int kInt8 = 0, kUint8 = 1, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9, kNone = -1;

/// @brief The type in which the library adds; `kNone` for one that it cannot add.
inline int type_of(int32_t dtype) {
  switch (dtype) {
    case AIT_F16: return kFloat16;
    case AIT_BF16: return kBfloat16;
    case AIT_F32: return kFloat32;
    case AIT_F64: return kFloat64;
    case AIT_I8: return kInt8;
    case AIT_UI8: return kUint8;
    case AIT_I32: return kInt32;
    case AIT_I64: return kInt64;
    default: return kNone;
  }
}

inline const LibraryName kLibrary{
    gpu::kIsRocm ? "RCCL" : "NCCL", "nccl", "AIT_NCCL",
    gpu::kIsRocm ? "install rccl (ROCm)" : "pip install nvidia-nccl-cu13 (or the one of your CUDA)",
    gpu::kIsRocm ? std::vector<const char*>{"librccl.so.1", "librccl.so"} : std::vector<const char*>{"libnccl.so.2", "libnccl.so"}};

struct Api {
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*comm_init_rank)(Comm*, int, UniqueId, int) = nullptr;
  Result (*comm_abort)(Comm) = nullptr;
  Result (*comm_get_async_error)(Comm, Result*) = nullptr;
  const char* (*get_error_string)(Result) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*all_reduce)(const void*, void*, size_t, int, int, Comm, gpu::Stream) = nullptr;
  Result (*all_gather)(const void*, void*, size_t, int, Comm, gpu::Stream) = nullptr;
  Result (*reduce_scatter)(const void*, void*, size_t, int, int, Comm, gpu::Stream) = nullptr;
  Result (*broadcast)(const void*, void*, size_t, int, int, Comm, gpu::Stream) = nullptr;
  Result (*send)(const void*, size_t, int, int, Comm, gpu::Stream) = nullptr;
  Result (*recv)(void*, size_t, int, int, Comm, gpu::Stream) = nullptr;
  std::string error;  ///< why there is no library; empty if it is loaded

  Api() {
    const std::vector<Symbol> symbols{{"ncclGetUniqueId", get_unique_id}, {"ncclCommInitRank", comm_init_rank}, {"ncclCommAbort", comm_abort},
                                      {"ncclCommGetAsyncError", comm_get_async_error}, {"ncclGetErrorString", get_error_string},
                                      {"ncclGroupStart", group_start}, {"ncclGroupEnd", group_end}, {"ncclAllReduce", all_reduce},
                                      {"ncclAllGather", all_gather}, {"ncclReduceScatter", reduce_scatter}, {"ncclBroadcast", broadcast},
                                      {"ncclSend", send}, {"ncclRecv", recv}};
    (void)load_functions(kLibrary, places_of(kLibrary), symbols, &error);
  }

  static Api& get() {
    static Api* const instance = new Api;
    return *instance;
  }
};

}  // namespace ait::runtime::nccl

#endif  // AIT_RUNTIME_GPU_NCCL_H_
