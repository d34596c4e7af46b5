/// @file attention_service.h
/// @brief The service "attention": attention on cuDNN.
#ifndef AIT_ATTENTION_SERVICE_H_
#define AIT_ATTENTION_SERVICE_H_

#include <stdint.h>

#include "ait/service.h"

/// O = softmax(scale * Q K^T + mask) V for each head; strides in elements, the last dims of Q, K, V and O are contiguous.
typedef struct ait_attention_v1 {
  int32_t dtype;            ///< of Q, K, V and O: AIT_F16 or AIT_BF16
  int32_t mask_dtype;       ///< `dtype` or AIT_F32
  int32_t causal;           ///< row s, which stands at column p = s + cols - rows, sees no column after p
  int32_t algo;             ///< index into the library's list of plans; past its end: the last
  int64_t batch, heads, groups, rows, cols, depth, width;  ///< Q [batch, heads, rows, depth], K [batch, groups, cols, depth], V [.., width]
  int64_t window;           ///< columns that are this far from p, or further, are hidden; 0: none are
  int64_t strides_q[3], strides_k[3], strides_v[3], strides_o[3];
  int64_t strides_mask[4];  ///< 0 where the mask is broadcast
  const void *q, *k, *v, *mask;                            ///< mask may be null
  void* o;
  float scale;
  void* workspace;
  int64_t workspace_bytes;
} ait_attention_v1;

struct ait_attention_service_v1 {
  static constexpr const char* kName = "attention";
  static constexpr int32_t kVersion = 1;
  /// Called by several threads at once. The first call for a shape makes a plan, which takes milliseconds and cannot be done while a stream
  /// is captured; later calls only launch, and can be captured.
  int32_t (*run)(const ait_host_v1* host, const ait_attention_v1* args, void* stream);
};

namespace ait {

/// @brief Runs a library attention on the stream of this run.
inline int32_t library_attention(const Context& ctx, const ait_attention_v1& args) {
  return call_service(ctx, &ait_attention_service_v1::run, args);
}

}  // namespace ait

#endif  // AIT_ATTENTION_SERVICE_H_
