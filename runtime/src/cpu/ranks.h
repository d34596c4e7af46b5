/// @file ranks.h
/// @brief The service "ranks" of the CPU, by MPI.
#ifndef AIT_RUNTIME_CPU_RANKS_H_
#define AIT_RUNTIME_CPU_RANKS_H_

#include "ait/ranks_service.h"

namespace ait::runtime {

extern const ait_ranks_service_v1 kRanksService;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CPU_RANKS_H_
