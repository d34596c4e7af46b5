/// @file service.h
/// @brief How a model library calls functions of the runtime library: through services, tables of functions with a name and a version.
///
/// A service is a struct of function pointers with the members `kName` and `kVersion`, in a header of its own (`ait/gemm_service.h`). Code that
/// includes the header puts the service on the list of those that the model library needs. The runtime library looks up all of them when
/// it loads the model. So a new service is a new header; no other struct changes.
#ifndef AIT_SERVICE_H_
#define AIT_SERVICE_H_

#include "ait/context.h"
#include "ait/model_abi.h"

namespace ait {

namespace detail {

inline ait_service_v1* first_service = nullptr;

/// @brief An entry of the list of this model library, made when the library is loaded.
template <class Table>
struct NeededService {
  ait_service_v1 entry;
  NeededService() : entry{Table::kName, Table::kVersion, nullptr, first_service} { first_service = &entry; }
};

template <class Table>
inline NeededService<Table> needed_service;

}  // namespace detail

/// @brief The services that this model library needs, for `ait_model_v1::services`.
inline ait_service_v1* needed_services() { return detail::first_service; }

/// @brief The functions of a service. Null only in code that no runtime library loaded.
template <class Table>
const Table* find_service() {
  return static_cast<const Table*>(detail::needed_service<Table>.entry.table);
}

/// @brief Calls `function` of a service on the stream of a run. Returns its status, 0 for success.
template <class Table, class Args>
int32_t call_service(const Context& ctx, int32_t (*Table::*function)(const ait_host_v1*, const Args*, void*), const Args& args) {
  const Table* const table = find_service<Table>();
  if (table == nullptr) return ctx.fail("a service was called in a library that no runtime library has loaded");
  return (table->*function)(ctx.host, &args, ctx.stream);
}

}  // namespace ait

#endif  // AIT_SERVICE_H_
