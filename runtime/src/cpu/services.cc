#include "services.h"

#include "cpu/amx.h"
#include "cpu/pool.h"
#include "cpu/ranks.h"
#include "gemm.h"
#include "kernel_libraries.h"

namespace ait::runtime {

const std::vector<Service>& device_services() {
  static const std::vector<Service> list{service_of(kGemmService), service_of(kAmxService), service_of(kThreadsService),
                                         service_of(kFfiService), service_of(kRanksService), service_of(kPermuteService)};
  return list;
}

}  // namespace ait::runtime
