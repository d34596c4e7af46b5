#include "services.h"

#include "cpu/amx.h"
#include "gemm.h"

namespace ait::runtime {

const std::vector<Service>& device_services() {
  static const std::vector<Service> list{service_of(kGemmService), service_of(kAmxService)};
  return list;
}

}  // namespace ait::runtime
