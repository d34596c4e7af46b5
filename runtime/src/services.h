/// @file services.h
/// @brief What the runtime library gives to a model library for one run.
#ifndef AIT_RUNTIME_SERVICES_H_
#define AIT_RUNTIME_SERVICES_H_

#include <string>
#include <vector>

#include "ait/amx_service.h"
#include "ait/attention_service.h"
#include "ait/gemm_service.h"
#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief What a timing does with the library gemms of a run: runs them on one algorithm, or asks for those that there are, on a workspace of
/// its own.
struct GemmTrial {
  const ait_gemm_algorithm_v1* algorithm = nullptr;
  std::vector<ait_gemm_algorithm_v1>* list = nullptr;  ///< if set, nothing is run and the algorithms are added to it
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

/// @brief The C table that the model library calls back, for one run.
class Services {
 public:
  explicit Services(const GemmTrial* trial = nullptr)
      : table_{AIT_SERVICES_VERSION, this, &Services::gemm, &Services::fail, &Services::attention, may_use_amx()}, trial_(trial) {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const ait_services_v1* table() const { return &table_; }
  const std::string& error() const { return error_; }

 private:
  static int32_t gemm(void* self, const ait_gemm_v1* args, void* stream) {
    auto& services = *static_cast<Services*>(self);
    if (services.trial_ == nullptr) return library_gemm(args, stream, &services.error_);
    const GemmTrial& trial = *services.trial_;
    ait_gemm_v1 changed = *args;
    changed.algorithm = trial.algorithm, changed.workspace = trial.workspace, changed.workspace_bytes = trial.workspace_bytes;
    if (trial.list != nullptr) return library_gemm_algorithms(&changed, trial.list, &services.error_);
    return library_gemm(&changed, stream, &services.error_);
  }
  static int32_t attention(void* self, const ait_attention_v1* args, void* stream) {
    return library_attention(args, stream, &static_cast<Services*>(self)->error_);
  }
  static int32_t fail(void* self, const char* message) {
    static_cast<Services*>(self)->error_ = message;
    return 1;
  }

  ait_services_v1 table_;
  const GemmTrial* trial_;
  std::string error_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_SERVICES_H_
