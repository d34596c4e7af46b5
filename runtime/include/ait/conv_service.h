/// @file conv_service.h
/// @brief The service "conv": convolutions on cuDNN.
#ifndef AIT_CONV_SERVICE_H_
#define AIT_CONV_SERVICE_H_

#include <stdint.h>

#include "ait/precision.h"
#include "ait/service.h"

/// What follows the sums of a convolution, after bias and residual.
typedef enum ait_activation {
  AIT_ACTIVATION_NONE = 0,
  AIT_ACTIVATION_RELU = 1,
  AIT_ACTIVATION_FAST_GELU = 2,  ///< tanh form
  AIT_ACTIVATION_GELU = 3,       ///< erf form
  AIT_ACTIVATION_SILU = 4,
  AIT_ACTIVATION_SIGMOID = 5,
  AIT_ACTIVATION_TANH = 6
} ait_activation;

/// Y = activation(conv(X, W) + bias + residual), a cross-correlation over two dims in NHWC order. X is [batch, in_height, in_width,
/// in_channels], W is [out_channels, kernel_height, kernel_width, in_channels / groups] and contiguous, Y and the residual are [batch,
/// out_height, out_width, out_channels]. Channels are contiguous; other strides are in elements. Output channel o reads the input channels of
/// group o / (out_channels / groups). Pairs of numbers are (height, width).
typedef struct ait_conv_v1 {
  int32_t dtype;             ///< of X, W, Y, bias and residual: AIT_F16, AIT_BF16 or AIT_F32; sums are in f32
  int32_t activation;        ///< ait_activation
  int32_t algo;              ///< index into the library's list of plans; past its end: the last
  int32_t groups;
  int64_t batch, in_height, in_width, in_channels;
  int64_t out_height, out_width, out_channels;
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad_before[2], pad_after[2];         ///< zeros around X
  int64_t strides_x[3], strides_y[3], strides_residual[3];  ///< of batch, height and width
  const void *x, *w, *bias, *residual;         ///< bias [out_channels] and residual may be null
  void* y;
  void* workspace;
  int64_t workspace_bytes;
  int32_t precision;         ///< ait_precision, of f32
} ait_conv_v1;

struct ait_conv_service_v1 {
  static constexpr const char* kName = "conv";
  static constexpr int32_t kVersion = 1;
  /// Called by several threads at once. The first call for a shape makes a plan, which takes milliseconds and cannot be done while a stream
  /// is captured; later calls only launch, and can be captured.
  int32_t (*run)(const ait_host_v1* host, const ait_conv_v1* args, void* stream);
};

namespace ait {

/// @brief Runs a library convolution on the stream of this run.
inline int32_t library_conv(const Context& ctx, const ait_conv_v1& args) { return call_service(ctx, &ait_conv_service_v1::run, args); }

}  // namespace ait

#endif  // AIT_CONV_SERVICE_H_
