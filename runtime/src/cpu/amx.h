/// @file amx.h
/// @brief The service "amx" of the CPU.
#ifndef AIT_RUNTIME_CPU_AMX_H_
#define AIT_RUNTIME_CPU_AMX_H_

#include "ait/amx_service.h"

namespace ait::runtime {

extern const ait_amx_service_v1 kAmxService;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CPU_AMX_H_
