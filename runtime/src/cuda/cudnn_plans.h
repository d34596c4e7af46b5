/// @file cudnn_plans.h
/// @brief The plans of cuDNN made so far. A plan is made for each shape, with its strides, at its first use, and kept; the least recently
/// used one goes when there are too many, unless a recorded CUDA graph still launches its kernels.
#ifndef AIT_CUDA_CUDNN_PLANS_H_
#define AIT_CUDA_CUDNN_PLANS_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cudnn_graph.h"

namespace ait::runtime::dnn {

/// @brief The key of a plan: numbers in a fixed order for each kind of plan.
class PlanKey {
 public:
  PlanKey(std::initializer_list<int64_t> words) {
    for (int64_t word : words) add(word);
  }
  void add(int64_t word) { words_.at(used_++) = word; }
  void add(const int64_t* words, int count) {
    for (int i = 0; i < count; ++i) add(words[i]);
  }
  void add(float number) {
    int32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    add(int64_t(bits));
  }
  bool operator==(const PlanKey& other) const { return words_ == other.words_; }
  size_t hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < used_; ++i) {
      hash = (hash ^ uint64_t(words_[i])) * 0xff51afd7ed558ccdull;
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  std::array<int64_t, 48> words_{};
  size_t used_ = 0;
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const { return key.hash(); }
};

/// @brief cuDNN, its handles, and the plans. Lives until the process ends, as the driver may be gone before static destructors run.
struct Library {
  static Library& get();

  Api api;
  bool loaded = false;
  std::string error;
  std::mutex lock;  // a handle has one stream at a time; held while a plan is made, and for a launch

  Handle handle_of(int device, std::string* reason);
  /// @brief The plan of `key`, now the most recently used one; null if there is none.
  Plan* find(const PlanKey& key);
  /// @brief Keeps a plan, and drops others where there are too many. Null if the device failed meanwhile, with the reason.
  Plan* keep(const PlanKey& key, std::unique_ptr<Plan> plan, std::string* reason);

 private:
  Library();
  std::string evict();

  using Entry = std::pair<PlanKey, std::unique_ptr<Plan>>;
  std::unordered_map<int, Handle> handles_;
  std::list<Entry> plans_;  // the most recently used first
  std::unordered_map<PlanKey, std::list<Entry>::iterator, PlanKeyHash> index_;
};

/// @brief Whether `stream` records a CUDA graph, and which. @return a reason on failure, else an empty string.
std::string find_capture(void* stream, int* device, cudaGraph_t* recorded);

/// @brief The next launch on `stream` starts only after all launches before it have ended.
///
/// Kernels of cuDNN are launched so that they may start before the launch before them has ended, once that allows it, as ours do. Those of
/// fused convolutions then read the residual before they wait (9.19, on H100 and H200). Something that is no kernel in between prevents it: a
/// node without work in a graph that is recorded, else a memset of 4 bytes.
/// @return a reason on failure, else an empty string.
std::string finish_launches(void* stream, int device, cudaGraph_t recorded);

/// @brief Ties the plan to a graph that is recorded: it stays until the graph and all its instances are gone.
bool pin(Plan* plan, cudaGraph_t graph);

inline bool misaligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 != 0; }

/// @brief Runs `args` on `stream` with the plan of a kind and of `key`, which is made here if this is its first use.
/// @param kind a number of its own for each class of plans
/// @param describe says what is computed, for errors
/// @return 0, or a non-zero status with the reason in `error`.
template <class PlanClass, class Args>
int32_t run_planned(int64_t kind, PlanKey key, const Args& args, void* stream, std::string (*describe)(const Args&), std::string* error) {
  Library& lib = Library::get();
  int device = 0;
  cudaGraph_t recorded = nullptr;
  if (std::string reason = find_capture(stream, &device, &recorded); !reason.empty()) {
    *error = "cuDNN: " + reason;
    return 1;
  }
  key.add(kind);
  key.add(int64_t(device));
  const std::lock_guard<std::mutex> held(lib.lock);
  auto* plan = static_cast<PlanClass*>(lib.find(key));
  if (plan == nullptr && recorded != nullptr) {
    *error = "cuDNN has no plan yet for " + describe(args) + ", and cannot make one while a stream is captured: run once before";
    return 1;
  }
  const Handle handle = lib.handle_of(device, error);
  if (handle == nullptr) return 1;
  if (plan == nullptr) {
    auto made = std::make_unique<PlanClass>(lib.api);
    if (!made->make(args, handle)) {
      *error = "cuDNN " + std::to_string(lib.api.version()) + " cannot compute " + describe(args) + ":" + made->error();
      return 1;
    }
    std::string reason;
    plan = static_cast<PlanClass*>(lib.keep(key, std::move(made), &reason));
    if (plan == nullptr) {
      *error = "cuDNN: " + reason;
      return 1;
    }
  }
  if (recorded != nullptr && !pin(plan, recorded)) {
    *error = "the plan of " + describe(args) + " cannot be tied to the CUDA graph that launches it";
    return 1;
  }
  std::string reason;
  if (const Status set = lib.api.set_stream(handle, stream); set != kSuccess) {
    reason = lib.api.status_text(set);
  } else if (reason = finish_launches(stream, device, recorded); reason.empty()) {
    reason = plan->execute(args, handle);
  }
  if (reason.empty()) return 0;
  *error = "cuDNN: " + describe(args) + ": " + reason;
  return 1;
}

}  // namespace ait::runtime::dnn

#endif  // AIT_CUDA_CUDNN_PLANS_H_
