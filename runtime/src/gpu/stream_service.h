/// @file stream_service.h
/// @brief The services "streams" and "recording" of a GPU.
#ifndef AIT_RUNTIME_GPU_STREAM_SERVICE_H_
#define AIT_RUNTIME_GPU_STREAM_SERVICE_H_

#include "ait/stream_service.h"
#include "device.h"
#include "error.h"
#include "services.h"

namespace ait::runtime {

namespace stream_service {

/// Calls `body` with the streams of a run; an Error becomes the reason of its failure.
template <class Body>
int32_t with_streams(const ait_host_v1* host, const Body& body) {
  RunStreams* const streams = RunHost::of(host).streams;
  if (streams == nullptr) return host->fail(host->self, "this run has one stream only");
  try {
    body(*streams);
    return 0;
  } catch (const Error& error) {
    return host->fail(host->self, error.what());
  }
}

inline int32_t open(const ait_host_v1* host, int32_t index, void* first, void** stream) {
  return with_streams(host, [&](RunStreams& streams) { *stream = streams.stream(index, first); });
}
inline int32_t record(const ait_host_v1* host, int32_t event, void* stream) {
  return with_streams(host, [&](RunStreams& streams) { streams.event(event).record(stream); });
}
inline int32_t is_recorded(const ait_host_v1* host, void* stream, bool* recorded) {
  return with_streams(host, [&](RunStreams& streams) { *recorded = streams.is_recorded(stream); });
}
inline int32_t wait(const ait_host_v1* host, int32_t event, void* stream) {
  return with_streams(host, [&](RunStreams& streams) { streams.event(event).wait(stream); });
}

}  // namespace stream_service

inline constexpr ait_stream_service_v1 kStreamService{stream_service::open, stream_service::record, stream_service::wait};
inline constexpr ait_recording_service_v1 kRecordingService{stream_service::is_recorded};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GPU_STREAM_SERVICE_H_
