/// @file cudnn_conv.cc
/// @brief `compute_conv` on cuDNN.
#include "cudnn_conv.h"

#include "cudnn_services.h"
#include "cudnn_plans.h"

namespace ait::runtime {
namespace {

constexpr int64_t kKind = 2;

dnn::PlanKey key_of(const ait_conv_v1& args) {
  dnn::PlanKey key{args.dtype,      args.activation, args.algo,       args.groups,    args.batch,
                   args.in_height,  args.in_width,   args.in_channels, args.out_height, args.out_width,
                   args.out_channels, args.bias != nullptr, args.residual != nullptr, args.workspace_bytes, args.precision};
  for (const int64_t* pair : {args.kernel, args.stride, args.dilation, args.pad_before, args.pad_after}) key.add(pair, 2);
  key.add(args.strides_x, 3);
  key.add(args.strides_y, 3);
  if (args.residual != nullptr) key.add(args.strides_residual, 3);
  return key;
}

std::string by(int64_t height, int64_t width) { return std::to_string(height) + " x " + std::to_string(width); }

std::string describe(const ait_conv_v1& args) {
  return "a convolution of batch " + std::to_string(args.batch) + ", " + by(args.in_height, args.in_width) + " x " +
         std::to_string(args.in_channels) + " with a kernel of " + by(args.kernel[0], args.kernel[1]) + " to " +
         by(args.out_height, args.out_width) + " x " + std::to_string(args.out_channels) + ", " + std::to_string(args.groups) + " group(s)" +
         (args.bias != nullptr ? ", bias" : "") + (args.residual != nullptr ? ", residual" : "") +
         (args.activation != AIT_ACTIVATION_NONE ? ", activation " + std::to_string(args.activation) : "");
}

/// Rows that the kernel reaches along one dim.
int64_t extent(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after) {
  return (in + before + after - dilation * (kernel - 1) - 1) / stride + 1;
}

/// Why `args` is no convolution, or an empty string.
std::string find_mistake(const ait_conv_v1& args) {
  if (args.dtype != AIT_F16 && args.dtype != AIT_BF16 && args.dtype != AIT_F32) return "takes f16, bf16 and f32";
  if (args.activation < AIT_ACTIVATION_NONE || args.activation > AIT_ACTIVATION_TANH) return "does not know this activation";
  if (args.groups < 1 || args.in_channels % args.groups != 0 || args.out_channels % args.groups != 0) {
    return "needs channels that are multiples of the groups";
  }
  const int64_t in[] = {args.in_height, args.in_width}, out[] = {args.out_height, args.out_width};
  for (int i = 0; i < 2; ++i) {
    if (args.stride[i] < 1 || args.dilation[i] < 1 || args.kernel[i] < 1) return "needs a kernel, strides and dilations of at least 1";
    if (out[i] != extent(in[i], args.kernel[i], args.stride[i], args.dilation[i], args.pad_before[i], args.pad_after[i])) {
      return "found a result whose height or width is not what the kernel gives";
    }
  }
  for (const void* pointer : {args.x, args.w, static_cast<const void*>(args.y), args.bias, args.residual}) {
    if (dnn::misaligned(pointer)) return "needs all tensors on 16-byte boundaries: compile with another kernel for this convolution";
  }
  return {};
}

}  // namespace

int32_t compute_conv(const ait_conv_v1& args, void* stream, std::string* error) {
  if (args.batch == 0 || args.out_height == 0 || args.out_width == 0 || args.out_channels == 0) return 0;
  const dnn::Library& lib = dnn::Library::get();
  if (!lib.loaded) {
    *error = lib.error;
    return 1;
  }
  if (const std::string mistake = find_mistake(args); !mistake.empty()) {
    *error = "the library convolution " + mistake + ": " + describe(args);
    return 1;
  }
  return dnn::run_planned<dnn::ConvPlan>(kKind, key_of(args), args, stream, describe, error);
}

}  // namespace ait::runtime
