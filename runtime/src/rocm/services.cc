#include "services.h"

#include "gemm.h"

namespace ait::runtime {

const std::vector<Service>& device_services() {
  static const std::vector<Service> list{service_of(kGemmService)};
  return list;
}

}  // namespace ait::runtime
