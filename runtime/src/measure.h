/// @file measure.h
/// @brief Times of a model: of whole runs in several threads, and of each launch of a run.
#ifndef AIT_RUNTIME_MEASURE_H_
#define AIT_RUNTIME_MEASURE_H_

#include <vector>

#include "model.h"

namespace ait::runtime {

struct BenchmarkOptions {
  RunOptions run;
  int count = 10;               ///< runs of each thread in a batch
  int repeat = 1;               ///< batches
  int threads = 1;
  bool stream_each = false;     ///< each thread has a stream of its own
};

/// @brief Milliseconds per run in each batch: its time, by the clock of the host, over the runs of all its threads. The runs of a thread are
/// launched without waits between them.
std::vector<double> benchmark(Model& model, const Tensors& inputs, const Tensors& outputs, const BenchmarkOptions& options);

/// @brief A launch of a run that was watched. Times are in microseconds, from the first launch of its run on.
struct LaunchTime {
  int iteration, launch;
  double begin, duration;
};

/// @brief Runs the model `iterations` times and times each launch on the device. The device is kept at work before each run, so that
/// launches do not wait for the host.
std::vector<LaunchTime> profile(Model& model, const Tensors& inputs, const Tensors& outputs, const RunOptions& options, int iterations);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_MEASURE_H_
