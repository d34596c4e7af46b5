/// @file peers_service.h
/// @brief The service "peers": memory of each card of a group that all cards of the group write.
#ifndef AIT_PEERS_SERVICE_H_
#define AIT_PEERS_SERVICE_H_

#include <stdint.h>

#include "ait/collective_service.h"

/// The most members of a group.
#define AIT_MOST_PEERS 8
/// The most blocks of a launch.
#define AIT_PEER_BLOCKS 128

/// The start of a member's room. The slots follow: two for each member, of `bytes` bytes each. All is 0 at first.
typedef struct ait_peer_room_v1 {
  uint32_t arrived[AIT_MOST_PEERS][AIT_PEER_BLOCKS];  ///< by member: the number of the launch whose block has written to this room
  uint32_t launches;                                   ///< of this member that have ended
  uint32_t ended;                                      ///< blocks of its launch under way that have ended
  uint32_t unused[1022];
} ait_peer_room_v1;

/// The rooms of a group as one card sees them.
typedef struct ait_peer_memory_v1 {
  int32_t members, place;
  int64_t bytes;                         ///< of a slot
  ait_peer_room_v1* rooms[AIT_MOST_PEERS];  ///< of each member
  const uint32_t* stop;                  ///< in memory of the host: not 0 once no launch may wait for another card
} ait_peer_memory_v1;

/// What a launch sends.
typedef struct ait_peers_v1 {
  ait_group_v1 group;
  int64_t bytes;               ///< that each member sends to each other one
  uint64_t key;                ///< of the computation; all members must have the same
  ait_peer_memory_v1* memory;  ///< where the rooms go. 0 members: there are none, on no rank, or `bytes` are too many: use another way
} ait_peers_v1;

struct ait_peers_service_v1 {
  static constexpr const char* kName = "peers";
  static constexpr int32_t kVersion = 1;
  /// Orders the next launch on `stream` behind the last one with these rooms. All ranks call it in the same order. The first call of a group
  /// makes the rooms, and the first call of a computation compares its key and sizes between the members; both need the host and cannot be
  /// done while a stream is captured. Fails with a reason that names the rank.
  int32_t (*open)(const ait_host_v1* host, const ait_peers_v1* args, void* stream);
  /// Follows the launch.
  int32_t (*close)(const ait_host_v1* host, const ait_peers_v1* args, void* stream);
};

#endif  // AIT_PEERS_SERVICE_H_
