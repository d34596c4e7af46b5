/// @file timing.h
/// @brief Times kernels as they run inside of a model: many in a row in one graph, on weights that the caches have lost.
#ifndef AIT_RUNTIME_TIMING_H_
#define AIT_RUNTIME_TIMING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "device.h"
#include "library.h"

namespace ait::runtime {

/// @brief Candidates for one op at one set of dims. Each is a model in a library of its own or shared with others; all have the same
/// inputs and outputs. A chain of runs of a candidate is recorded once and replayed for each sample.
class Timing {
 public:
  /// @param dims values of the dims of the candidates.
  /// @param chain runs in a row.
  /// @param copies of each input, used in turns by the runs of a chain, as layers have weights of their own; and last the number of places
  /// that the outputs take turns between.
  /// @param inputs what the inputs hold; on the host.
  Timing(int device, std::vector<int64_t> dims, int chain, const std::vector<int64_t>& copies, const Tensors& inputs);
  ~Timing();
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

  /// Adds the candidate whose table `symbol` of the library at `path` returns, and runs it once. Returns why it cannot run, else an empty
  /// string; the next candidate that can run has the next index.
  std::string add(const std::string& path, const std::string& symbol);
  /// Seconds of one run of candidate `index`: a chain, timed, over its length.
  double sample(size_t index);

 private:
  struct Candidate;

  bool run(const Candidate& candidate, int number, void* stream, std::string* error) const;

  std::unique_ptr<Device> device_;
  std::vector<int64_t> dims_;
  int chain_;
  std::vector<std::vector<std::unique_ptr<DeviceBuffer>>> inputs_;  ///< of each input its copies
  size_t places_ = 1;
  std::vector<std::vector<std::unique_ptr<DeviceBuffer>>> outputs_;  ///< of each output its places
  std::vector<std::unique_ptr<Candidate>> candidates_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_TIMING_H_
