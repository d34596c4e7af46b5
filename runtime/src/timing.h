/// @file timing.h
/// @brief Times kernels as they run inside of a model: many in a row in one graph, between others, on weights that the caches have lost.
#ifndef AIT_RUNTIME_TIMING_H_
#define AIT_RUNTIME_TIMING_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "device.h"
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
  /// @param patterns for each dtype of the ABI what constants of that dtype are filled with, over and over; on the host.
  Timing(int device, std::vector<int64_t> dims, int chain, int places, int copies, const Tensors& inputs, const Tensors& patterns);
  ~Timing();
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

  /// Puts a run of the model without dims whose table `symbol` of the library at `path` returns behind every `every` runs of the candidates
  /// that are added from now on. What it takes in a chain of its own is measured here and is no part of their times: so a candidate is charged
  /// what it adds to launches around it, which one that cannot overlap them adds more of than a chain of itself shows.
  /// Returns the seconds of one run of it in that chain.
  double separate(const std::string& path, const std::string& symbol, int every);
  /// Adds the candidate whose table `symbol` of the library at `path` returns, and runs it once. Returns why it cannot run, else an empty
  /// string; the next candidate that can run has the next index.
  /// @param algorithm unless empty, what the library gemms of the candidate run on: the parts of an `ait_gemm_algorithm_v1`.
  std::string add(const std::string& path, const std::string& symbol, const std::vector<int64_t>& algorithm);
  /// The algorithms that the library offers for the gemms of a candidate, the parts of one after the other.
  std::vector<int64_t> algorithms(const std::string& path, const std::string& symbol);
  /// Seconds of one run of candidate `index`: a chain, timed, over its length, less what stands between; never below `kLeast`.
  double sample(size_t index);

  /// Seconds that no launch is faster than: so that times have ratios, even where the difference of two chains is noise.
  static constexpr double kLeast = 1e-8;

 private:
  struct Candidate;
  struct Separator;

  using Buffers = std::vector<std::unique_ptr<DeviceBuffer>>;

  /// What the constants of a model are filled with.
  std::vector<char> constants_of(const ait_model_v1& table) const;
  Buffers& constants_for(const ait_model_v1& table);
  std::unique_ptr<Candidate> open(const std::string& path, const std::string& symbol);
  GemmTrial trial();
  bool run(const Candidate& candidate, int number, void* stream, std::string* error) const;
  /// Run `number` of the candidate, and what stands behind it.
  bool step(const Candidate& candidate, int number, void* stream, std::string* error) const;

  std::unique_ptr<Device> device_;
  std::vector<int64_t> dims_;
  int chain_;
  size_t places_, copies_;
  std::vector<std::vector<char>> patterns_;
  std::vector<Buffers> inputs_;             ///< of each input its places
  std::vector<Buffers> outputs_;            ///< of each output its places
  std::map<int64_t, Buffers> constants_;    ///< the copies by size, for candidates may lay them out in different ways
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::unique_ptr<Separator> separator_;     ///< what runs between the candidates' runs; null: nothing
  std::unique_ptr<DeviceBuffer> workspace_;  ///< of the gemms that run on an algorithm
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_TIMING_H_
