/// @file services.h
/// @brief What the runtime library gives to a model library for one run.
#ifndef AIT_RUNTIME_SERVICES_H_
#define AIT_RUNTIME_SERVICES_H_

#include <string>

#include "ait/amx_service.h"
#include "ait/attention_service.h"
#include "ait/gemm_service.h"
#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief The C table that the model library calls back, for one run.
class Services {
 public:
  Services() : table_{AIT_SERVICES_VERSION, this, &Services::gemm, &Services::fail, &Services::attention, may_use_amx()} {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const ait_services_v1* table() const { return &table_; }
  const std::string& error() const { return error_; }

 private:
  static int32_t gemm(void* self, const ait_gemm_v1* args, void* stream) {
    return library_gemm(args, stream, &static_cast<Services*>(self)->error_);
  }
  static int32_t attention(void* self, const ait_attention_v1* args, void* stream) {
    return library_attention(args, stream, &static_cast<Services*>(self)->error_);
  }
  static int32_t fail(void* self, const char* message) {
    static_cast<Services*>(self)->error_ = message;
    return 1;
  }

  ait_services_v1 table_;
  std::string error_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_SERVICES_H_
