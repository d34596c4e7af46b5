#include "gemm.h"
#include "services.h"

namespace ait::runtime {
namespace {

int32_t run(const ait_host_v1* host, const ait_gemm_v2* args, void* stream) {
  RunHost& run = RunHost::of(host);
  Gemm gemm;
  if (!read_gemm(*args, &gemm, &run.error)) return 1;
  if (run.trial == nullptr) return compute_gemm(gemm, stream, &run.error);
  const GemmTrial& trial = *run.trial;
  gemm.algorithm = trial.algorithm, gemm.workspace = trial.workspace, gemm.workspace_bytes = trial.workspace_bytes;
  if (trial.list != nullptr) return gemm_algorithms(gemm, trial.list, &run.error);
  return compute_gemm(gemm, stream, &run.error);
}

}  // namespace

const ait_gemm_service_v2 kGemmService{run};

}  // namespace ait::runtime
