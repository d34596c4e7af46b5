/// @file stream_service.h
/// @brief The service "streams": streams beside the run's own stream, and events that order launches on different streams.
#ifndef AIT_STREAM_SERVICE_H_
#define AIT_STREAM_SERVICE_H_

#include <stdint.h>

#include "ait/service.h"

/// All functions return 0, or the status of `host->fail`. A run has its streams and events for itself while it launches. Streams and events
/// are made at their first use and used again by later runs.
struct ait_stream_service_v1 {
  static constexpr const char* kName = "streams";
  static constexpr int32_t kVersion = 1;
  /// Writes stream `index`, from 1 on, of the run whose stream 0 is `first`.
  int32_t (*open)(const ait_host_v1* host, int32_t index, void* first, void** stream);
  /// The event happens when what is on `stream` so far has ended.
  int32_t (*record)(const ait_host_v1* host, int32_t event, void* stream);
  /// What is launched on `stream` from here on starts when the event has happened.
  int32_t (*wait)(const ait_host_v1* host, int32_t event, void* stream);
};

/// The service "recording": whether a run is recorded into a graph.
struct ait_recording_service_v1 {
  static constexpr const char* kName = "recording";
  static constexpr int32_t kVersion = 1;
  /// Writes whether `stream` is being recorded. Returns 0, or the status of `host->fail`.
  int32_t (*is_recorded)(const ait_host_v1* host, void* stream, bool* recorded);
};

namespace ait {

/// @brief Writes whether a run uses several streams. Where someone watches the run it uses stream 0 alone: launches are timed and shown one
/// after another.
/// @param if_recorded only a run that is recorded uses several: for programs whose launches, and not their work, take the time of a plain run
inline int32_t use_streams(const ait_run_v1* run, bool if_recorded, bool* several) {
  *several = run->observer == nullptr;
  if (!*several || !if_recorded) return 0;
  const auto* const table = find_service<ait_recording_service_v1>();
  if (table == nullptr) return Context{run->stream, run->host}.fail("streams were used in a library that no runtime library has loaded");
  return table->is_recorded(run->host, run->stream, several);
}

/// @brief The context of launches on stream `index` of a run with several streams.
inline int32_t open_stream(const ait_run_v1* run, int32_t index, Context* context) {
  const auto* const table = find_service<ait_stream_service_v1>();
  if (table == nullptr) return context->fail("streams were used in a library that no runtime library has loaded");
  return table->open(run->host, index, run->stream, &context->stream);
}

/// @brief Records an event on the stream of `context`.
inline int32_t record_event(const Context& context, int32_t event) {
  const auto* const table = find_service<ait_stream_service_v1>();
  return table == nullptr ? context.fail("an event was recorded in a library that no runtime library has loaded")
                          : table->record(context.host, event, context.stream);
}

/// @brief Lets the stream of `context` wait for an event.
inline int32_t wait_event(const Context& context, int32_t event) {
  const auto* const table = find_service<ait_stream_service_v1>();
  return table == nullptr ? context.fail("an event was waited for in a library that no runtime library has loaded")
                          : table->wait(context.host, event, context.stream);
}

}  // namespace ait

#endif  // AIT_STREAM_SERVICE_H_
