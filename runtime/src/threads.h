/// @file threads.h
/// @brief The CPU threads of this process.
#ifndef AIT_RUNTIME_THREADS_H_
#define AIT_RUNTIME_THREADS_H_

#include <cstddef>
#include <functional>

namespace ait::runtime {

/// @brief The number of CPU threads for the runs of this process: AIT_NUM_THREADS, else OMP_NUM_THREADS, else one for each CPU that the process
/// might use at the first call. A run has the threads that no other run has, and its caller's (`src/cpu/pool.h`).
int num_threads();

/// @brief Calls `work(i)` for each i below `count`, each on a thread of its own, that of 0 on the caller's; returns when all have ended.
///
/// Throws the first exception of a call. If a thread cannot be started, it makes no call and throws an Error of kind kMemory.
void run_threads(size_t count, const std::function<void(size_t)>& work);

/// @brief Calls `work` on the caller's thread and on up to `count - 1` others, on fewer where no more can be started: all take pieces of one work.
/// Throws the first exception of a call.
void share_work(size_t count, const std::function<void()>& work);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_THREADS_H_
