#include "environment.h"

#include "gpu/api.h"

namespace ait::runtime {

DLDevice current_device() {
  int id = 0;
  if (GPU(GetDevice)(&id) != gpu::kSuccess) (void)GPU(GetLastError)();
  return {gpu::kIsRocm ? kDLROCM : kDLCUDA, id};
}

bool is_recorded(void* stream) {
  GPU(StreamCaptureStatus) status = GPU(StreamCaptureStatusNone);
  if (GPU(StreamIsCapturing)(static_cast<gpu::Stream>(stream), &status) != gpu::kSuccess) {
    (void)GPU(GetLastError)();
    return false;
  }
  return status != GPU(StreamCaptureStatusNone);
}

void* allocate_on(void* stream, size_t bytes) noexcept {
  void* data = nullptr;
  if (GPU(MallocAsync)(&data, bytes == 0 ? 1 : bytes, static_cast<gpu::Stream>(stream)) == gpu::kSuccess) return data;
  (void)GPU(GetLastError)();
  return nullptr;
}

void release_on(void* stream, void* data) noexcept { (void)GPU(FreeAsync)(data, static_cast<gpu::Stream>(stream)); }

}  // namespace ait::runtime
