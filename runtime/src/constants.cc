#include "constants.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace ait::runtime {

Constants::Constants(Device& device, const ait_model_v1& table)
    : device_(device), table_(table), current_(std::make_shared<ConstantSet>(device, static_cast<size_t>(table.num_constants))) {
  const DeviceScope scope(device);
  current_->blob.grow(static_cast<size_t>(table.constants_bytes), "the constants of the model");
}

Constants::Use::Use(const Constants& constants) {
  const std::lock_guard<std::mutex> gate(constants.gate_);
  set_ = constants.current_;
  lock_ = std::shared_lock<std::shared_mutex>(set_->mutex);
  constants.check_all_set(*set_);
}

int32_t Constants::index_of(const std::string& name) const {
  for (int32_t i = 0; i < table_.num_constants; ++i) {
    if (name == table_.constants[i].name) return i;
  }
  fail(ErrorKind::kInput, "the model has no constant '", name, "'");
}

void Constants::check_all_set(const ConstantSet& set) const {
  const auto first = std::find(set.is_set.begin(), set.is_set.end(), false);
  if (first == set.is_set.end()) return;
  const auto missing = std::count(set.is_set.begin(), set.is_set.end(), false);
  fail(ErrorKind::kInput, missing, missing == 1 ? " constant has" : " constants have", " no value, first '",
       table_.constants[first - set.is_set.begin()].name, "': call set_constant before run");
}

std::vector<std::string> Constants::missing(bool spare) const {
  std::vector<std::string> names;
  const std::lock_guard<std::mutex> writer(writers_);
  const ConstantSet& set = spare && is_prepared_ ? *spare_ : *current_;
  for (size_t i = 0; i < set.is_set.size(); ++i) {
    if (!set.is_set[i]) names.emplace_back(table_.constants[i].name);
  }
  return names;
}

ConstantSet& Constants::spare() {
  if (spare_ != nullptr && spare_->is_recorded) {
    kept_.push_back(std::move(spare_));
    spare_.reset();
  }
  if (spare_ == nullptr) {
    auto made = std::make_shared<ConstantSet>(device_, static_cast<size_t>(table_.num_constants));
    made->blob.grow(static_cast<size_t>(table_.constants_bytes), "the second set of constants");
    spare_ = std::move(made);
  }
  return *spare_;
}

void Constants::set(const std::vector<std::string>& names, const Tensors& values, const SetOptions& options) {
  std::vector<int32_t> which;
  for (size_t i = 0; i < names.size(); ++i) {
    which.push_back(index_of(names[i]));
    const ait_constant_v1& constant = table_.constants[which.back()];
    check_constant(constant, device_, *values[i]);
    if (options.bind) check_bound_constant(constant, device_, *values[i]);
  }
  if (names.empty()) return;
  const std::lock_guard<std::mutex> writer(writers_);
  const DeviceScope scope(device_);
  const auto write = [&](ConstantSet& set) {
    for (size_t i = 0; i < which.size(); ++i) store(set, which[i], *values[i], options);
    device_.sync(options.stream);
  };
  if (!options.spare) {
    const std::lock_guard<std::mutex> gate(gate_);
    const std::unique_lock<std::shared_mutex> alone(current_->mutex);
    device_.sync_all();
    return write(*current_);
  }
  ConstantSet& to = spare();
  // Runs that began before the last swap may still launch kernels that read it; later ones do not know it.
  const std::unique_lock<std::shared_mutex> alone(to.mutex);
  if (!is_prepared_) {
    device_.sync_all();
    const ConstantSet& from = *current_;
    if (from.blob.bytes() > 0) device_.copy_on(to.blob.data(), from.blob.data(), from.blob.bytes(), options.stream);
    to.bound = from.bound;
    to.is_set = from.is_set;
    to.has_bound = from.has_bound;
  }
  write(to);
  const std::lock_guard<std::mutex> gate(gate_);
  is_prepared_ = true;
}

void Constants::store(ConstantSet& set, int32_t index, const DLTensor& value, const SetOptions& options) {
  const ait_constant_v1& constant = table_.constants[index];
  const auto place = static_cast<size_t>(index);
  const void* const from = data_of(value);
  set.is_set[place] = false;  // until it is whole: a copy may fail
  for (int32_t p = 0; !options.bind && constant.bytes != 0 && p < constant.num_places; ++p) {
    char* const to = static_cast<char*>(set.blob.data()) + constant.places[p];
    if (constant.packings != nullptr && constant.packings[p].layout != AIT_ROWS) {
      device_.pack(to, from, constant, constant.packings[p]);
    } else {
      device_.copy_on(to, from, static_cast<size_t>(constant.bytes), options.stream);
    }
  }
  set.bound[place] = options.bind ? from : nullptr;
  set.has_bound = std::any_of(set.bound.begin(), set.bound.end(), [](const void* data) { return data != nullptr; });
  set.is_set[place] = true;
}

void Constants::swap() {
  const std::lock_guard<std::mutex> writer(writers_);
  const std::lock_guard<std::mutex> gate(gate_);
  if (!is_prepared_) {
    fail(ErrorKind::kInput, "there is nothing to swap in: call set_double_buffer_constant before swap_constants");
  }
  check_all_set(*spare_);
  std::swap(current_, spare_);
  is_prepared_ = false;
}

}  // namespace ait::runtime
