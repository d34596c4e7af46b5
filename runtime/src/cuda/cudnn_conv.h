/// @file cudnn_conv.h
/// @brief A convolution and the operations after it as a graph of cuDNN operations: conv, + bias, + residual, activation.
///
/// The tensors are named in the order NCHW, with the strides of NHWC. Intermediate tensors are f32 and never stored.
#ifndef AIT_CUDA_CUDNN_CONV_H_
#define AIT_CUDA_CUDNN_CONV_H_

#include <string>
#include <vector>

#include "ait/conv_service.h"
#include "cudnn_graph.h"

namespace ait::runtime::dnn {

/// @brief The operation of an activation, or -1.
inline int activation_mode(int32_t activation) {
  switch (activation) {
    case AIT_ACTIVATION_RELU: return kRelu;
    case AIT_ACTIVATION_FAST_GELU: return kFastGelu;
    case AIT_ACTIVATION_GELU: return kGelu;
    case AIT_ACTIVATION_SILU: return kSwish;
    case AIT_ACTIVATION_SIGMOID: return kSigmoid;
    case AIT_ACTIVATION_TANH: return kTanh;
    default: return -1;
  }
}

/// @brief The plan of a convolution of one shape.
class ConvPlan : public Plan {
 public:
  using Plan::Plan;

  /// @return whether cuDNN can compute `args`; if not, `error()` says why.
  bool make(const ait_conv_v1& args, Handle handle) {
    add_operations(args);
    return choose(handle, args.algo, args.workspace_bytes, args.dtype == AIT_F32 && args.precision == AIT_PRECISION_HIGHEST);
  }

  /// @brief Launches on the stream of `handle`. Returns a reason on failure, else an empty string.
  std::string execute(const ait_conv_v1& args, Handle handle) {
    std::vector<Binding> tensors{{x_, args.x}, {w_, args.w}, {y_, args.y}};
    if (bias_ != 0) tensors.push_back({bias_, args.bias});
    if (residual_ != 0) tensors.push_back({residual_, args.residual});
    return launch(tensors, args.workspace, handle);
  }

 private:
  static Four strides_of(const int64_t* strides) { return {strides[0], 1, strides[1], strides[2]}; }

  void add_operations(const ait_conv_v1& args) {
    const int type = args.dtype == AIT_F16 ? kF16 : args.dtype == AIT_BF16 ? kBf16 : kF32;
    const int64_t channels = args.out_channels, depth = args.in_channels / args.groups, width = args.kernel[1];
    const Four dims{args.batch, channels, args.out_height, args.out_width};
    const Descriptor x = tensor(type, {args.batch, args.in_channels, args.in_height, args.in_width}, strides_of(args.strides_x), &x_);
    const Descriptor w = tensor(type, {channels, depth, args.kernel[0], width},
                                {args.kernel[0] * width * depth, 1, width * depth, depth}, &w_);
    const Descriptor y = tensor(type, dims, strides_of(args.strides_y), &y_);
    // The last operation writes y; how many come after the convolution is known first.
    const int mode = activation_mode(args.activation);
    int after = (args.bias != nullptr) + (args.residual != nullptr) + (mode >= 0);
    Descriptor sums = after == 0 ? y : channels_last(dims);
    convolve(args, x, w, sums);
    const auto then = [&](int operation, Descriptor operand) {
      const Descriptor to = --after == 0 ? y : channels_last(dims);
      pointwise_into(to, operation, sums, operand);
      sums = to;
    };
    if (args.bias != nullptr) then(kAdd, tensor(type, {1, channels, 1, 1}, {channels, 1, channels, channels}, &bias_));
    if (args.residual != nullptr) then(kAdd, tensor(type, dims, strides_of(args.strides_residual), &residual_));
    if (mode >= 0) then(mode, nullptr);
  }

  Descriptor channels_last(const Four& dims) {
    return tensor(kF32, dims, {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]}, nullptr, true);
  }

  void convolve(const ait_conv_v1& args, Descriptor x, Descriptor w, Descriptor y) {
    const Descriptor convolution = own_.make(kConvolution), operation = own_.make(kConvolutionOperation);
    const int64_t spatial = 2;
    const float one = 1.f, zero = 0.f;
    own_.set(convolution, kConvolutionPrecision, kTypeDataType, kF32);
    own_.set(convolution, kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
    own_.set(convolution, kConvolutionSpatialDims, kTypeInt64, 1, &spatial);
    own_.set(convolution, kConvolutionPadBefore, kTypeInt64, 2, args.pad_before);
    own_.set(convolution, kConvolutionPadAfter, kTypeInt64, 2, args.pad_after);
    own_.set(convolution, kConvolutionStrides, kTypeInt64, 2, args.stride);
    own_.set(convolution, kConvolutionDilations, kTypeInt64, 2, args.dilation);
    own_.finalize(convolution, "describing a convolution");
    own_.set(operation, kConvolutionOperationDesc, convolution);
    own_.set(operation, kConvolutionOperationX, x);
    own_.set(operation, kConvolutionOperationW, w);
    own_.set(operation, kConvolutionOperationY, y);
    own_.set(operation, kConvolutionOperationAlpha, kTypeFloat, 1, &one);
    own_.set(operation, kConvolutionOperationBeta, kTypeFloat, 1, &zero);
    append(operation);
  }

  int64_t x_ = 0, w_ = 0, y_ = 0, bias_ = 0, residual_ = 0;
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_CONV_H_
