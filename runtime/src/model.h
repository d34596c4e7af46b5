/// @file model.h
/// @brief A loaded model: its library, its constants and its pool of runtimes. Every method may be called from several threads.
#ifndef AIT_RUNTIME_MODEL_H_
#define AIT_RUNTIME_MODEL_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checks.h"
#include "constants.h"
#include "device.h"
#include "forks.h"
#include "library.h"
#include "runtime_pool.h"
#include "states.h"
#include "streams.h"

namespace ait::runtime {

struct RunOptions {
  void* stream = nullptr;
  bool sync = true;    ///< wait for the stream before returning
  bool graph = false;  ///< launch as one recorded graph
  const ait_observer_v1* observer = nullptr;  ///< watches the launches
  void* workspace = nullptr;  ///< scratch memory of the caller's instead of the model's
  size_t workspace_bytes = 0;
};

/// @brief Counts of a model's runs since it was loaded.
struct ModelStats {
  GraphStats graphs;
  int64_t runs = 0;      ///< that succeeded, or were left going on
  int64_t failures = 0;  ///< that failed after the checks; each replaced its runtime
  int64_t waits = 0;     ///< runs that waited for a free runtime
  int64_t copies = 0;    ///< tensors that were copied because kernels cannot use them where they are
  int64_t bytes = 0;     ///< in constants and arenas, on the device
};

class Model {
 public:
  /// @param arenas, constants where the memory of the arenas and of the constants comes from; null: the device
  Model(const std::string& library_path, int num_runtimes, int device, const Lender& arenas = nullptr, const Lender& constants = nullptr);
  /// The model of a table in this library itself.
  Model(ait_model_get_fn get, int num_runtimes, int device);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Runs the model and returns the actual shapes of the outputs, one after another. The buffers of `outputs` may be larger.
  std::vector<int64_t> run(const Tensors& inputs, const Tensors& outputs, const RunOptions& options);

  /// Launches a run on `stream` with the caller's scratch memory, and returns at once: `arena_bytes(dims)` bytes, aligned to 256. It makes
  /// no allocation and checks no tensor, so the addresses must be those of tensors as `run` takes them.
  void launch_in(std::vector<int64_t> dims, std::vector<const void*> inputs, std::vector<void*> outputs, void* arena, size_t bytes,
                 void* stream);

  /// The shapes that the outputs would have, after the same checks of the inputs as `run` makes.
  Shapes infer(const Tensors& inputs) const;

  Constants& constants() { return constants_; }
  const Constants& constants() const { return constants_; }
  int num_runtimes() const { return pool_.size(); }

  /// The caller has written these bytes, which hold a donated input: they may be used again after a run that failed.
  void state_was_set(uintptr_t begin, size_t bytes) { states_.set({begin, begin + bytes, ""}); }
  /// Waits for the runs on a stream.
  void sync(void* stream);
  /// Waits for all runs since the last call. Fails if one of them failed on the device.
  void finish();

  /// The shapes and strides for these values of the dims. Dims that launches bind count as their bounds.
  Shapes shapes_of_dims(std::vector<int64_t> dims) const;
  int64_t arena_bytes(std::vector<int64_t> dims) const;

  int num_launches() const { return library_.table().num_launches; }
  const ait_model_v1& table() const { return library_.table(); }
  std::vector<int64_t> maximum_output_shapes() const { return library_.maximum_output_shapes(); }
  std::string describe() const { return library_.describe(); }
  ModelStats stats() const;
  Device& device() { return *device_; }

 private:
  struct Call;  ///< one run: its arguments as the model library wants them

  class Ranges;   ///< names of the launches of a run for a profiler
  class Staging;  ///< copies of the tensors of a run that kernels cannot use where they are

  std::vector<int64_t> run_on(Runtime& runtime, Call& call, States::Lease& state, const Shapes& shapes, Staging& staging,
                              const RunOptions& options, bool capturing);
  void* arena_for(Runtime& runtime, size_t needed, const RunOptions& options, bool capturing);
  void make_arena(Runtime& runtime, size_t needed, bool capturing);
  void launch(Runtime& runtime, Call& call, const RunOptions& options);
  void launch_part(Runtime& runtime, Call& call, const RunOptions& options);
  void launch_plain(Call& call, void* stream);
  /// Fails for an error of a run that is not empty, after what it has launched has ended.
  void check(const std::string& error, void* stream);

  ForkGuard fork_guard_{"the model"};
  std::shared_ptr<Device> device_;
  Library library_;
  const bool has_collectives_ = library_.needs("collective");
  Constants constants_;
  RuntimePool pool_;
  StreamSets stream_sets_;
  States states_;
  std::atomic<bool> has_launched_{false};  ///< since the last `finish`
  mutable std::mutex stats_mutex_;
  ModelStats stats_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_MODEL_H_
