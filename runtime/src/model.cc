#include "model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "error.h"
#include "services.h"

namespace ait::runtime {
namespace {

int positive(int num_runtimes) {
  if (num_runtimes < 1) fail(ErrorKind::kInput, "num_runtimes is ", num_runtimes, ", expected at least 1");
  return num_runtimes;
}

/// The memory of the donated inputs of a run.
std::vector<StateRange> states_of(const ait_model_v1& table, const Shapes& shapes, const Tensors& inputs) {
  std::vector<StateRange> ranges;
  for (int32_t i = 0; i < table.num_outputs; ++i) {
    const int32_t input = table.outputs[i].in_place_of - 1;
    if (input < 0) continue;
    int64_t bytes = dtype_bytes(table.inputs[input].dtype);
    for (int32_t axis = 0; axis < table.inputs[input].rank; ++axis) bytes *= shapes.input(input)[axis];
    const auto begin = reinterpret_cast<uintptr_t>(data_of(*inputs[static_cast<size_t>(input)]));
    if (bytes > 0) ranges.push_back({begin, begin + static_cast<uintptr_t>(bytes), table.inputs[input].name});
  }
  return ranges;
}

/// Fails if an output lies where a bound constant is read.
void check_bound(const ait_model_v1& table, const ConstantSet& constants, const Shapes& shapes, const Tensors& outputs) {
  for (int32_t i = 0; i < table.num_outputs; ++i) {
    int64_t bytes = dtype_bytes(table.outputs[i].dtype);
    for (int32_t axis = 0; axis < table.outputs[i].rank; ++axis) bytes *= shapes.output(i)[axis];
    const auto begin = reinterpret_cast<uintptr_t>(data_of(*outputs[static_cast<size_t>(i)]));
    const StateRange written{begin, begin + static_cast<uintptr_t>(bytes), table.outputs[i].name};
    for (int32_t c = 0; c < table.num_constants; ++c) {
      const auto from = reinterpret_cast<uintptr_t>(constants.bound[static_cast<size_t>(c)]);
      if (from == 0 || !written.overlaps({from, from + static_cast<uintptr_t>(table.constants[c].bytes), ""})) continue;
      fail(ErrorKind::kInput, "output '", written.name, "' overlaps the memory that constant '", table.constants[c].name,
           "' is bound to: pass a buffer of its own");
    }
  }
}

}  // namespace

struct Model::Call {
  std::vector<int64_t> dims;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const ConstantSet& constants;
  void* arena;
  const ait_model_v1& table;
  int32_t part = 0;
  const ait_observer_v1* observer = nullptr;

  /// Launches the part on `stream`. Returns the reason of the failure, or an empty string.
  std::string run(void* stream) { return call(table.run, stream); }

  /// Waits for what the part has launched. The dims that it has bound are known then.
  std::string wait(void* stream) { return call(table.wait, stream); }

  GraphKey key() const {
    GraphKey key = dims;
    key.push_back(part);
    for (const void* p : inputs) key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(p)));
    for (const void* p : outputs) key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(p)));
    if (constants.has_bound) {
      for (const void* p : constants.bound) key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(p)));
    }
    for (const void* p : {static_cast<const void*>(constants.blob.data()), static_cast<const void*>(arena)}) key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(p)));
    return key;
  }

 private:
  std::string call(int32_t (*function)(const ait_run_v1*), void* stream) {
    RunHost host;
    const void* const* bound = constants.has_bound ? constants.bound.data() : nullptr;
    const ait_run_v1 args{dims.data(), inputs.data(), outputs.data(), constants.blob.data(), arena, stream, &host.table, part, bound, observer};
    const int32_t status = function(&args);
    if (status == 0) return {};
    return host.error.empty() ? "status " + std::to_string(status) : host.error;
  }
};

Model::Model(const std::string& library_path, int num_runtimes, int device)
    : device_(make_device(device)),
      library_(library_path),
      constants_(*device_, library_.table()),
      pool_(*device_, positive(num_runtimes)),
      states_(*device_) {}

Model::Model(ait_model_get_fn get, int num_runtimes, int device)
    : device_(make_device(device)),
      library_(get),
      constants_(*device_, library_.table()),
      pool_(*device_, positive(num_runtimes)),
      states_(*device_) {}

Model::~Model() {
  try {
    const DeviceScope scope(*device_);
    device_->sync_all();
  } catch (const Error&) {
    // A device that failed has nothing left to wait for.
  }
}

std::vector<int64_t> Model::run(const Tensors& inputs, const Tensors& outputs, const RunOptions& options) {
  const ait_model_v1& table = library_.table();
  if (options.graph && !device_->has_graphs()) {
    fail(ErrorKind::kInput, "graph mode is not there on target ", device_target(), ", which has no graphs: pass graph_mode=False");
  }
  const Constants::Use constants(constants_);
  Call call{bind_dims(table, *device_, inputs), {}, {}, *constants, nullptr, table};
  const Shapes shapes(table, call.dims.data());
  check_outputs(table, *device_, shapes, inputs, outputs);
  if (constants->has_bound) check_bound(table, *constants, shapes, outputs);
  for (const DLTensor* tensor : inputs) call.inputs.push_back(data_of(*tensor));
  for (const DLTensor* tensor : outputs) call.outputs.push_back(data_of(*tensor));

  const DeviceScope scope(*device_);
  const bool capturing = device_->is_capturing(options.stream);
  if (capturing && options.sync) {
    fail(ErrorKind::kInput, "the stream is being captured, so the run cannot wait for it: pass sync=False");
  }
  // Before a runtime is taken, for a run that has the state may wait for a runtime.
  States::Lease state(states_, states_of(table, shapes, inputs), options.stream, capturing);
  const RuntimePool::Lease lease(pool_, options.stream);
  Runtime& runtime = *lease;
  try {
    make_arena(runtime, static_cast<size_t>(table.arena_bytes(call.dims.data())), capturing);
  } catch (...) {
    state.cancel();
    throw;
  }
  runtime.is_recorded |= capturing;
  if (capturing) constants->is_recorded = true;
  call.arena = runtime.arena->data();
  call.observer = options.observer;
  if (runtime.pending && runtime.last_stream != options.stream && !capturing) runtime.event->wait(options.stream);

  // A kernel may read constants while the launch before it still runs, which may be the caller's that writes bound ones.
  if (constants->has_bound && !capturing) runtime.mark(*device_, options.stream);
  RunOptions effective = options;
  effective.graph = options.graph && !capturing;
  launch(runtime, call, effective);
  if (options.sync) {
    runtime.pending = false;
    device_->sync(options.stream);
  } else if (!capturing) {
    runtime.mark(*device_, options.stream);
    runtime.pending = true;
  }
  runtime.last_stream = options.stream;
  state.finish(options.stream, !options.sync && !capturing);
  return table.bounds == nullptr ? shapes.outputs() : Shapes(table, call.dims.data()).outputs();
}

void Model::launch_in(std::vector<int64_t> dims, std::vector<const void*> inputs, std::vector<void*> outputs, void* arena, size_t bytes,
                      void* stream) {
  const ait_model_v1& table = library_.table();
  const Constants::Use constants(constants_);
  check_dims(table, dims);
  const auto wrong = [](const char* what, size_t found, int32_t expected) {
    fail(ErrorKind::kInput, "a launch got ", found, " ", what, ", expected ", expected);
  };
  if (inputs.size() != static_cast<size_t>(table.num_inputs)) wrong("inputs", inputs.size(), table.num_inputs);
  if (outputs.size() != static_cast<size_t>(table.num_outputs)) wrong("outputs", outputs.size(), table.num_outputs);
  if (table.num_waits != 0) fail(ErrorKind::kInput, "the run of this model waits for the device: call run");
  const auto needed = static_cast<size_t>(table.arena_bytes(dims.data()));
  if (needed > bytes || (needed != 0 && reinterpret_cast<uintptr_t>(arena) % 256 != 0)) {
    fail(ErrorKind::kInput, "the workspace has ", bytes, " bytes at ", arena, ", expected ", needed, " at a multiple of 256");
  }
  const DeviceScope scope(*device_);
  if (device_->is_capturing(stream)) constants->is_recorded = true;
  Call call{std::move(dims), std::move(inputs), std::move(outputs), *constants, arena, table};
  launch_plain(call, stream);
}

void Model::make_arena(Runtime& runtime, size_t needed, bool capturing) {
  if (needed <= runtime.arena->bytes()) return;
  if (capturing) {
    fail(ErrorKind::kInput, "the stream is being captured, and a run of this size needs more memory than any before: "
                            "run once at this size before the capture");
  }
  if (runtime.pending) device_->sync(runtime.last_stream);
  runtime.pending = false;
  runtime.make_room(*device_, needed, "the arena of a run");
}

void Model::sync(void* stream) {
  const DeviceScope scope(*device_);
  try {
    device_->sync(stream);
  } catch (const Error&) {
    states_.invalidate_pending();
    throw;
  }
}

void Model::launch(Runtime& runtime, Call& call, const RunOptions& options) {
  const int32_t waits = call.table.num_waits, parts = waits + (call.table.ends_with_wait != 0 ? 0 : 1);
  for (call.part = 0; call.part < parts; ++call.part) {
    launch_part(runtime, call, options);
    if (call.part < waits) check(call.wait(options.stream), options.stream);
  }
}

void Model::launch_part(Runtime& runtime, Call& call, const RunOptions& options) {
  if (!options.graph) return launch_plain(call, options.stream);
  const auto count = [this](int64_t GraphStats::*counter, int64_t by = 1) {
    const std::lock_guard<std::mutex> lock(stats_mutex_);
    stats_.*counter += by;
  };
  const GraphKey key = call.key();
  GraphCache::Entry* entry = runtime.graphs.find(key);
  if (entry == nullptr) {
    // The first use runs plainly, so that libraries set up what may not be set up while a graph is recorded.
    launch_plain(call, options.stream);
    runtime.graphs.remember(key);
    return count(&GraphStats::warmups);
  }
  if (entry->graph != nullptr) {
    entry->graph->launch(options.stream);
    return count(&GraphStats::hits);
  }
  std::unique_ptr<Graph> graph;
  if (!entry->failed) graph = device_->record([&call](void* stream) { return call.run(stream).empty(); });
  if (graph == nullptr) {
    entry->failed = true;
    launch_plain(call, options.stream);
    return count(&GraphStats::fallbacks);
  }
  graph->launch(options.stream);
  count(&GraphStats::evictions, runtime.graphs.keep(entry, std::move(graph)));
  count(&GraphStats::captures);
}

void Model::launch_plain(Call& call, void* stream) {
  check(call.run(stream), stream);
}

void Model::check(const std::string& error, void* stream) {
  if (error.empty()) return;
  // What was launched before the failure still uses the arena: let it end before the runtime is lent again.
  try {
    device_->sync(stream);
  } catch (const Error&) {
    // The reason of the model is the one to report.
  }
  fail(ErrorKind::kRun, "model ", library_.table().name, " failed: ", error);
}

std::vector<int64_t> Model::infer(const Tensors& inputs) const {
  return Shapes(library_.table(), bind_dims(library_.table(), *device_, inputs).data()).outputs();
}

std::vector<int64_t> Model::shapes_of_dims(std::vector<int64_t> dims, bool inputs) const {
  const ait_model_v1& table = library_.table();
  check_dims(table, dims);
  if (table.bounds != nullptr) table.bounds(dims.data());
  const Shapes shapes(table, dims.data());
  if (!inputs) return shapes.outputs();
  std::vector<int64_t> all;
  for (int32_t i = 0; i < table.num_inputs; ++i) all.insert(all.end(), shapes.input(i), shapes.input(i) + table.inputs[i].rank);
  return all;
}

int64_t Model::arena_bytes(std::vector<int64_t> dims) const {
  check_dims(library_.table(), dims);
  if (library_.table().bounds != nullptr) library_.table().bounds(dims.data());
  return library_.table().arena_bytes(dims.data());
}

GraphStats Model::graph_stats() const {
  const std::lock_guard<std::mutex> lock(stats_mutex_);
  return stats_;
}

}  // namespace ait::runtime
