#include "timing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "error.h"

namespace ait::runtime {
namespace {

constexpr size_t kWorkspace = size_t(32) << 20;

size_t bytes_of(const DLTensor& tensor) {
  size_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= static_cast<size_t>(tensor.shape[i]);
  return count * ((static_cast<size_t>(tensor.dtype.bits) * tensor.dtype.lanes + 7) / 8);
}

}  // namespace

struct Timing::Candidate {
  Candidate(Device& device, const std::string& path, const std::string& symbol) : library(path, symbol), arena(device) {}

  Library library;
  DeviceBuffer arena;
  Buffers* constants = nullptr;
  ait_gemm_algorithm_v1 algorithm{};
  std::optional<GemmTrial> trial;
  std::unique_ptr<Graph> graph;
};

Timing::Timing(int device, std::vector<int64_t> dims, int chain, int places, int copies, const Tensors& inputs, const Tensors& patterns)
    : device_(make_device(device)),
      dims_(std::move(dims)),
      chain_(chain),
      places_(static_cast<size_t>(places)),
      copies_(static_cast<size_t>(copies)) {
  if (chain < 1 || places < 1 || copies < 1) fail(ErrorKind::kInput, "a timing needs a chain, places and copies, at least 1 of each");
  const DeviceScope scope(*device_);
  for (const DLTensor* input : inputs) {
    const size_t bytes = bytes_of(*input);
    auto& buffers = inputs_.emplace_back();
    for (size_t p = 0; p < places_; ++p) {
      auto& buffer = buffers.emplace_back(std::make_unique<DeviceBuffer>(*device_));
      buffer->grow(bytes + 16, "an input to time kernels on");
      if (bytes > 0) device_->copy(buffer->data(), p == 0 ? data_of(*input) : buffers[0]->data(), bytes);
    }
  }
  for (const DLTensor* pattern : patterns) {
    const char* data = static_cast<const char*>(data_of(*pattern));
    patterns_.emplace_back(data, data + bytes_of(*pattern));
  }
}

Timing::Buffers& Timing::constants_for(const ait_model_v1& table) {
  Buffers& copies = constants_[table.constants_bytes];
  if (!copies.empty() || table.constants_bytes == 0) return copies;
  std::vector<char> data(static_cast<size_t>(table.constants_bytes));
  for (int32_t i = 0; i < table.num_constants; ++i) {
    const ait_constant_v1& constant = table.constants[i];
    const auto& pattern = patterns_.at(static_cast<size_t>(constant.dtype));
    for (int32_t p = 0; p < constant.num_places; ++p) {
      // Up to the end: a packed constant takes more room than its bytes, and the next constant follows it.
      for (size_t at = static_cast<size_t>(constant.places[p]); at < data.size(); at += pattern.size()) {
        std::copy_n(pattern.begin(), std::min(pattern.size(), data.size() - at), data.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  for (size_t c = 0; c < copies_; ++c) {
    auto& buffer = copies.emplace_back(std::make_unique<DeviceBuffer>(*device_));
    buffer->grow(data.size(), "constants to time kernels on");
    device_->copy(buffer->data(), c == 0 ? data.data() : copies[0]->data(), data.size());
  }
  return copies;
}

Timing::~Timing() {
  try {
    const DeviceScope scope(*device_);
    device_->sync_all();
    candidates_.clear();
    outputs_.clear();
    workspace_.reset();
    inputs_.clear();
    constants_.clear();
  } catch (const Error&) {
    // A device that failed has nothing left to wait for.
  }
}

bool Timing::run(const Candidate& candidate, int number, void* stream, std::string* error) const {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const auto turn = static_cast<size_t>(number);
  for (const Buffers& places : inputs_) inputs.push_back(places[turn % places.size()]->data());
  for (const Buffers& places : outputs_) outputs.push_back(places[turn % places.size()]->data());
  const Buffers& copies = *candidate.constants;
  const void* constants = copies.empty() ? nullptr : copies[turn % copies.size()]->data();
  RunHost host(candidate.trial ? &*candidate.trial : nullptr);
  std::vector<int64_t> dims = dims_;
  const ait_run_v1 args{dims.data(), inputs.data(), outputs.data(), constants, candidate.arena.data(), stream, &host.table, 0, nullptr, nullptr};
  const int32_t status = candidate.library.table().run(&args);
  if (status != 0 && error != nullptr) *error = host.error.empty() ? "status " + std::to_string(status) : host.error;
  return status == 0;
}

GemmTrial Timing::trial() {
  if (workspace_ == nullptr) {
    workspace_ = std::make_unique<DeviceBuffer>(*device_);
    workspace_->grow(kWorkspace, "the workspace of a gemm library");
  }
  GemmTrial trial;
  trial.workspace = workspace_->data(), trial.workspace_bytes = static_cast<int64_t>(kWorkspace);
  return trial;
}

std::unique_ptr<Timing::Candidate> Timing::open(const std::string& path, const std::string& symbol) {
  auto candidate = std::make_unique<Candidate>(*device_, path, symbol);
  const ait_model_v1& table = candidate->library.table();
  if (static_cast<size_t>(table.num_inputs) != inputs_.size()) {
    fail(ErrorKind::kInput, symbol, " has ", table.num_inputs, " inputs, the timing ", inputs_.size());
  }
  check_dims(table, dims_);
  if (outputs_.empty()) {
    const Shapes shapes(table, dims_.data());
    for (int32_t i = 0; i < table.num_outputs; ++i) {
      size_t bytes = static_cast<size_t>(dtype_bytes(table.outputs[i].dtype));
      for (int32_t d = 0; d < table.outputs[i].rank; ++d) bytes *= static_cast<size_t>(shapes.output(i)[d]);
      auto& places = outputs_.emplace_back();
      for (size_t p = 0; p < places_; ++p) {
        places.emplace_back(std::make_unique<DeviceBuffer>(*device_))->grow(bytes + 16, "an output to time kernels on");
      }
    }
  }
  candidate->constants = &constants_for(table);
  candidate->arena.grow(static_cast<size_t>(table.arena_bytes(dims_.data())) + 16, "the arena of a candidate");
  return candidate;
}

std::vector<int64_t> Timing::algorithms(const std::string& path, const std::string& symbol) {
  const DeviceScope scope(*device_);
  const auto candidate = open(path, symbol);
  std::vector<ait_gemm_algorithm_v1> found;
  candidate->trial = trial();
  candidate->trial->list = &found;
  std::string error;
  if (!run(*candidate, 0, nullptr, &error)) return {};
  device_->sync(nullptr);
  std::vector<int64_t> parts;
  for (const ait_gemm_algorithm_v1& algorithm : found) parts.insert(parts.end(), std::begin(algorithm.parts), std::end(algorithm.parts));
  return parts;
}

std::string Timing::add(const std::string& path, const std::string& symbol, const std::vector<int64_t>& algorithm) {
  const DeviceScope scope(*device_);
  auto candidate = open(path, symbol);
  if (!algorithm.empty()) {
    if (algorithm.size() != AIT_GEMM_ALGORITHM_PARTS) fail(ErrorKind::kInput, "an algorithm has ", AIT_GEMM_ALGORITHM_PARTS, " parts");
    std::transform(algorithm.begin(), algorithm.end(), candidate->algorithm.parts, [](int64_t part) { return static_cast<int32_t>(part); });
    candidate->trial = trial();
    candidate->trial->algorithm = &candidate->algorithm;
  }
  std::string error;
  if (!run(*candidate, 0, nullptr, &error)) return error;
  device_->sync(nullptr);
  candidate->graph = device_->record([&](void* stream) {
    for (int i = 0; i < chain_; ++i) {
      if (!run(*candidate, i, stream, nullptr)) return false;
    }
    return true;
  });
  candidates_.push_back(std::move(candidate));
  return {};
}

double Timing::sample(size_t index) {
  if (index >= candidates_.size()) fail(ErrorKind::kInput, "there is no candidate ", index, ": ", candidates_.size(), " were added");
  const DeviceScope scope(*device_);
  const Candidate& candidate = *candidates_[index];
  const auto replay = [&] {
    if (candidate.graph != nullptr) return candidate.graph->launch(nullptr);
    for (int i = 0; i < chain_; ++i) {
      std::string error;
      if (!run(candidate, i, nullptr, &error)) fail(ErrorKind::kRun, "a candidate failed: ", error);
    }
  };
  return device_->seconds(replay, replay) / chain_;
}

}  // namespace ait::runtime
