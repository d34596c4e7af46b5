/// @file cudnn_attention.cc
/// @brief `compute_attention` on cuDNN.
#include "cudnn_services.h"
#include "cudnn_plans.h"
#include "cudnn_sdpa.h"

namespace ait::runtime {
namespace {

constexpr int64_t kKind = 1;

dnn::PlanKey key_of(const ait_attention_v1& args) {
  const bool masked = args.mask != nullptr;
  dnn::PlanKey key{args.dtype, masked ? args.mask_dtype : -1, args.causal != 0, args.algo,  args.batch, args.heads,          args.groups,
                   args.rows,  args.cols,                     args.depth,       args.width, args.window, args.workspace_bytes};
  key.add(args.scale);
  for (const int64_t* strides : {args.strides_q, args.strides_k, args.strides_v, args.strides_o}) key.add(strides, 3);
  if (masked) key.add(args.strides_mask, 4);
  return key;
}

std::string describe(const ait_attention_v1& args) {
  return "an attention of batch " + std::to_string(args.batch) + ", " + std::to_string(args.heads) + " heads in " +
         std::to_string(args.groups) + " groups, " + std::to_string(args.rows) + " x " + std::to_string(args.cols) + ", widths " +
         std::to_string(args.depth) + " and " + std::to_string(args.width) + (args.causal ? ", causal" : "") +
         (args.window > 0 ? ", window " + std::to_string(args.window) : "") + (args.mask != nullptr ? ", masked" : "");
}

}  // namespace

int32_t compute_attention(const ait_attention_v1& args, void* stream, std::string* error) {
  if (args.batch == 0 || args.heads == 0 || args.rows == 0) return 0;
  dnn::Library& lib = dnn::Library::get();
  if (!lib.loaded) {
    *error = lib.error;
    return 1;
  }
  if (args.dtype != AIT_F16 && args.dtype != AIT_BF16) {
    *error = "the library attention computes f16 and bf16, not dtype " + std::to_string(args.dtype);
    return 1;
  }
  if (args.cols == 0 || ((args.causal || args.window > 0) && args.rows > args.cols)) {
    *error = "the library attention needs a column for each row: " + describe(args);
    return 1;
  }
  if (dnn::misaligned(args.q) || dnn::misaligned(args.k) || dnn::misaligned(args.v) || dnn::misaligned(args.o)) {
    *error = "the library attention needs q, k, v and the result on 16-byte boundaries: compile with another kernel for this attention";
    return 1;
  }
  if (lib.api.version() == 91400 && args.window > 0 && !args.causal && args.cols > 1024) {
    *error = "cuDNN 9.14.0 is known to be wrong for " + describe(args) + ": install a later one";
    return 1;
  }
  return dnn::run_planned<dnn::SdpaPlan>(kKind, key_of(args), args, stream, describe, error);
}

}  // namespace ait::runtime
