/// @file environment.h
/// @brief What a foreign function that runs as part of a model finds around it: the device, and memory for what it makes on a stream.
#ifndef AIT_RUNTIME_ENVIRONMENT_H_
#define AIT_RUNTIME_ENVIRONMENT_H_

#include <dlpack/dlpack.h>

#include <cstddef>

namespace ait::runtime {

/// @brief The current device of this thread. During a run it is that of the model.
DLDevice current_device();

/// @brief Whether `stream` is recorded into a graph now.
bool is_recorded(void* stream);

/// @brief Memory in the order of `stream`, at least 64-byte aligned; null if there is none. Freed by `release_on`.
void* allocate_on(void* stream, size_t bytes) noexcept;
void release_on(void* stream, void* data) noexcept;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_ENVIRONMENT_H_
