#include "constants.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "error.h"
#include "forks.h"

namespace ait::runtime {
namespace {

/// The sets that models share, by key. Never destroyed: a model may be closed while the process ends.
struct SharedSets {
  ProcessMutex mutex{ProcessMutex::kSharedConstants};
  std::map<std::string, std::weak_ptr<ConstantSet>> sets;

  static SharedSets& all() {
    static SharedSets* const instance = new SharedSets;
    return *instance;
  }

  /// The set is no longer one of this model. The caller has the mutex.
  void leave(ConstantSet& set) {
    if (set.key.empty() || --set.sharers > 0) return;
    sets.erase(set.key);
    set.key.clear();
  }
};

}  // namespace

Constants::Constants(std::shared_ptr<Device> device, const ait_model_v1& table, Lender memory)
    : owned_device_(std::move(device)), device_(*owned_device_), table_(table), memory_(std::move(memory)) {
  current_ = std::make_shared<ConstantSet>(owned_device_, static_cast<size_t>(table.num_constants), memory_);
}

Constants::~Constants() {
  SharedSets& shared = SharedSets::all();
  const std::lock_guard<ProcessMutex> lock(shared.mutex);
  for (const auto& set : {current_, spare_}) {
    if (set != nullptr) shared.leave(*set);
  }
}

/// A set with room for all constants.
std::shared_ptr<ConstantSet> Constants::made(const char* what) const {
  auto set = std::make_shared<ConstantSet>(owned_device_, static_cast<size_t>(table_.num_constants), memory_);
  set->blob.grow(static_cast<size_t>(table_.constants_bytes), what);
  return set;
}

void Constants::copy_from(const Constants& other) {
  const ForkGuard::Use use(fork_guard_), use_of_other(other.fork_guard_);
  const std::lock_guard<std::mutex> others(other.writers_);
  const std::lock_guard<std::mutex> writer(writers_);
  const DeviceScope scope(device_);
  const auto copy = [this](const ConstantSet& from) {
    for (size_t i = 0; i < from.bound.size(); ++i) {
      if (from.bound[i] == nullptr) continue;
      fail(ErrorKind::kInput, "constant '", table_.constants[i].name, "' is read from memory on ", from.device->name(), ", so the model cannot run on ",
           device_.name(), ": set it with a copy");
    }
    auto to = made("the constants of the model");
    if (from.blob.bytes() > 0) device_.copy(to->blob.data(), from.blob.data(), from.blob.bytes());
    to->is_set = from.is_set;
    return to;
  };
  auto current = copy(*other.current_);
  if (other.is_prepared_) {
    spare_ = copy(*other.spare_);
    is_prepared_ = true;
  }
  current_ = std::move(current);
}

bool Constants::adopt(const std::string& key) { return share(key, false); }

bool Constants::is_published(const std::string& device, const std::string& key) {
  SharedSets& shared = SharedSets::all();
  const std::lock_guard<ProcessMutex> lock(shared.mutex);
  return shared.sets.count(device + " " + key) != 0;
}

void Constants::publish(const std::string& key) { share(key, true); }

bool Constants::share(const std::string& key, bool publishes) {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> writer(writers_);
  const std::lock_guard<std::mutex> gate(gate_);
  SharedSets& shared = SharedSets::all();
  const std::lock_guard<ProcessMutex> lock(shared.mutex);
  const std::string name = device_.name() + " " + key;
  const auto found = shared.sets.find(name);
  if (found != shared.sets.end()) {  // of two models that are loaded at the same time, the second one finds it when it publishes
    if (std::shared_ptr<ConstantSet> set = found->second.lock(); set != nullptr) current_ = std::move(set);
  } else if (publishes) {
    current_->key = name;
    shared.sets[name] = current_;
  } else {
    return false;
  }
  ++current_->sharers;
  return true;
}

/// Makes the set that runs read one of this model alone. The caller has the gate.
void Constants::own_current() {
  const DeviceScope scope(device_);
  if (current_->blob.bytes() == 0) current_->blob.grow(static_cast<size_t>(table_.constants_bytes), "the constants of the model");
  SharedSets& shared = SharedSets::all();
  {
    const std::lock_guard<ProcessMutex> lock(shared.mutex);
    if (current_->sharers <= 1 && !current_->is_mapped) {
      shared.leave(*current_);
      return;
    }
  }
  if (current_->is_recorded) {
    fail(ErrorKind::kInput, "a graph of the caller's reads the constants, which other models of the same file share, so they cannot be set: "
                            "load the model with share_constants=False");
  }
  auto own = made("the constants of the model");
  device_.sync_all();  // work under way may read the shared set, which others may free once this model leaves it
  if (own->blob.bytes() > 0) device_.copy(own->blob.data(), current_->blob.data(), own->blob.bytes());
  own->is_set = current_->is_set;
  const std::lock_guard<ProcessMutex> lock(shared.mutex);
  shared.leave(*current_);
  current_ = std::move(own);
}

Constants::Use::Use(const Constants& constants) : use_(constants.fork_guard_) {
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
  const ForkGuard::Use use(fork_guard_);
  std::vector<std::string> names;
  const std::lock_guard<std::mutex> writer(writers_);
  const ConstantSet& set = spare && is_prepared_ ? *spare_ : *current_;
  for (size_t i = 0; i < set.is_set.size(); ++i) {
    if (!set.is_set[i]) names.emplace_back(table_.constants[i].name);
  }
  return names;
}

ConstantSet& Constants::spare() {
  std::shared_ptr<ConstantSet> prepared;  // values that were mapped for the next swap
  if (spare_ != nullptr) {
    SharedSets& shared = SharedSets::all();
    const std::lock_guard<ProcessMutex> lock(shared.mutex);
    const bool is_shared = spare_->sharers > 1;
    shared.leave(*spare_);
    if (spare_->is_recorded) kept_.push_back(spare_);
    if (spare_->is_mapped && is_prepared_) prepared = spare_;
    if (is_shared || spare_->is_recorded || spare_->is_mapped) spare_.reset();
  }
  if (spare_ == nullptr) spare_ = made("the second set of constants");
  if (prepared != nullptr) {
    device_.copy(spare_->blob.data(), prepared->blob.data(), prepared->blob.bytes());
    spare_->is_set = prepared->is_set;
  }
  return *spare_;
}

void Constants::write(bool spare, int file) const {
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> writer(writers_);
  const ConstantSet& set = spare && is_prepared_ ? *spare_ : *current_;
  if (set.has_bound) fail(ErrorKind::kInput, "a constant is read from memory of the caller's, which no file can hold");
  const auto* const data = static_cast<const char*>(set.blob.data());
  for (size_t done = 0; done < set.blob.bytes();) {
    const ssize_t count = pwrite(file, data + done, set.blob.bytes() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(ErrorKind::kRun, "the values of constants cannot be written: ", count < 0 ? std::strerror(errno) : "the file takes no bytes");
    done += static_cast<size_t>(count);
  }
}

void Constants::map(bool spare, int file, const std::vector<std::string>& names) {
  if (device_.dl().device_type != kDLCPU) fail(ErrorKind::kInput, "a file of constants cannot be mapped on ", device_.name());
  const auto bytes = static_cast<size_t>(table_.constants_bytes);
  struct stat state {};
  if (fstat(file, &state) != 0 || static_cast<size_t>(state.st_size) < bytes || bytes == 0) {
    fail(ErrorKind::kInput, "the file of constants has ", state.st_size, " bytes, expected ", bytes, ", at least 1");
  }
  auto set = std::make_shared<ConstantSet>(owned_device_, static_cast<size_t>(table_.num_constants), memory_);
  for (const std::string& name : names) set->is_set[static_cast<size_t>(index_of(name))] = true;
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
  void* const data = own < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, own, 0);
  if (data == MAP_FAILED) {
    const int problem = errno;
    if (own >= 0) close(own);
    fail(ErrorKind::kMemory, "out of memory: mapping the constants of the model needs ", bytes, " bytes of addresses: ", std::strerror(problem));
  }
  set->blob.take(std::shared_ptr<void>(data, [bytes, own](void* place) { munmap(place, bytes), close(own); }), bytes);
  set->is_mapped = true;
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> writer(writers_);
  const std::lock_guard<std::mutex> gate(gate_);
  SharedSets& shared = SharedSets::all();
  const std::lock_guard<ProcessMutex> lock(shared.mutex);
  std::shared_ptr<ConstantSet>& to = spare ? spare_ : current_;
  if (to != nullptr) shared.leave(*to);  // runs under way keep it
  to = std::move(set);
  is_prepared_ = is_prepared_ || spare;
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
  const ForkGuard::Use use(fork_guard_);
  const std::lock_guard<std::mutex> writer(writers_);
  const DeviceScope scope(device_);
  for (const DLTensor* value : values) {  // a copy from another device does not come after what is on its streams
    if (value->device.device_type != device_.dl().device_type || value->device.device_id == device_.dl().device_id) continue;
    const std::unique_ptr<Device> other = make_device(value->device.device_id);
    const DeviceScope there(*other);
    other->sync(options.stream);
  }
  const auto write = [&](ConstantSet& set) {
    for (size_t i = 0; i < which.size(); ++i) store(set, which[i], *values[i], options);
    device_.sync(options.stream);
  };
  if (!options.spare) {
    const std::lock_guard<std::mutex> gate(gate_);
    own_current();
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
  const ForkGuard::Use use(fork_guard_);
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
