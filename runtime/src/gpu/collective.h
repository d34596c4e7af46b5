/// @file collective.h
/// @brief The services "collective", "peers" and "permute", and the watch over runs that have collectives.
#ifndef AIT_RUNTIME_GPU_COLLECTIVE_H_
#define AIT_RUNTIME_GPU_COLLECTIVE_H_

#include <string>

#include "ait/collective_service.h"
#include "ait/peers_service.h"
#include "ait/permute_service.h"

namespace ait::runtime {

extern const ait_collective_service_v1 kCollectiveService;
extern const ait_peers_service_v1 kPeersService;
extern const ait_permute_service_v1 kPermuteService;

/// @brief Watches that what is on `stream` so far ends within AIT_RANKS_TIMEOUT seconds. If it does not, all communicators of this process
/// are ended, which ends the launches that wait for other ranks.
void watch_collectives(void* stream);

/// @brief Why no collective is possible any more; empty if all is well.
std::string collectives_failure();

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GPU_COLLECTIVE_H_
