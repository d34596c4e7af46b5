/// @file constants.h
/// @brief The constants of a model: the values that runs read, and a second set in which new ones are prepared.
#ifndef AIT_RUNTIME_CONSTANTS_H_
#define AIT_RUNTIME_CONSTANTS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "device.h"
#include "forks.h"

namespace ait::runtime {

/// @brief Values of all constants. Runs share it; who changes it has it alone. Models of one artifact may share it, too: nobody changes it then.
struct ConstantSet {
  ConstantSet(std::shared_ptr<Device> of, size_t constants, const Lender& memory)
      : device(std::move(of)), blob(*device, memory), bound(constants), is_set(constants) {}

  std::shared_ptr<Device> device;
  DeviceBuffer blob;
  std::vector<const void*> bound;  ///< memory of the caller's that a constant is read from; null: the blob
  std::vector<bool> is_set;
  bool has_bound = false;
  bool is_mapped = false;  ///< the blob is a file that other processes map, too: nobody writes it
  std::atomic<bool> is_recorded{false};  ///< a graph of the caller's reads it
  std::shared_mutex mutex;
  std::string key;  ///< under which other models find it; empty: it belongs to one model
  int sharers = 0;  ///< models that have it, if it has a key
};

/// @brief How constants are set.
struct SetOptions {
  bool spare = false;      ///< in the set that runs do not read yet
  bool bind = false;       ///< read from the caller's memory, without a copy
  void* stream = nullptr;  ///< for the copies, after the work on it
};

class Constants {
 public:
  /// @param memory where the memory of the values comes from; null: the device
  Constants(std::shared_ptr<Device> device, const ait_model_v1& table, Lender memory = nullptr);
  ~Constants();
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  /// @brief The set that one run reads, for the launches of that run. Throws an Error of kind kInput if a constant has no value.
  class Use {
   public:
    explicit Use(const Constants& constants);
    ConstantSet& operator*() const { return *set_; }
    ConstantSet* operator->() const { return set_.get(); }

   private:
    ForkGuard::Use use_;
    std::shared_ptr<ConstantSet> set_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  /// @brief Sets several constants. All of them are checked before one is written. Waits for the runs that read the set.
  void set(const std::vector<std::string>& names, const Tensors& values, const SetOptions& options);

  /// @brief Runs that begin from now on read the spare set. Throws an Error of kind kInput if nothing was set in it.
  void swap();

  /// @brief Takes the values of another model of the same library, on this device or another one. Throws an Error of kind kInput if that one
  /// reads constants from memory of the caller's.
  void copy_from(const Constants& other);

  /// @brief Takes the values that a model has published on this device under `key` instead of own ones; false if there is none.
  bool adopt(const std::string& key);
  /// @brief Whether a model has published values under `key` on the device of this name, which `adopt` would find.
  static bool is_published(const std::string& device, const std::string& key);
  /// @brief Lets models that adopt `key` read these values. Who changes them later gets a copy of its own. For a model that has not run.
  void publish(const std::string& key);

  /// @brief Writes the values of the set that runs read, or of the spare one, to an open file, from its start.
  void write(bool spare, int file) const;
  /// @brief Takes the values of a file that `write` wrote for the same library, in memory that all processes that do so share: for the
  /// constants of these names; the others have no value. Runs read them from now on, or with `spare` after `swap`. Who sets a constant later
  /// gets a copy. An open description of the file stays open as long as the memory. On a CPU alone.
  void map(bool spare, int file, const std::vector<std::string>& names);

  /// @brief Names of the constants without a value, in the set that runs read or in the spare one.
  std::vector<std::string> missing(bool spare) const;

 private:
  int32_t index_of(const std::string& name) const;
  void check_all_set(const ConstantSet& set) const;
  ConstantSet& spare();
  void store(ConstantSet& set, int32_t index, const DLTensor& value, const SetOptions& options);
  std::shared_ptr<ConstantSet> made(const char* what) const;
  bool share(const std::string& key, bool publishes);
  void own_current();

  ForkGuard fork_guard_{"the set of constants of a model"};
  std::shared_ptr<Device> owned_device_;
  Device& device_;
  const ait_model_v1& table_;
  Lender memory_;
  mutable std::mutex writers_;             ///< one caller changes sets at a time
  mutable std::mutex gate_;        ///< of `current_`, and of new runs while the current set is changed
  std::shared_ptr<ConstantSet> current_, spare_;
  bool is_prepared_ = false;       ///< the spare set has new values
  std::vector<std::shared_ptr<ConstantSet>> kept_;  ///< earlier sets, which graphs of the caller's read
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CONSTANTS_H_
