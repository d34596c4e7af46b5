/// @file permute_service.h
/// @brief The service "permute": messages from one rank of a group to another.
#ifndef AIT_PERMUTE_SERVICE_H_
#define AIT_PERMUTE_SERVICE_H_

#include <stdint.h>

#include "ait/ranks_service.h"
#include "ait/service.h"

/// Each pair sends the data of its first member to its second member. A member sends at most once and receives at most once.
typedef struct ait_permute_v1 {
  ait_group_v1 group;
  int32_t num_pairs;
  const int64_t* pairs;  ///< source and target of each pair, one pair after another
  const void* data;
  void* result;          ///< zeros on a member that receives nothing
  int64_t bytes;
  uint64_t key;          ///< of the computation; all members must have the same
} ait_permute_v1;

struct ait_permute_service_v1 {
  static constexpr const char* kName = "permute";
  static constexpr int32_t kVersion = 1;
  /// All ranks call it in the same order. On a CPU it returns when this rank has sent and received. On a GPU it launches on `stream`, under
  /// the rules of `ait_collective_service_v1::run`. Fails with a reason that names the rank.
  int32_t (*run)(const ait_host_v1* host, const ait_permute_v1* args, void* stream);
};

namespace ait {

/// @brief Sends and receives on the stream of this run.
inline int32_t library_permute(const Context& ctx, const ait_permute_v1& args) { return call_service(ctx, &ait_permute_service_v1::run, args); }

}  // namespace ait

#endif  // AIT_PERMUTE_SERVICE_H_
