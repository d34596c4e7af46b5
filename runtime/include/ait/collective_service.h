/// @file collective_service.h
/// @brief The service "collective": collectives of several GPUs on NCCL or RCCL.
#ifndef AIT_COLLECTIVE_SERVICE_H_
#define AIT_COLLECTIVE_SERVICE_H_

#include <stdint.h>

#include "ait/ranks_service.h"
#include "ait/service.h"

typedef enum ait_collective_kind {
  AIT_ALL_REDUCE = 0,
  AIT_ALL_GATHER = 1,
  AIT_REDUCE_SCATTER = 2,
  AIT_ALL_TO_ALL = 3,
  AIT_BROADCAST = 4,
  AIT_ALL_SLICE = 5
} ait_collective_kind;

/// In the order of ncclRedOp_t.
typedef enum ait_join { AIT_JOIN_SUM = 0, AIT_JOIN_PROD = 1, AIT_JOIN_MAX = 2, AIT_JOIN_MIN = 3 } ait_join;

/// A collective on row-major tensors. Of the dim that it divides or joins, a member's piece has `count` elements (with all dims after it) in
/// each of `rows` rows; all_reduce and broadcast have one row. A row of the larger tensor has the pieces of all members, one after another.
typedef struct ait_collective_v1 {
  ait_group_v1 group;
  int32_t kind;     ///< ait_collective_kind
  int32_t join;     ///< ait_join, of all_reduce and reduce_scatter
  int32_t dtype;
  int32_t root;     ///< of broadcast: a member of the group
  int64_t rows, count;
  int64_t out_rows, out_count;  ///< of all_to_all: the pieces in the result
  const void* data;
  void* result;
  void* workspace;  ///< room for the operand and the result; of all_gather for the result; unused by all_reduce, broadcast, all_slice
  uint64_t key;     ///< of the computation; all members must have the same
} ait_collective_v1;

struct ait_collective_service_v1 {
  static constexpr const char* kName = "collective";
  static constexpr int32_t kVersion = 1;
  /// Launches on `stream`. All ranks call it in the same order. The first call of a group makes a communicator, and the first call of a
  /// computation compares its key and sizes between the members; both need the host and cannot be done while a stream is captured. Later
  /// calls only launch, and can be captured. Fails with a reason that names the rank.
  int32_t (*run)(const ait_host_v1* host, const ait_collective_v1* args, void* stream);
};

namespace ait {

/// @brief Runs a collective on the stream of this run.
inline int32_t library_collective(const Context& ctx, const ait_collective_v1& args) {
  return call_service(ctx, &ait_collective_service_v1::run, args);
}

}  // namespace ait

#endif  // AIT_COLLECTIVE_SERVICE_H_
