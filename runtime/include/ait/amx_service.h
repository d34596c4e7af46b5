/// @file amx_service.h
/// @brief The service "amx": whether kernels may use the matrix unit of x86 processors.
#ifndef AIT_AMX_SERVICE_H_
#define AIT_AMX_SERVICE_H_

#include <stdint.h>

#include "ait/service.h"

struct ait_amx_service_v1 {
  static constexpr const char* kName = "amx";
  static constexpr int32_t kVersion = 1;
  /// Not 0: the processor has tiles of bf16, the kernel permits them, and this process wants them.
  int32_t (*may_use)(void);
  /// Says whether this process wants them, from the next run on; first AIT_AMX says so: not if it is 0. Returns what held before.
  int32_t (*set_wanted)(int32_t wanted);
};

namespace ait {

/// @brief Whether the processor has AMX for bf16, and this process may use it.
inline bool may_use_amx() {
  const ait_amx_service_v1* const table = find_service<ait_amx_service_v1>();
  return table != nullptr && table->may_use() != 0;
}

}  // namespace ait

#endif  // AIT_AMX_SERVICE_H_
