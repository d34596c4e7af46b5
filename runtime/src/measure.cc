#include "measure.h"

#include <chrono>
#include <memory>
#include <utility>

#include "error.h"
#include "threads.h"

namespace ait::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The launches of the run under way, each with the mark at which it begins.
class Watch {
 public:
  explicit Watch(Device& device) : timeline_(device.make_timeline()), table_{this, before, nullptr} {}
  const ait_observer_v1* observer() const { return &table_; }

  /// Appends the launches of a run that has ended.
  void read(int iteration, std::vector<LaunchTime>& times) {
    const std::vector<double> at = timeline_->seconds();
    for (size_t i = 0; i + 1 < launches_.size(); ++i) {
      if (launches_[i] >= 0) times.push_back({iteration, launches_[i], at[i] * 1e6, (at[i + 1] - at[i]) * 1e6});
    }
    launches_.clear();
  }

 private:
  static void before(void* self, int32_t launch, void* stream) {
    auto& watch = *static_cast<Watch*>(self);
    watch.timeline_->mark(stream);
    watch.launches_.push_back(launch);
  }

  std::unique_ptr<Timeline> timeline_;
  std::vector<int32_t> launches_;
  ait_observer_v1 table_;
};

}  // namespace

std::vector<double> benchmark(Model& model, const Tensors& inputs, const Tensors& outputs, const BenchmarkOptions& options) {
  if (options.count < 1 || options.repeat < 1 || options.threads < 1) {
    fail(ErrorKind::kInput, "count is ", options.count, ", repeat ", options.repeat, " and num_threads ", options.threads, ", expected all to be at least 1");
  }
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<RunOptions> runs(static_cast<size_t>(options.threads), options.run);
  {
    const DeviceScope scope(model.device());
    for (RunOptions& run : runs) {
      run.sync = false;
      if (!options.stream_each) continue;
      streams.push_back(model.device().make_stream());
      run.stream = streams.back()->get();
    }
  }
  const auto batch = [&](int count) {
    const auto work = [&](size_t which) {
      for (int i = 0; i < count; ++i) model.run(inputs, outputs, runs[which]);
      model.sync(runs[which].stream);
    };
    run_threads(runs.size(), work);
  };
  batch(2);  // warms up, and records the graphs
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) {
    const auto begin = Clock::now();
    batch(options.count);
    const std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
    times.push_back(taken.count() / options.count / options.threads);
  }
  return times;
}

std::vector<LaunchTime> profile(Model& model, const Tensors& inputs, const Tensors& outputs, const RunOptions& options, int iterations) {
  if (iterations < 1) fail(ErrorKind::kInput, "the number of iterations is ", iterations, ", expected at least 1");
  std::vector<LaunchTime> times;
  RunOptions run = options;
  run.sync = true;
  run.graph = false;
  model.run(inputs, outputs, run);
  const DeviceScope scope(model.device());
  Watch watch(model.device());
  run.observer = watch.observer();
  DeviceBuffer scratch(model.device());
  for (int i = 0; i < iterations; ++i) {
    model.device().occupy(scratch, model.num_launches(), run.stream);
    model.run(inputs, outputs, run);
    watch.read(i, times);
  }
  return times;
}

}  // namespace ait::runtime
