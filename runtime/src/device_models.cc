#include "device_models.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace ait::runtime {

DeviceModels::DeviceModels(std::function<std::unique_ptr<Model>(int)> make, int device, bool is_fixed)
    : make_(std::move(make)), is_fixed_(is_fixed) {
  owned_.push_back(make_(device));
  first_ = owned_.front().get();
  if (device < kMaxDevices) models_[device].store(first_, std::memory_order_release);
}

Model& DeviceModels::of(const Tensors& inputs, const Tensors& outputs) {
  if (is_fixed_) return *first_;
  const DLDevice own = first_->device().dl();
  for (const Tensors* list : {&inputs, &outputs}) {
    for (const DLTensor* tensor : *list) {
      if (tensor->device.device_type != own.device_type) continue;
      return tensor->device.device_id == own.device_id ? *first_ : on(tensor->device.device_id);
    }
  }
  return *first_;
}

Model& DeviceModels::on(int device) {
  if (device < 0 || device >= kMaxDevices) fail(ErrorKind::kInput, "there is no ", device_target(), ":", device);
  if (Model* const known = models_[device].load(std::memory_order_acquire); known != nullptr) return *known;
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Model* const known = models_[device].load(std::memory_order_acquire); known != nullptr) return *known;
  std::unique_ptr<Model> model = make_(device);
  model->constants().copy_from(first_->constants());
  owned_.push_back(std::move(model));
  models_[device].store(owned_.back().get(), std::memory_order_release);
  return *owned_.back();
}

void DeviceModels::set_constants(const std::vector<std::string>& names, const Tensors& values, const SetOptions& options) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (options.bind && owned_.size() > 1) {
    fail(ErrorKind::kInput, "the model runs on ", owned_.size(), " devices, so a constant cannot be read from memory on one of them: set it with a copy");
  }
  for (const std::unique_ptr<Model>& model : owned_) {
    model->constants().set(names, values, options);
  }
}

void DeviceModels::swap_constants() {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<Model>& model : owned_) model->constants().swap();
}

bool DeviceModels::adopt_constants(const std::string& key) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_->constants().adopt(key);
}

void DeviceModels::publish_constants(const std::string& key) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  first_->constants().publish(key);
}

void DeviceModels::write_constants(bool spare, int file) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  first_->constants().write(spare, file);
}

void DeviceModels::map_constants(bool spare, int file, const std::vector<std::string>& names) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  first_->constants().map(spare, file, names);
}

void DeviceModels::state_was_set(uintptr_t begin, size_t bytes) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<Model>& model : owned_) model->state_was_set(begin, bytes);
}

void DeviceModels::sync(void* stream) {
  std::vector<Model*> models;
  {
    const ForkGuard::Use use(fork_guard_);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::unique_ptr<Model>& model : owned_) models.push_back(model.get());
  }
  for (Model* const model : models) model->sync(stream);
}

void DeviceModels::finish() {
  if (forks_ != forks()) return;
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<Model>& model : owned_) model->finish();
}

ModelStats DeviceModels::stats() {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  ModelStats sum;
  for (const std::unique_ptr<Model>& model : owned_) {
    const ModelStats one = model->stats();
    for (auto count : {&ModelStats::runs, &ModelStats::failures, &ModelStats::waits, &ModelStats::copies, &ModelStats::bytes}) sum.*count += one.*count;
    for (auto count : {&GraphStats::hits, &GraphStats::captures, &GraphStats::warmups, &GraphStats::fallbacks, &GraphStats::evictions, &GraphStats::updates}) {
      sum.graphs.*count += one.graphs.*count;
    }
  }
  return sum;
}

std::vector<int64_t> DeviceModels::devices() {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int64_t> found;
  for (const std::unique_ptr<Model>& model : owned_) found.push_back(model->device().dl().device_id);
  return found;
}

}  // namespace ait::runtime
