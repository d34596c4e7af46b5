/// @file ranges.h
/// @brief Names of launches for a profiler that watches the process: `src/cuda` has NVTX, `src/rocm` none.
#ifndef AIT_RUNTIME_GPU_RANGES_H_
#define AIT_RUNTIME_GPU_RANGES_H_

namespace ait::runtime {

/// @brief Whether the user asks for ranges, with AIT_NVTX=1. Throws an Error of kind kInput if they do and this library was built without NVTX.
bool has_ranges();
/// @brief Opens a range of this thread.
void open_range(const char* name);
/// @brief Closes the range that this thread opened last.
void close_range();

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GPU_RANGES_H_
