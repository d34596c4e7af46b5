#include "services.h"

#include <cstring>
#include <mutex>

#include "device.h"
#include "error.h"
#include "forks.h"
#include "kernel_libraries.h"

namespace ait::runtime {

const void* find_service(const std::string& name, int32_t version) {
  for (const Service& service : device_services()) {
    if (name == service.name && version == service.version) return service.table;
  }
  return nullptr;
}

void bind_services(const ait_model_v1& model, const std::string& path) {
  // Two models may be made of one library at the same time: its entries exist once.
  static ProcessMutex lock(ProcessMutex::kServices);
  const std::lock_guard<ProcessMutex> held(lock);
  for (ait_service_v1* needed = model.services == nullptr ? nullptr : model.services(); needed != nullptr; needed = needed->next) {
    if (std::strncmp(needed->name, kCalleePrefix.c_str(), kCalleePrefix.size()) == 0) {
      std::string reason;
      needed->table = find_callee(needed->name, &reason);
      if (needed->table == nullptr) fail(ErrorKind::kArtifact, "model ", model.name, " cannot be loaded: ", reason);
      continue;
    }
    needed->table = find_service(needed->name, needed->version);
    if (needed->table != nullptr) continue;
    std::string known;
    for (const Service& service : device_services()) {
      known += std::string(known.empty() ? "" : ", ") + service.name + " " + std::to_string(service.version);
    }
    fail(ErrorKind::kArtifact, path, " needs the service \"", needed->name, "\" version ", needed->version, ", which is not in the ",
         device_target(), " runtime library (it has ", known, "): update ait_mlir, or compile the model again");
  }
}

}  // namespace ait::runtime
