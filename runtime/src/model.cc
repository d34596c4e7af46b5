#include "model.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "error.h"
#include "services.h"

namespace ait::runtime {
namespace {

constexpr size_t kAlignment = 256;  ///< of the arena, and of each copy in it

constexpr size_t kMostBytes = size_t{1} << 62;  ///< of an arena with its copies

int checked(int num_runtimes) {
  if (num_runtimes >= 1 && num_runtimes <= AIT_MAX_RUNTIMES) return num_runtimes;
  fail(ErrorKind::kInput, "num_runtimes is ", num_runtimes, ", expected a number from 1 to ", AIT_MAX_RUNTIMES);
}

/// The memory of the donated inputs of a run.
std::vector<StateRange> states_of(const ait_model_v1& table, const Shapes& shapes, const Tensors& inputs) {
  std::vector<StateRange> ranges;
  for (int32_t i = 0; i < table.num_outputs; ++i) {
    const int32_t input = table.outputs[i].in_place_of - 1;
    if (input < 0) continue;
    int64_t bytes = dtype_bytes(table.inputs[input].dtype);
    for (int32_t axis = 0; axis < table.inputs[input].rank; ++axis) bytes *= shapes.input(input)[axis];
    const Span span = span_of(*inputs[static_cast<size_t>(input)], bytes);
    if (bytes > 0) ranges.push_back({span.begin, span.end, table.inputs[input].name});
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
  ConstantSet& constants;
  void* arena;
  const ait_model_v1& table;
  StreamSets::Lease streams;
  int32_t part = 0;
  const ait_observer_v1* observer = nullptr;

  /// Launches the part on `stream`. Returns the reason of the failure, or an empty string.
  std::string run(void* stream) { return call(table.run, stream); }

  /// Waits for the launches of the part; afterwards the dims that it has bound are known.
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
    RunHost host(nullptr, &streams);
    const void* const* bound = constants.has_bound ? constants.bound.data() : nullptr;
    const ait_run_v1 args{dims.data(), inputs.data(), outputs.data(), constants.blob.data(), arena, stream, &host.table, part, bound, observer};
    const int32_t status = function(&args);
    if (status == 0) return {};
    streams.settle();
    return host.error.empty() ? "status " + std::to_string(status) : host.error;
  }
};

/// A range of a profiler for each launch of a run, from the time when the host makes it to that of the next one.
class Model::Ranges {
 public:
  Ranges(Device& device, const ait_model_v1& table) : device_(device), table_(table), observer_{this, before, nullptr} {}
  ~Ranges() { close(); }  // a run that failed has not come to its end
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  const ait_observer_v1* observer() const { return &observer_; }

 private:
  static void before(void* self, int32_t launch, void*) {
    auto& ranges = *static_cast<Ranges*>(self);
    ranges.close();
    if (launch < 0) return;
    ranges.device_.open_range(ranges.table_.launches[launch]);
    ranges.is_open_ = true;
  }

  void close() {
    if (is_open_) device_.close_range();
    is_open_ = false;
  }

  Device& device_;
  const ait_model_v1& table_;
  bool is_open_ = false;
  ait_observer_v1 observer_;
};

class Model::Staging {
 public:
  /// `used` bytes of the arena are the model's own; copies lie after them.
  Staging(Device& device, const ait_model_v1& table, const Shapes& shapes, const Tensors& inputs, const Tensors& outputs, size_t used)
      : device_(device), table_(table), inputs_(inputs), outputs_(outputs), bytes_(used) {
    for (int32_t i = 0; i < table.num_inputs; ++i) {
      const DLTensor& tensor = *inputs[static_cast<size_t>(i)];
      const int64_t* strides = shapes.input_strides(i);
      if (is_misaligned(device, tensor) || !lies_at(tensor, strides)) add(&ins_, i, shapes.input(i), strides, table.inputs[i]);
    }
    for (int32_t i = 0; i < table.num_outputs; ++i) {
      const int32_t own = table.outputs[i].in_place_of - 1;
      if (can_be_written(*outputs[static_cast<size_t>(i)], shapes.output(i), shapes.output_strides(i))) continue;
      const auto same = std::find_if(ins_.begin(), ins_.end(), [own](const Copied& c) { return c.which == own; });
      if (same != ins_.end()) {
        outs_.push_back({i, same->offset, nullptr});  // the model writes into the copy of the input
      } else {
        add(&outs_, i, shapes.output(i), shapes.output_strides(i), table.outputs[i]);
      }
    }
  }

  size_t bytes() const { return bytes_; }
  int64_t count() const { return static_cast<int64_t>(ins_.size() + outs_.size()); }

  /// Copies the inputs, and makes the run use the copies.
  void fetch(Call& call, void* stream) {
    arena_ = static_cast<char*>(call.arena);
    for (const Copied& copied : ins_) {
      const DLTensor& tensor = *inputs_[static_cast<size_t>(copied.which)];
      call.inputs[static_cast<size_t>(copied.which)] = arena_ + copied.offset;
      copy(tensor, tensor.shape, copied, true, stream);
    }
    for (const Copied& copied : outs_) call.outputs[static_cast<size_t>(copied.which)] = arena_ + copied.offset;
  }

  /// Copies the outputs, of these shapes one after another, into the leading elements of the caller's tensors in each dim.
  void deliver(const std::vector<int64_t>& shapes, void* stream) {
    for (const Copied& copied : outs_) {
      size_t start = 0;
      for (int32_t i = 0; i < copied.which; ++i) start += static_cast<size_t>(table_.outputs[i].rank);
      copy(*outputs_[static_cast<size_t>(copied.which)], shapes.data() + start, copied, false, stream);
    }
  }

 private:
  struct Copied {
    int32_t which;
    size_t offset;
    const int64_t* strides;  ///< where kernels find its elements; null: it is row-major, of the shape of the run
  };

  /// Whether kernels can write an output of this shape where it is. A row-major buffer that is larger holds its output without gaps.
  bool can_be_written(const DLTensor& tensor, const int64_t* shape, const int64_t* strides) const {
    if (is_misaligned(device_, tensor)) return false;
    if (are_packed(shape, strides, tensor.ndim)) return is_row_major(tensor);
    return lies_at(tensor, strides) && std::equal(shape, shape + tensor.ndim, tensor.shape);
  }

  void add(std::vector<Copied>* list, int32_t which, const int64_t* shape, const int64_t* strides, const ait_tensor_v1& tensor) {
    const size_t offset = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    // The result of a dim that the run binds lies row-major in the shape that it has then.
    list->push_back({which, offset, are_packed(shape, strides, tensor.rank) ? nullptr : strides});
    bytes_ = offset + static_cast<size_t>(extent(shape, strides, tensor.rank) * dtype_bytes(tensor.dtype));
    if (bytes_ > kMostBytes) fail(ErrorKind::kInput, "the arena and the copies of tensors need more than 2^62 bytes: pass tensors that lie as declared");
  }

  void copy(const DLTensor& tensor, const int64_t* shape, const Copied& copied, bool to_packed, void* stream) {
    const auto rank = static_cast<size_t>(tensor.ndim);
    char* const packed = arena_ + copied.offset;
    StridedCopy copy{nullptr, nullptr, {shape, shape + rank}, std::vector<int64_t>(rank), std::vector<int64_t>(rank),
                     static_cast<size_t>(tensor.dtype.bits + 7) / 8};
    std::vector<int64_t>& own = to_packed ? copy.to_strides : copy.from_strides;
    std::vector<int64_t>& theirs = to_packed ? copy.from_strides : copy.to_strides;
    const bool is_packed = is_row_major(tensor);
    int64_t packed_stride = 1;
    for (size_t i = rank; i-- > 0;) {
      own[i] = copied.strides == nullptr ? packed_stride : copied.strides[i];
      // A row-major buffer that is larger than its output holds it without gaps, as one that needs no copy does.
      theirs[i] = is_packed ? packed_stride : tensor.strides[i];
      packed_stride *= shape[i];
    }
    copy.to = to_packed ? packed : static_cast<char*>(data_of(tensor));
    copy.from = to_packed ? static_cast<char*>(data_of(tensor)) : packed;
    if (table_.copy == nullptr || !copy.fits_kernels()) return device_.copy_strided(copy, stream);
    RunHost host(nullptr);
    const ait_copy_v1 launched{copy.to, copy.from, tensor.ndim, static_cast<int32_t>(copy.element), copy.shape.data(), copy.to_strides.data(), copy.from_strides.data()};
    if (table_.copy(&launched, stream, &host.table) != 0) fail(ErrorKind::kRun, "copying a strided tensor: ", host.error);
  }

  Device& device_;
  const ait_model_v1& table_;
  const Tensors& inputs_;
  const Tensors& outputs_;
  size_t bytes_;
  char* arena_ = nullptr;
  std::vector<Copied> ins_, outs_;
};

Model::Model(const std::string& library_path, int num_runtimes, int device, const Lender& arenas, const Lender& constants)
    : device_(make_device(device)),
      library_(library_path),
      constants_(device_, library_.table(), constants),
      pool_(*device_, checked(num_runtimes), arenas),
      stream_sets_(*device_),
      states_(*device_) {}

Model::Model(ait_model_get_fn get, int num_runtimes, int device)
    : device_(make_device(device)),
      library_(get),
      constants_(device_, library_.table()),
      pool_(*device_, checked(num_runtimes), nullptr),
      stream_sets_(*device_),
      states_(*device_) {}

Model::~Model() {
  try {
    finish();
  } catch (const Error&) {
    // A device that failed has nothing left to wait for. Callers who want its error call `finish` before.
  }
}

void Model::finish() {
  if (!has_launched_.exchange(false)) return;
  const DeviceScope scope(*device_);
  device_->sync_all();
}

std::vector<int64_t> Model::run(const Tensors& inputs, const Tensors& outputs, const RunOptions& options) {
  const ForkGuard::Use use(fork_guard_);
  const ait_model_v1& table = library_.table();
  if (options.graph && !device_->has_graphs()) {
    fail(ErrorKind::kInput, "graph mode is not there on target ", device_target(), ", which has no graphs: pass graph_mode=False");
  }
  if (has_collectives_) device_->check_collectives();
  const Constants::Use constants(constants_);
  has_launched_.store(true, std::memory_order_relaxed);
  Call call{bind_dims(table, *device_, inputs), {}, {}, *constants, nullptr, table, StreamSets::Lease(stream_sets_)};
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
  Staging staging(*device_, table, shapes, inputs, outputs, static_cast<size_t>(table.arena_bytes(call.dims.data())));
  try {
    call.arena = arena_for(runtime, staging.bytes(), options, capturing);
  } catch (...) {
    state.cancel();
    throw;
  }
  std::optional<Ranges> ranges;
  if (options.observer == nullptr && device_->has_ranges()) ranges.emplace(*device_, table);
  call.observer = ranges.has_value() ? ranges->observer() : options.observer;
  try {
    return run_on(runtime, call, state, shapes, staging, options, capturing);
  } catch (...) {
    runtime.last_stream = options.stream;
    runtime.replace(*device_);
    const std::lock_guard<std::mutex> lock(stats_mutex_);
    ++stats_.failures;
    throw;
  }
}

std::vector<int64_t> Model::run_on(Runtime& runtime, Call& call, States::Lease& state, const Shapes& shapes, Staging& staging,
                                   const RunOptions& options, bool capturing) {
  const bool is_ours = options.workspace == nullptr;
  runtime.is_recorded |= capturing && is_ours;
  if (capturing) call.constants.is_recorded = true;
  if (runtime.pending && runtime.last_stream != options.stream && !capturing) runtime.event->wait(options.stream);

  // A kernel may read constants while the launch before it still runs, which may be the caller's that writes bound ones.
  if (call.constants.has_bound && !capturing) runtime.mark(*device_, options.stream);
  staging.fetch(call, options.stream);
  RunOptions effective = options;
  effective.graph = options.graph && !capturing;
  launch(runtime, call, effective);
  const std::vector<int64_t> actual = call.table.bounds == nullptr ? shapes.outputs() : Shapes(call.table, call.dims.data()).outputs();
  staging.deliver(actual, options.stream);
  if (options.sync) {
    runtime.pending = false;
    device_->sync(options.stream);
    if (has_collectives_) device_->check_collectives();
  } else if (!capturing) {
    runtime.mark(*device_, options.stream);
    runtime.pending = true;
  }
  runtime.last_stream = options.stream;
  state.finish(options.stream, !options.sync && !capturing);
  const std::lock_guard<std::mutex> lock(stats_mutex_);
  ++stats_.runs;
  stats_.copies += staging.count();
  return actual;
}

void* Model::arena_for(Runtime& runtime, size_t needed, const RunOptions& options, bool capturing) {
  if (options.workspace == nullptr) {
    make_arena(runtime, needed, capturing);
    return runtime.arena->data();
  }
  if (needed > options.workspace_bytes || reinterpret_cast<uintptr_t>(options.workspace) % kAlignment != 0) {
    fail(ErrorKind::kInput, "the workspace has ", options.workspace_bytes, " bytes at ", options.workspace, ", expected ", needed,
         " at a multiple of ", kAlignment);
  }
  return options.workspace;
}

void Model::launch_in(std::vector<int64_t> dims, std::vector<const void*> inputs, std::vector<void*> outputs, void* arena, size_t bytes,
                      void* stream) {
  const ForkGuard::Use use(fork_guard_);
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
  has_launched_.store(true, std::memory_order_relaxed);
  Call call{std::move(dims), std::move(inputs), std::move(outputs), *constants, arena, table, StreamSets::Lease(stream_sets_)};
  launch_plain(call, stream);
  if (has_collectives_) device_->watch_collectives(stream);
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
  const ForkGuard::Use use(fork_guard_);
  const DeviceScope scope(*device_);
  try {
    device_->sync(stream);
    if (has_collectives_) device_->check_collectives();
  } catch (const Error&) {
    states_.invalidate_pending();
    throw;
  }
}

void Model::launch(Runtime& runtime, Call& call, const RunOptions& options) {
  const int32_t waits = call.table.num_waits, parts = waits + (call.table.ends_with_wait != 0 ? 0 : 1);
  for (call.part = 0; call.part < parts; ++call.part) {
    launch_part(runtime, call, options);
    if (has_collectives_) device_->watch_collectives(options.stream);
    if (call.part < waits) check(call.wait(options.stream), options.stream);
  }
}

void Model::launch_part(Runtime& runtime, Call& call, const RunOptions& options) {
  if (!options.graph) return launch_plain(call, options.stream);
  const auto count = [this](int64_t GraphStats::*counter, int64_t by = 1) {
    const std::lock_guard<std::mutex> lock(stats_mutex_);
    stats_.graphs.*counter += by;
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
  const auto body = [&call](void* stream) { return call.run(stream).empty(); };
  std::unique_ptr<Graph> graph = entry->failed ? nullptr : runtime.graphs.take_alike(key, call.dims.size() + 1);
  if (graph != nullptr && graph->update(body)) {
    graph->launch(options.stream);
    runtime.graphs.keep(entry, std::move(graph));
    return count(&GraphStats::updates);
  }
  graph = entry->failed ? nullptr : device_->record(body);
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
  // Launches before the failure still use the arena: let them end before the runtime is lent again.
  try {
    device_->sync(stream);
  } catch (const Error&) {
    // The reason of the model is the one to report.
  }
  fail(ErrorKind::kRun, "model ", library_.table().name, " failed: ", error);
}

Shapes Model::infer(const Tensors& inputs) const { return {library_.table(), bind_dims(library_.table(), *device_, inputs).data()}; }

Shapes Model::shapes_of_dims(std::vector<int64_t> dims) const {
  const ait_model_v1& table = library_.table();
  check_dims(table, dims);
  if (table.bounds != nullptr) table.bounds(dims.data());
  return {table, dims.data()};
}

int64_t Model::arena_bytes(std::vector<int64_t> dims) const {
  check_dims(library_.table(), dims);
  if (library_.table().bounds != nullptr) library_.table().bounds(dims.data());
  return library_.table().arena_bytes(dims.data());
}

ModelStats Model::stats() const {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(stats_mutex_);
  ModelStats stats = stats_;
  stats.waits = pool_.waits();
  stats.bytes = device_->buffer_bytes.load();
  return stats;
}

}  // namespace ait::runtime
