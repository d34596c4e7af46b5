/// @file device_models.h
/// @brief One loaded model on all devices that its callers use: a `Model` for each of them, made when tensors there are first passed.
#ifndef AIT_RUNTIME_DEVICE_MODELS_H_
#define AIT_RUNTIME_DEVICE_MODELS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "forks.h"
#include "model.h"

namespace ait::runtime {

/// @brief The models of one library, by device. All have the same constants. Every method may be called from several threads.
class DeviceModels {
 public:
  /// @param make the model on a device
  /// @param is_fixed only `device` is used; else the device of the tensors of a call
  DeviceModels(std::function<std::unique_ptr<Model>(int device)> make, int device, bool is_fixed);
  DeviceModels(const DeviceModels&) = delete;
  DeviceModels& operator=(const DeviceModels&) = delete;

  /// The model on the device that was named when it was loaded.
  Model& first() const { return *first_; }
  /// The model on the device of the first of these tensors that is on such a device. Its own checks refuse the others that are not.
  Model& of(const Tensors& inputs, const Tensors& outputs);
  /// The model on a device, made with the constants of the first one if it is not there yet.
  Model& on(int device);

  /// Like those of `Constants`, on all devices. A constant that is bound can be read on one device alone.
  void set_constants(const std::vector<std::string>& names, const Tensors& values, const SetOptions& options);
  void swap_constants();
  bool adopt_constants(const std::string& key);
  void publish_constants(const std::string& key);
  void write_constants(bool spare, int file);
  void map_constants(bool spare, int file, const std::vector<std::string>& names);

  void state_was_set(uintptr_t begin, size_t bytes);
  void sync(void* stream);
  /// Waits for all runs. Fails if one failed on its device. In a forked process there is none to wait for.
  void finish();
  ModelStats stats();
  /// Numbers of the devices that have a model, in the order in which they were made.
  std::vector<int64_t> devices();

 private:
  static constexpr int kMaxDevices = 64;

  std::function<std::unique_ptr<Model>(int)> make_;
  bool is_fixed_;
  int forks_ = forks();
  ForkGuard fork_guard_{"the model"};
  std::mutex mutex_;  ///< of the list, and of constants, which a new device must not miss
  std::vector<std::unique_ptr<Model>> owned_;
  std::atomic<Model*> models_[kMaxDevices] = {};
  Model* first_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEVICE_MODELS_H_
