#include "timing.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "services.h"

namespace ait::runtime {
namespace {

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
  std::unique_ptr<Graph> graph;
};

Timing::Timing(int device, std::vector<int64_t> dims, int chain, const std::vector<int64_t>& copies, const Tensors& inputs)
    : device_(make_device(device)), dims_(std::move(dims)), chain_(chain) {
  if (chain < 1 || copies.size() != inputs.size() + 1) {
    fail(ErrorKind::kInput, "a timing needs a chain, a number for each input and one for the outputs");
  }
  places_ = static_cast<size_t>(std::max<int64_t>(1, copies.back()));
  const DeviceScope scope(*device_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t bytes = bytes_of(*inputs[i]);
    auto& buffers = inputs_.emplace_back();
    for (int64_t c = 0; c < std::max<int64_t>(1, copies[i]); ++c) {
      auto& buffer = buffers.emplace_back(std::make_unique<DeviceBuffer>(*device_));
      buffer->grow(bytes + 16, "an input to time kernels on");
      if (bytes > 0) device_->copy(buffer->data(), c == 0 ? data_of(*inputs[i]) : buffers[0]->data(), bytes);
    }
  }
}

Timing::~Timing() {
  try {
    const DeviceScope scope(*device_);
    device_->sync_all();
    candidates_.clear();
    outputs_.clear();
    inputs_.clear();
  } catch (const Error&) {
    // A device that failed has nothing left to wait for.
  }
}

bool Timing::run(const Candidate& candidate, int number, void* stream, std::string* error) const {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const auto& copies : inputs_) inputs.push_back(copies[static_cast<size_t>(number) % copies.size()]->data());
  for (const auto& places : outputs_) outputs.push_back(places[static_cast<size_t>(number) % places.size()]->data());
  const Services services;
  const ait_run_v1 args{dims_.data(), inputs.data(), outputs.data(), nullptr, candidate.arena.data(), stream, services.table()};
  const int32_t status = candidate.library.table().run(&args);
  if (status != 0 && error != nullptr) *error = services.error().empty() ? "status " + std::to_string(status) : services.error();
  return status == 0;
}

std::string Timing::add(const std::string& path, const std::string& symbol) {
  const DeviceScope scope(*device_);
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
  if (table.constants_bytes > 0) return "it has constants of its own";
  candidate->arena.grow(static_cast<size_t>(table.arena_bytes(dims_.data())) + 16, "the arena of a candidate");
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
