/// @file ranks.h
/// @brief The services "ranks" and "permute" of the CPU, by MPI or sockets.
#ifndef AIT_RUNTIME_CPU_RANKS_H_
#define AIT_RUNTIME_CPU_RANKS_H_

#include "ait/permute_service.h"
#include "ait/ranks_service.h"

namespace ait::runtime {

extern const ait_ranks_service_v1 kRanksService;
extern const ait_permute_service_v1 kPermuteService;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CPU_RANKS_H_
