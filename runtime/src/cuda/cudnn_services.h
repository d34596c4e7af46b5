/// @file cudnn_services.h
/// @brief The services on cuDNN.
#ifndef AIT_CUDA_CUDNN_SERVICES_H_
#define AIT_CUDA_CUDNN_SERVICES_H_

#include <string>

#include "ait/attention_service.h"
#include "ait/conv_service.h"

namespace ait::runtime {

/// @brief Computes `args` on `stream`, as `ait_attention_service_v1::run` says.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t compute_attention(const ait_attention_v1& args, void* stream, std::string* error);

/// @brief Computes `args` on `stream`, as `ait_conv_service_v1::run` says.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t compute_conv(const ait_conv_v1& args, void* stream, std::string* error);

}  // namespace ait::runtime

#endif  // AIT_CUDA_CUDNN_SERVICES_H_
