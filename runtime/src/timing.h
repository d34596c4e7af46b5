/// @file timing.h
/// @brief Times kernels as they run inside of a model: many in a row in one graph, on weights that the caches have lost.
#ifndef AIT_RUNTIME_TIMING_H_
#define AIT_RUNTIME_TIMING_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "device.h"
#include "gemm.h"
#include "library.h"
#include "services.h"

namespace ait::runtime {

/// @brief Candidates for one op at one set of dims. Each is a model in a library of its own or shared with others; all have the same
/// inputs and outputs. A chain of runs of a candidate is recorded once and replayed for each sample.
class Timing {
 public:
  /// @param dims values of the dims of the candidates.
  /// @param chain runs in a row.
  /// @param places that the inputs and the outputs take turns between, run by run.
  /// @param copies of the constants that runs take turns between, as layers have weights of their own.
  /// @param inputs what the inputs hold; on the host.
  /// @param patterns for each dtype of the ABI, the bytes with which constants of that dtype are filled repeatedly; on the host.
  Timing(int device, std::vector<int64_t> dims, int chain, int places, int copies, const Tensors& inputs, const Tensors& patterns);
  ~Timing();
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

  /// Adds the candidate whose table `symbol` of the library at `path` returns, and runs it once. Returns why it cannot run, else an empty
  /// string; the next candidate that can run has the next index.
  /// @param algorithm unless empty, the algorithm of the candidate's library gemms: the parts of an `ait_gemm_algorithm_v1`.
  std::string add(const std::string& path, const std::string& symbol, const std::vector<int64_t>& algorithm);
  /// The algorithms that the library offers for the gemms of a candidate, the parts of one after the other.
  std::vector<int64_t> algorithms(const std::string& path, const std::string& symbol);
  /// Seconds of one run of candidate `index`: a chain, timed, over its length.
  double sample(size_t index);

 private:
  struct Candidate;

  using Buffers = std::vector<std::unique_ptr<DeviceBuffer>>;

  Buffers& constants_for(const ait_model_v1& table);
  std::unique_ptr<Candidate> open(const std::string& path, const std::string& symbol);
  GemmTrial trial();
  bool run(const Candidate& candidate, int number, void* stream, std::string* error) const;

  std::unique_ptr<Device> device_;
  std::vector<int64_t> dims_;
  int chain_;
  size_t places_, copies_;
  std::vector<std::vector<char>> patterns_;
  std::vector<Buffers> inputs_;             ///< of each input its places
  std::vector<Buffers> outputs_;            ///< of each output its places
  std::map<int64_t, Buffers> constants_;    ///< the copies by size, for candidates may lay them out in different ways
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::unique_ptr<DeviceBuffer> workspace_;  ///< of the gemms that run on an algorithm
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_TIMING_H_
