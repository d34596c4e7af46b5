/// @file read_dim.h
/// @brief The value of a dim that a launch has bound.
#ifndef AIT_KERNELS_CPU_READ_DIM_H_
#define AIT_KERNELS_CPU_READ_DIM_H_

#include <stdint.h>

#include "ait/context.h"

namespace ait::cpu {

/// @brief Reads `source` into `value`, which holds the most that it may be. Fails for a value that is not between 0 and that.
inline int32_t read_dim(const Context& ctx, const int64_t* source, int64_t* value) {
  const int64_t found = *source;
  if (found < 0 || found > *value) return ctx.fail("a launch has bound a dim to a value outside of its bounds");
  *value = found;
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_READ_DIM_H_
