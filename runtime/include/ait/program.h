/// @file program.h
/// @brief The functions that the host code of a program calls: the address of a constant, and reports to an observer of the run.
#ifndef AIT_PROGRAM_H_
#define AIT_PROGRAM_H_

#include "ait/model_abi.h"

namespace ait {

/// @brief Where a run reads constant `index`: at the caller's address if it is bound there, else at its place in the blob.
inline const char* constant(const ait_run_v1* run, int32_t index, int64_t place) {
  const void* bound = run->bound == nullptr ? nullptr : run->bound[index];
  return bound != nullptr ? static_cast<const char*>(bound) : static_cast<const char*>(run->constants) + place;
}

/// @brief Says that launch number `launch` is next; -1: that a part has no more.
inline void observe(const ait_run_v1* run, int32_t launch) {
  if (run->observer != nullptr) run->observer->before(run->observer->self, launch, run->stream);
}

/// @brief Shows a result of launch number `launch`.
inline void show(const ait_run_v1* run, int32_t launch, int32_t result, const void* data, int32_t dtype, int64_t elements) {
  if (run->observer == nullptr || run->observer->result == nullptr) return;
  run->observer->result(run->observer->self, launch, result, data, dtype, elements, run->stream);
}

}  // namespace ait

#endif  // AIT_PROGRAM_H_
