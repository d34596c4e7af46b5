/// @file amx_service.h
/// @brief Whether models may use the matrix unit of x86 processors (AMX).
#ifndef AIT_AMX_SERVICE_H_
#define AIT_AMX_SERVICE_H_

namespace ait::runtime {

/// @brief Whether this process may use tiles of bf16: the processor has them, the kernel lets it, and nobody said no.
bool may_use_amx();

/// @brief Says whether models use it where that is possible, from their next run on; first AIT_AMX says so: not if it is 0.
/// @return what held before
bool set_amx(bool wanted);

}  // namespace ait::runtime

#endif  // AIT_AMX_SERVICE_H_
