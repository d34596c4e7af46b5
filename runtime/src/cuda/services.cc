#include "services.h"

#include "cudnn_services.h"
#include "gemm.h"
#include "gpu/collective.h"
#include "gpu/stream_service.h"
#include "kernel_libraries.h"

namespace ait::runtime {
namespace {

int32_t attention(const ait_host_v1* host, const ait_attention_v1* args, void* stream) {
  return compute_attention(*args, stream, &RunHost::of(host).error);
}
int32_t conv(const ait_host_v1* host, const ait_conv_v1* args, void* stream) {
  return compute_conv(*args, stream, &RunHost::of(host).error);
}

const ait_attention_service_v1 kAttentionService{attention};
const ait_conv_service_v1 kConvService{conv};

}  // namespace

const std::vector<Service>& device_services() {
  static const std::vector<Service> list{service_of(kGemmService), service_of(kAttentionService), service_of(kConvService),
                                         service_of(kFfiService), service_of(kStreamService), service_of(kRecordingService),
                                         service_of(kCollectiveService), service_of(kPeersService), service_of(kPermuteService)};
  return list;
}

}  // namespace ait::runtime
