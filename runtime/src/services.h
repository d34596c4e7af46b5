/// @file services.h
/// @brief The services of this runtime library for model libraries, and the data that a model library gets for one run.
#ifndef AIT_RUNTIME_SERVICES_H_
#define AIT_RUNTIME_SERVICES_H_

#include <string>
#include <vector>

#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief A table of functions under its name and version.
struct Service {
  const char* name;
  int32_t version;
  const void* table;
};

/// @brief The row of a table, whose type says its name and version.
template <class Table>
Service service_of(const Table& table) {
  return {Table::kName, Table::kVersion, &table};
}

/// @brief All services of this device: `src/{cpu,cuda,rocm}/services.cc`.
const std::vector<Service>& device_services();

/// @brief The table of a service, or null.
const void* find_service(const std::string& name, int32_t version);

/// @brief How the name of a service begins that is a function of a kernel library (`ait/ffi_service.h`).
inline const std::string kCalleePrefix = "kernel_library:";

/// @brief Writes the tables of all services that `model` needs. Throws an Error of kind kArtifact that names one that is missing.
/// @param path of the model library, for errors
void bind_services(const ait_model_v1& model, const std::string& path);

struct GemmTrial;
class Event;

/// @brief The streams and events of a run. The functions throw an Error.
class RunStreams {
 public:
  virtual ~RunStreams() = default;
  /// Stream `index`, from 1 on, of the run whose stream 0 is `first`.
  virtual void* stream(int32_t index, void* first) = 0;
  virtual Event& event(int32_t index) = 0;
  /// Whether the stream of a run is being recorded.
  virtual bool is_recorded(void* first) = 0;
};

/// @brief The data that a model library gets for one run, and the data that it returns.
struct RunHost {
  explicit RunHost(const GemmTrial* gemm_trial = nullptr, RunStreams* run_streams = nullptr)
      : trial(gemm_trial), streams(run_streams), table{this, &RunHost::fail} {}
  RunHost(const RunHost&) = delete;
  RunHost& operator=(const RunHost&) = delete;

  static RunHost& of(const ait_host_v1* host) { return *static_cast<RunHost*>(host->self); }
  static int32_t fail(void* self, const char* message) {
    static_cast<RunHost*>(self)->error = message;
    return 1;
  }

  const GemmTrial* trial;
  RunStreams* streams;  ///< null where the program has stream 0 alone
  std::string error;  ///< why the run failed
  ait_host_v1 table;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_SERVICES_H_
