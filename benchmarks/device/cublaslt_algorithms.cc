// Every algorithm in cuBLASLt's own order: time in a graph over weights that rotate, kernels and memsets of a call.
// Built and run by cublaslt_algorithms.py.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <random>
#include <vector>

#include "ait/types.h"
#include "gemm.h"


namespace {

constexpr size_t kBytes = size_t(1) << 31, kCold = 200 << 20;
constexpr int kAlgorithms = 16, kCalls = 40, kReplays = 7, kRestMilliseconds = 10;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

struct Result {
  float microseconds = 0;
  int algorithm = 0, kernels = 0, memsets = 0;
};

struct Problem {
  int64_t m, n, k;
  bool bias;
};

class Bench {
 public:
  Bench() {
    check(cudaMalloc(reinterpret_cast<void**>(&operands_), kBytes), "allocating operands");
    check(cudaMalloc(&workspace_, 32 << 20), "allocating workspace");
    check(cudaMalloc(&result_, size_t(12288) * 22016 * 2), "allocating results");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    std::vector<uint16_t> random(1 << 24);  // f16 between 1/16 and 1 in size, of both signs
    std::mt19937 generator(1);
    for (uint16_t& x : random) x = uint16_t((generator() & 0x8fff) + 0x2c00);
    for (size_t at = 0; at + random.size() * 2 <= kBytes; at += random.size() * 2) {
      check(cudaMemcpy(operands_ + at, random.data(), random.size() * 2, cudaMemcpyHostToDevice), "copying operands");
    }
  }

  /// The time of an algorithm of the library's list; false past its end.
  bool run(const Problem& p, int algorithm, Result* result) {
    const size_t weights = size_t(p.n) * p.k * 2 / 256 * 256 + 256, unit = weights + size_t(p.m) * p.k * 2 / 256 * 256 + 256;
    const size_t copies = std::min(kBytes / unit, std::max(size_t(8), kCold / unit));
    ait::runtime::Gemm args;
    args.dtype = AIT_F16, args.trans_b = 1, args.batch = 1, args.m = p.m, args.n = p.n, args.k = p.k;
    args.lda = args.ldb = p.k, args.ldd = p.n, args.alpha = 1, args.d = result_;
    args.workspace = workspace_, args.workspace_bytes = int64_t(32) << 20;
    if (p.bias) args.epilogue = AIT_EPILOGUE_BIAS, args.bias = operands_;
    std::string error;
    args.a = args.b = operands_;
    std::vector<ait_gemm_algorithm_v1> list;
    if (ait::runtime::gemm_algorithms(args, &list, &error) != 0) return puts(error.c_str()), false;
    if (size_t(algorithm) >= list.size()) return false;
    args.algorithm = &list[size_t(algorithm)];
    auto call = [&](size_t i) {
      args.b = operands_ + unit * (i % copies);
      args.a = operands_ + unit * (i % copies) + weights;
      return ait::runtime::compute_gemm(args, stream_, &error) == 0;
    };
    if (!call(0)) return puts(error.c_str()), false;
    check(cudaStreamSynchronize(stream_), "a first call");
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording");
    for (size_t i = 0; i < kCalls; ++i) call(i);
    check(cudaStreamEndCapture(stream_, &graph), "recording");
    count_nodes(graph, result);
    cudaGraphExec_t replayed = nullptr;
    check(cudaGraphInstantiate(&replayed, graph, 0), "instantiating");
    result->microseconds = median(replayed) * 1e3f / kCalls;
    result->algorithm = algorithm;
    check(cudaGraphExecDestroy(replayed), "destroying");
    check(cudaGraphDestroy(graph), "destroying");
    return true;
  }

 private:
  void count_nodes(cudaGraph_t graph, Result* result) {
    size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count), "counting nodes");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph, nodes.data(), &count), "counting nodes");
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type;
      check(cudaGraphNodeGetType(node, &type), "counting nodes");
      result->kernels += type == cudaGraphNodeTypeKernel;
      result->memsets += type == cudaGraphNodeTypeMemset;
    }
    result->kernels /= kCalls, result->memsets /= kCalls;
  }

  float median(cudaGraphExec_t replayed) {
    cudaEvent_t start, end;
    check(cudaEventCreate(&start), "an event");
    check(cudaEventCreate(&end), "an event");
    std::vector<float> times;
    for (int i = 0; i <= kReplays; ++i) {
      float milliseconds = 0;
      // The card rests: large products one after the other make it lower its clock, and the first of a list would be the fastest.
      std::this_thread::sleep_for(std::chrono::milliseconds(kRestMilliseconds));
      check(cudaGraphLaunch(replayed, stream_), "timing");
      check(cudaEventRecord(start, stream_), "timing");
      check(cudaGraphLaunch(replayed, stream_), "timing");
      check(cudaEventRecord(end, stream_), "timing");
      check(cudaStreamSynchronize(stream_), "timing");
      check(cudaEventElapsedTime(&milliseconds, start, end), "timing");
      if (i > 0) times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    return times[kReplays / 2];
  }

  char* operands_ = nullptr;
  void *workspace_ = nullptr, *result_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

int main() {
  const Problem problems[] = {
      {128, 768, 768, true},     {128, 2304, 768, true},    {128, 3072, 768, true},   {128, 768, 3072, true},   {384, 768, 3072, true},
      {4096, 768, 768, true},    {4096, 2304, 768, true},   {4096, 3072, 768, true},  {4096, 768, 3072, true},  {6304, 3072, 768, true},
      {6304, 768, 3072, true},   {12288, 3072, 768, true},  {512, 4096, 4096, false}, {512, 22016, 4096, false}, {512, 4096, 11008, false},
      {2048, 4096, 4096, false}, {1, 4096, 4096, false},    {16, 4096, 11008, false},
  };
  Bench bench;
  for (const Problem& p : problems) {
    std::vector<Result> results;
    for (int i = 0; i < kAlgorithms; ++i) {
      Result result;
      if (!bench.run(p, i, &result)) break;
      results.push_back(result);
    }
    if (results.empty()) continue;
    const float first = results[0].microseconds;
    std::sort(results.begin(), results.end(), [](const Result& x, const Result& y) { return x.microseconds < y.microseconds; });
    printf("%ld x %ld x %ld%s: first %.2f us; best", long(p.m), long(p.n), long(p.k), p.bias ? " + bias" : "", double(first));
    for (size_t i = 0; i < results.size() && i < 4; ++i) {
      const Result& r = results[i];
      printf("%s %.2f (algorithm %d, %d kernels, %d memsets)", i != 0 ? "," : "", double(r.microseconds), r.algorithm, r.kernels, r.memsets);
    }
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
