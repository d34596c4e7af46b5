/// @file ranks_service.h
/// @brief The service "ranks": data that passes between the processes that run one model.
#ifndef AIT_RANKS_SERVICE_H_
#define AIT_RANKS_SERVICE_H_

#include <stdint.h>

#include "ait/service.h"

/// Ranks that differ along some axes of a mesh. The place of a rank along axis i is rank / steps[i] % sizes[i].
typedef struct ait_group_v1 {
  int64_t ranks;         ///< of the whole mesh
  int32_t num_axes;
  const int64_t* sizes;  ///< of the axes of the group, the last one fastest
  const int64_t* steps;
} ait_group_v1;

/// Each member sends `bytes` bytes to each member, also to itself. Member i of the receiver's group fills `received` from i * bytes on.
typedef struct ait_exchange_v1 {
  ait_group_v1 group;
  const void* data;
  int64_t step;     ///< the data for member i begin at i * step; 0: all get the same
  int64_t bytes;
  void* received;
  uint64_t key;     ///< of the computation; all members must have the same
} ait_exchange_v1;

/// Where a member's place in its group goes.
typedef struct ait_place_v1 {
  ait_group_v1 group;
  int64_t* place;
} ait_place_v1;

struct ait_ranks_service_v1 {
  static constexpr const char* kName = "ranks";
  static constexpr int32_t kVersion = 1;
  /// Fails with a reason if there are not as many processes as the mesh has ranks.
  int32_t (*place)(const ait_host_v1* host, const ait_place_v1* args, void* stream);
  /// Returns when all members have sent. All ranks call it in the same order. Fails with a reason if a member computes something else or
  /// does not answer within AIT_RANKS_TIMEOUT seconds; then all later calls fail.
  int32_t (*exchange)(const ait_host_v1* host, const ait_exchange_v1* args, void* stream);
};

#endif  // AIT_RANKS_SERVICE_H_
