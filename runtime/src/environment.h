/// @file environment.h
/// @brief The environment of a foreign function that runs as part of a model: the device, and memory for tensors that it makes on a stream.
#ifndef AIT_RUNTIME_ENVIRONMENT_H_
#define AIT_RUNTIME_ENVIRONMENT_H_

#include <dlpack/dlpack.h>

#include <cstddef>

namespace ait::runtime {

/// @brief The current device of this thread; during a run, the model's device.
DLDevice current_device();

/// @brief Whether `stream` is recorded into a graph now.
bool is_recorded(void* stream);

/// @brief Memory in the order of `stream`, at least 64-byte aligned; null if there is none. Freed by `release_on`.
void* allocate_on(void* stream, size_t bytes) noexcept;
void release_on(void* stream, void* data) noexcept;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_ENVIRONMENT_H_
