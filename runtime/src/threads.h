/// @file threads.h
/// @brief The CPU threads of this process.
#ifndef AIT_RUNTIME_THREADS_H_
#define AIT_RUNTIME_THREADS_H_

namespace ait::runtime {

/// @brief How many CPU threads the runs of this process may use: AIT_NUM_THREADS, else what OpenMP had when the runtime library was loaded.
/// A run has those that no other run has, and its caller's (`src/cpu/device.cc`); its OpenMP regions and the gemm library use as many.
int num_threads();

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_THREADS_H_
