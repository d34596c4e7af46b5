#include "gpu/ranges.h"

#include <cstdlib>
#include <string_view>

#include "error.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define AIT_HAS_NVTX 1
#endif

namespace ait::runtime {

bool has_ranges() {
  static const bool is_wanted = [] {
    const char* const text = std::getenv("AIT_NVTX");
    return text != nullptr && std::string_view(text) == "1";
  }();
#ifndef AIT_HAS_NVTX
  if (is_wanted) {
    fail(ErrorKind::kInput, "AIT_NVTX is 1, and CUDA's headers had no nvtx3/nvToolsExt.h when the runtime library was built: install NVTX's headers "
                            "(pip install 'cuda-toolkit[nvtx]'), or unset AIT_NVTX");
  }
#endif
  return is_wanted;
}

#ifdef AIT_HAS_NVTX

namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("ait_mlir");
  return handle;
}

}  // namespace

void open_range(const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

void close_range() { nvtxDomainRangePop(domain()); }

#else

void open_range(const char*) {}
void close_range() {}

#endif

}  // namespace ait::runtime
