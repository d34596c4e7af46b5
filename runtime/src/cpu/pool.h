/// @file pool.h
/// @brief The threads that help with the loops of runs on the CPU (`ait/parallel.h`).
#ifndef AIT_RUNTIME_CPU_POOL_H_
#define AIT_RUNTIME_CPU_POOL_H_

#include "ait/parallel.h"

namespace ait::runtime {

extern const ait_threads_service_v1 kThreadsService;

/// @brief A run of the calling thread begins: it may use all threads of the process that no other run has, and always its own. So runs at the
/// same time have no more threads together than there are, and one for each caller. Runs of one thread may lie in each other.
void enter_run();
void leave_run() noexcept;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CPU_POOL_H_
