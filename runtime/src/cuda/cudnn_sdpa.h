/// @file cudnn_sdpa.h
/// @brief Attention as a graph of cuDNN operations.
///
/// cuDNN recognises flash attention by the shape of the graph: product, scale, mask, softmax spelled out, product. The order and the
/// types below are those that its engines know: an index is i32, a comparison boolean, everything else between the products f32, the
/// weights of the second product have the element type.
#ifndef AIT_CUDA_CUDNN_SDPA_H_
#define AIT_CUDA_CUDNN_SDPA_H_

#include <limits>
#include <string>
#include <vector>

#include "ait/attention_service.h"
#include "cudnn_graph.h"

namespace ait::runtime::dnn {

/// @brief The plan of an attention of one shape.
class SdpaPlan : public Plan {
 public:
  using Plan::Plan;

  /// @return whether cuDNN can compute `args`; if not, `error()` says why.
  bool make(const ait_attention_v1& args, Handle handle) {
    add_operations(args);
    return choose(handle, args.algo, args.workspace_bytes);
  }

  /// @brief Launches on the stream of `handle`. Returns a reason on failure, else an empty string.
  std::string execute(const ait_attention_v1& args, Handle handle) {
    std::vector<Binding> tensors{{q_, args.q}, {k_, args.k}, {v_, args.v}, {o_, args.o}};
    if (mask_ != 0) tensors.push_back({mask_, args.mask});
    return launch(tensors, args.workspace, handle);
  }

 private:
  void add_operations(const ait_attention_v1& args) {
    const int type = args.dtype == AIT_F16 ? kF16 : kBf16;
    const Four scores{args.batch, args.heads, args.rows, args.cols};
    auto heads = [&](int64_t count, int64_t length, int64_t width, const int64_t* strides, int64_t* id) {
      return tensor(type, {args.batch, count, length, width}, {strides[0], strides[1], strides[2], 1}, id);
    };
    const Descriptor q = heads(args.heads, args.rows, args.depth, args.strides_q, &q_);
    const Descriptor k_transposed = tensor(type, {args.batch, args.groups, args.depth, args.cols},
                                           {args.strides_k[0], args.strides_k[1], 1, args.strides_k[2]}, &k_);
    const Descriptor v = heads(args.groups, args.cols, args.width, args.strides_v, &v_);
    const Descriptor o = heads(args.heads, args.rows, args.width, args.strides_o, &o_);

    const Descriptor product = virtual_tensor(kF32, scores);
    matmul(q, k_transposed, product);
    Descriptor x = pointwise(kMul, product, scalar(args.scale), kF32, scores);
    if (args.mask != nullptr) {
      Four dims, strides;
      for (size_t i = 0; i < 4; ++i) dims[i] = args.strides_mask[i] == 0 ? 1 : scores[i];
      strides = contiguous(dims);
      for (size_t i = 0; i < 4; ++i) strides[i] = dims[i] == 1 ? strides[i] : args.strides_mask[i];
      x = pointwise(kAdd, x, tensor(args.mask_dtype == AIT_F32 ? kF32 : type, dims, strides, &mask_), kF32, scores);
    }
    if (args.causal || args.window > 0) x = band(args, x, scores);

    const Four column{args.batch, args.heads, args.rows, 1};
    const Descriptor highest = reduce(kReduceMax, x, column);
    const Descriptor powers = pointwise(kExp, pointwise(kSub, x, highest, kF32, scores), nullptr, kF32, scores);
    const Descriptor sum = reduce(kReduceAdd, powers, column);
    // The logarithm of the sum is read by nobody, but without it the engines do not know the softmax.
    pointwise(kAdd, highest, pointwise(kLog, sum, nullptr, kF32, column), kF32, column);
    matmul(pointwise(kDiv, powers, sum, type, scores), v, o);
  }

  /// Row s stands at column p = s + cols - rows. Causal hides the columns right of p, a window the columns at a
  /// distance of `window` or more.
  Descriptor band(const ait_attention_v1& args, Descriptor x, const Four& scores) {
    const float hidden = -std::numeric_limits<float>::infinity();
    const int64_t lead = args.cols - args.rows;
    Descriptor row = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 2), col = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 3);
    if (lead != 0) {
      row = pointwise(kAdd, row, scalar(int32_t(args.cols)), kI32, scores, kI32, 3);
      row = pointwise(kSub, row, scalar(int32_t(args.rows)), kI32, scores, kI32, 3);
    }
    if (!args.causal) row = pointwise(kAdd, row, scalar(int32_t(args.window - 1)), kI32, scores, kI32, 3);
    const Descriptor left = pointwise(kGreaterEqual, row, col, kBool, scores, kBool);
    x = pointwise(kSelect, x, scalar(hidden), kF32, scores, kF32, -1, left);
    if (args.window <= 0) return x;
    row = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 2), col = pointwise(kGenIndex, x, nullptr, kI32, scores, kF32, 3);
    col = pointwise(kAdd, col, scalar(float(args.window - lead)), kF32, scores, kF32, 3);
    const Descriptor right = pointwise(kGreater, col, row, kBool, scores, kBool);
    return pointwise(kSelect, x, scalar(hidden), kF32, scores, kF32, -1, right);
  }

  int64_t q_ = 0, k_ = 0, v_ = 0, o_ = 0, mask_ = 0;
};

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_SDPA_H_
