#include "services.h"

#include "gemm.h"
#include "gpu/collective.h"
#include "gpu/stream_service.h"
#include "kernel_libraries.h"

namespace ait::runtime {

const std::vector<Service>& device_services() {
  static const std::vector<Service> list{service_of(kGemmService), service_of(kFfiService), service_of(kStreamService), service_of(kRecordingService),
                                         service_of(kCollectiveService), service_of(kPeersService), service_of(kPermuteService)};
  return list;
}

}  // namespace ait::runtime
