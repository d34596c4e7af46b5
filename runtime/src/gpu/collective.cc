/// @file collective.cc
/// @brief Collectives on NCCL or RCCL.
///
/// Communicators are made at the first call of a group: its first member makes an id, and the link of the host (`ranks_link.h`) brings it to the
/// others. Pieces that do not lie one after another are copied by the copy functions of the platform.
///
/// A launch that waits for a rank that never comes does not end by itself. A thread watches the runs: after AIT_RANKS_TIMEOUT seconds, or when
/// the library reports an error of a communicator, it ends all communicators, and stops the kernels that wait for memory of peers. The launches
/// then end, and the run fails with the reason.
#include "gpu/collective.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "environment.h"
#include "gpu/api.h"
#include "gpu/nccl.h"
#include "gpu/peers.h"
#include "library.h"
#include "ranks_link.h"

namespace ait::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(20);  ///< between two looks at the runs that are under way
constexpr size_t kMostKnown = 1 << 16;                  ///< computations that were compared
constexpr const char* kRunFirst = "the stream is captured, and this model has not exchanged data yet: run it once before the capture";

Clock::time_point deadline() { return Clock::now() + std::chrono::microseconds(int64_t(ranks_timeout() * 1e6)); }

std::string self() {
  const RanksLink* const link = ranks_link();
  return link == nullptr ? "this process" : "rank " + std::to_string(link->rank) + " of " + std::to_string(link->ranks);
}

/// The ranks that are known to have ended, as the end of a sentence.
std::string who_ended() {
  char text[256] = "";
  if (const RanksLink* const link = ranks_link(); link != nullptr) link->ended(text, sizeof(text));
  return *text != 0 ? std::string(text) + " has ended" : "another rank has ended, or runs something else";
}

std::string problem(const char* what, nccl::Result status) {
  const nccl::Api& api = nccl::Api::get();
  return std::string(what) + " failed: " + api.get_error_string(status) + " (" + nccl::kLibrary.name + ", " + std::to_string(status) +
         "; with NCCL_DEBUG=INFO it says more)";
}

/// All communicators of this process, and the runs that are under way.
class Ranks {
 public:
  static Ranks& get() {
    static Ranks* const instance = new Ranks;  // its thread runs until the process ends
    return *instance;
  }

  std::string failure() {
    const std::lock_guard<std::mutex> held(mutex_);
    return failure_;
  }

  /// Launches one collective; says why that is not possible.
  std::string run(const ait_collective_v1& args, gpu::Stream stream) {
    if (std::string why = failure(); !why.empty()) return why;
    int64_t place = 0;
    std::vector<int64_t> members;
    if (std::string why = find_members(args.group, &members, &place); !why.empty()) return why;
    if (args.kind == AIT_ALL_SLICE) return launch(args, nullptr, int64_t(members.size()), place, stream);
    return call(args, members, place, stream, [&](nccl::Comm comm) { return launch(args, comm, int64_t(members.size()), place, stream); });
  }

  /// Launches the messages of one rank; says why that is not possible.
  std::string permute(const ait_permute_v1& args, gpu::Stream stream) {
    if (std::string why = failure(); !why.empty()) return why;
    int64_t place = 0;
    std::vector<int64_t> members;
    if (std::string why = find_members(args.group, &members, &place); !why.empty()) return why;
    const ait_collective_v1 sent = bytes_of(args.group, args.bytes, args.key);
    return call(sent, members, place, stream, [&](nccl::Comm comm) { return send_and_receive(args, comm, place, stream); });
  }

  /// Finds the rooms of a group for one launch; says why that is not possible.
  std::string open(const ait_peers_v1& args, gpu::Stream stream) {
    if (std::string why = failure(); !why.empty()) return why;
    int64_t place = 0;
    std::vector<int64_t> members;
    if (std::string why = find_members(args.group, &members, &place); !why.empty()) return why;
    const std::lock_guard<std::mutex> held(launching_);
    const ait_collective_v1 sent = bytes_of(args.group, args.bytes, args.key);
    Peers* peers = nullptr;
    if (std::string why = rooms(sent, members, place, stream, &peers); !why.empty()) return why;
    if (std::string why = compare(sent, members, stream); !why.empty()) return why;
    *args.memory = {};
    if (peers->memory().members == 0 || args.bytes > peers->memory().bytes) return "";
    *args.memory = peers->memory();
    return peers->begin(stream);
  }

  std::string close(const ait_peers_v1& args, gpu::Stream stream) {
    int64_t place = 0;
    std::vector<int64_t> members;
    if (std::string why = find_members(args.group, &members, &place); !why.empty()) return why;
    const std::lock_guard<std::mutex> held(launching_);
    const auto found = rooms_.find(key_of(members));
    return found == rooms_.end() ? "" : found->second->end(stream);
  }

  void watch(gpu::Stream stream) {
    if (is_recorded(stream)) return;
    GPU(Event_t) event = nullptr;
    {
      const std::lock_guard<std::mutex> held(mutex_);
      if (comms_.empty() && !has_rooms_) return;
      if (!free_.empty()) {
        event = free_.back();
        free_.pop_back();
      }
    }
    if (event == nullptr && GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming)) != gpu::kSuccess) return;
    if (GPU(EventRecord)(event, stream) != gpu::kSuccess) return;
    const std::lock_guard<std::mutex> held(mutex_);
    under_way_.push_back({event, deadline()});
    changed_.notify_one();
  }

 private:
  struct Key {
    int device;
    std::vector<int64_t> members;
    bool operator<(const Key& other) const { return std::tie(device, members) < std::tie(other.device, other.members); }
  };
  struct Run {
    GPU(Event_t) event;
    Clock::time_point until;
  };
  /// A communicator that another thread makes, because that may wait for ever for other ranks.
  struct Making {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    nccl::Result status = nccl::kInProgress;
    nccl::Comm comm = nullptr;
  };

  std::string find_members(const ait_group_v1& group, std::vector<int64_t>* members, int64_t* place) {
    const RanksLink* const link = ranks_link();
    if (link == nullptr) return "a model with collectives was loaded without the other ranks";
    if (link->ranks != group.ranks) return self() + ": the model needs " + std::to_string(group.ranks) + " ranks";
    *members = members_of(group, link->rank, place);
    return "";
  }

  /// What the members of a group compare before they send bytes.
  static ait_collective_v1 bytes_of(const ait_group_v1& group, int64_t bytes, uint64_t key) {
    ait_collective_v1 sent{};
    sent.group = group;
    sent.dtype = AIT_UI8;
    sent.rows = 1;
    sent.count = bytes;
    sent.key = key;
    return sent;
  }

  /// Calls the library with the communicator of a group whose members run the same computation.
  template <class Launch>
  std::string call(const ait_collective_v1& args, const std::vector<int64_t>& members, int64_t place, gpu::Stream stream, const Launch& launch) {
    if (!nccl::Api::get().error.empty()) return self() + ": " + nccl::Api::get().error;
    const std::lock_guard<std::mutex> held(launching_);
    nccl::Comm comm = nullptr;
    if (std::string why = communicator(args, members, place, stream, &comm); !why.empty()) return why;
    if (std::string why = compare(args, members, stream); !why.empty()) return why;
    begin_call();  // the first launch of two ranks connects them, and waits for both
    std::string why = launch(comm);
    const std::string broken = end_call();
    return broken.empty() ? why : broken;
  }

  static Key key_of(const std::vector<int64_t>& members) {
    int device = 0;
    (void)GPU(GetDevice)(&device);
    return {device, members};
  }

  void begin_call() {
    const std::lock_guard<std::mutex> held(mutex_);
    calling_until_ = deadline();
    start_watching();
    changed_.notify_one();
  }
  /// `mutex_` is held.
  void start_watching() {
    if (!is_watching_) std::thread([this] { watch_all(); }).detach();
    is_watching_ = true;
  }
  std::string end_call() {
    const std::lock_guard<std::mutex> held(mutex_);
    calling_until_.reset();
    return failure_;
  }

  std::string fail_all(const std::string& why) {
    const std::lock_guard<std::mutex> held(mutex_);
    return fail_held(why);
  }
  std::string fail_held(const std::string& why) {
    if (failure_.empty()) failure_ = self() + ": " + why;
    return failure_;
  }

  std::string communicator(const ait_collective_v1& args, const std::vector<int64_t>& members, int64_t place, gpu::Stream stream, nccl::Comm* comm) {
    const Key key = key_of(members);
    const int device = key.device;
    {
      const std::lock_guard<std::mutex> held(mutex_);
      if (const auto found = comms_.find(key); found != comms_.end()) return *comm = found->second, "";
    }
    if (is_recorded(stream)) return self() + ": " + kRunFirst;
    nccl::UniqueId own{}, ids[1];
    if (place == 0) {
      if (const nccl::Result status = nccl::Api::get().get_unique_id(&own); status != nccl::kSuccess) return fail_all(problem("making an id", status));
    }
    std::vector<char> all(members.size() * sizeof(own));
    if (std::string why = exchange(args, args.key ^ 0x9e3779b97f4a7c15ull, &own, sizeof(own), all.data()); !why.empty()) return why;
    std::copy(all.begin(), all.begin() + sizeof(own), reinterpret_cast<char*>(ids));
    const auto making = std::make_shared<Making>();
    std::thread([making, id = ids[0], count = int(members.size()), place, device] {
      nccl::Comm made = nullptr;
      (void)GPU(SetDevice)(device);
      const nccl::Result status = nccl::Api::get().comm_init_rank(&made, count, id, int(place));
      const std::lock_guard<std::mutex> held(making->mutex);
      making->comm = made;
      making->status = status;
      making->done = true;
      making->changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> waiting(making->mutex);
    if (!making->changed.wait_until(waiting, deadline(), [&] { return making->done; })) {
      return fail_all("no communicator was made in AIT_RANKS_TIMEOUT seconds; " + who_ended());
    }
    if (making->status != nccl::kSuccess) return fail_all(problem("making a communicator", making->status));
    const std::lock_guard<std::mutex> held(mutex_);
    comms_[key] = *comm = making->comm;
    return "";
  }

  /// The rooms of a group, made at its first launch.
  std::string rooms(const ait_collective_v1& args, const std::vector<int64_t>& members, int64_t place, gpu::Stream stream, Peers** peers) {
    const Key key = key_of(members);
    if (const auto found = rooms_.find(key); found != rooms_.end()) return *peers = found->second.get(), "";
    if (is_recorded(stream)) return self() + ": " + kRunFirst;
    {
      const std::lock_guard<std::mutex> held(mutex_);
      if (stop_ == nullptr) stop_ = new_stop();
    }
    auto made = std::make_unique<Peers>();
    uint64_t salt = 0;
    const auto tell = [&](const void* own, size_t bytes, void* all) {
      return exchange(args, args.key ^ (0xc2b2ae3d27d4eb4full + ++salt), own, bytes, all);
    };
    if (std::string why = made->open(int64_t(members.size()), place, stop_, tell); !why.empty()) return why;
    if (!made->why().empty() && !Peers::is_off()) {
      std::fprintf(stderr, "%s: small all-reduces use NCCL, not memory of the other cards: %s\n", self().c_str(), made->why().c_str());
    }
    *peers = (rooms_[key] = std::move(made)).get();
    const std::lock_guard<std::mutex> held(mutex_);
    has_rooms_ = has_rooms_ || (*peers)->memory().members != 0;
    start_watching();
    return "";
  }

  /// Compares the key and the sizes of a computation with those of the other members, once.
  std::string compare(const ait_collective_v1& args, const std::vector<int64_t>& members, gpu::Stream stream) {
    const int64_t bytes = args.rows * args.count * dtype_bytes(args.dtype);
    if (compared_.count({args.key, bytes}) != 0 || is_recorded(stream)) return "";
    std::vector<int64_t> all(members.size());
    if (std::string why = exchange(args, args.key, &bytes, sizeof(bytes), all.data()); !why.empty()) return why;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] != bytes) {
        return fail_all("rank " + std::to_string(members[i]) + " sends " + std::to_string(all[i]) + " bytes, expected " + std::to_string(bytes) +
                        ": give all ranks inputs of the same shapes");
      }
    }
    if (compared_.size() >= kMostKnown) compared_.clear();
    compared_.insert({args.key, bytes});
    return "";
  }

  std::string exchange(const ait_collective_v1& args, uint64_t key, const void* data, size_t bytes, void* received) {
    char reason[512] = "";
    const ait_exchange_v1 x{args.group, data, 0, int64_t(bytes), received, key};
    if (ranks_link()->exchange(&x, reason, sizeof(reason)) == 0) return "";
    const std::lock_guard<std::mutex> held(mutex_);
    return failure_ = reason;  // which names the rank
  }

  std::string launch(const ait_collective_v1& args, nccl::Comm comm, int64_t members, int64_t place, gpu::Stream stream) {
    const nccl::Api& api = nccl::Api::get();
    const auto element = size_t(dtype_bytes(args.dtype));
    const size_t piece = size_t(args.count) * element, size = size_t(args.rows) * piece, row = size_t(members) * piece;
    const auto* const in = static_cast<const char*>(args.data);
    auto* const out = static_cast<char*>(args.result);
    auto* const room = static_cast<char*>(args.workspace);
    if (size == 0) return "";
    nccl::Result status = nccl::kSuccess;
    std::string why;
    const auto copy = [&](char* to, size_t to_step, const char* from, size_t from_step, size_t rows, size_t bytes) {
      if (!why.empty()) return;
      const gpu::Error found = GPU(Memcpy2DAsync)(to, to_step, from, from_step, bytes, rows, GPU(MemcpyDeviceToDevice), stream);
      if (found == gpu::kSuccess) return;
      (void)GPU(GetLastError)();
      why = self() + ": copying the pieces of a collective failed: " + GPU(GetErrorString)(found);
    };
    const auto type = nccl::type_of(args.dtype);
    switch (args.kind) {
      case AIT_ALL_REDUCE:
        status = api.all_reduce(in, out, size_t(args.count), type, args.join, comm, stream);
        break;
      case AIT_BROADCAST:
        status = api.broadcast(in, out, size, nccl::kUint8, args.root, comm, stream);
        break;
      case AIT_ALL_SLICE:
        copy(out, piece, in + size_t(place) * piece, row, size_t(args.rows), piece);
        break;
      case AIT_ALL_GATHER: {
        char* const received = args.rows == 1 ? out : room;
        status = api.all_gather(in, received, size, nccl::kUint8, comm, stream);
        for (int64_t i = 0; i < members && received != out && status == nccl::kSuccess; ++i) {
          copy(out + size_t(i) * piece, row, received + size_t(i) * size, piece, size_t(args.rows), piece);
        }
        break;
      }
      case AIT_REDUCE_SCATTER: {
        for (int64_t i = 0; i < members && args.rows != 1; ++i) copy(room + size_t(i) * size, piece, in + size_t(i) * piece, row, size_t(args.rows), piece);
        if (why.empty()) status = api.reduce_scatter(args.rows == 1 ? in : room, out, size_t(args.rows * args.count), type, args.join, comm, stream);
        break;
      }
      case AIT_ALL_TO_ALL: {
        const size_t out_piece = size_t(args.out_count) * element;
        const char* const sent = args.rows == 1 ? in : room;
        char* const received = args.out_rows == 1 ? out : room + size_t(members) * size;
        for (int64_t i = 0; i < members && sent != in; ++i) copy(room + size_t(i) * size, piece, in + size_t(i) * piece, row, size_t(args.rows), piece);
        if (!why.empty()) break;
        status = api.group_start();
        for (int64_t i = 0; i < members && status == nccl::kSuccess; ++i) {
          status = api.send(sent + size_t(i) * size, size, nccl::kUint8, int(i), comm, stream);
          if (status == nccl::kSuccess) status = api.recv(received + size_t(i) * size, size, nccl::kUint8, int(i), comm, stream);
        }
        if (const nccl::Result end = api.group_end(); status == nccl::kSuccess) status = end;
        for (int64_t i = 0; i < members && received != out && status == nccl::kSuccess; ++i) {
          copy(out + size_t(i) * out_piece, size_t(members) * out_piece, received + size_t(i) * size, out_piece, size_t(args.out_rows), out_piece);
        }
        break;
      }
      default:
        why = "a collective of kind " + std::to_string(args.kind) + " is unknown";
    }
    if (status != nccl::kSuccess && status != nccl::kInProgress) return fail_all(problem("launching a collective", status));
    return why;
  }

  std::string send_and_receive(const ait_permute_v1& args, nccl::Comm comm, int64_t place, gpu::Stream stream) {
    const auto [source, target] = partners_of(args, place);
    if (args.bytes == 0) return "";
    if (source < 0) {
      if (const gpu::Error found = GPU(MemsetAsync)(args.result, 0, size_t(args.bytes), stream); found != gpu::kSuccess) {
        (void)GPU(GetLastError)();
        return self() + ": writing the zeros of a rank that receives nothing failed: " + GPU(GetErrorString)(found);
      }
    }
    if (source < 0 && target < 0) return "";
    const nccl::Api& api = nccl::Api::get();
    nccl::Result status = api.group_start();
    if (status == nccl::kSuccess && target >= 0) status = api.send(args.data, size_t(args.bytes), nccl::kUint8, int(target), comm, stream);
    if (status == nccl::kSuccess && source >= 0) status = api.recv(args.result, size_t(args.bytes), nccl::kUint8, int(source), comm, stream);
    if (const nccl::Result end = api.group_end(); status == nccl::kSuccess) status = end;
    if (status != nccl::kSuccess && status != nccl::kInProgress) return fail_all(problem("sending to another rank", status));
    return "";
  }

  /// Looks at the runs that are under way until the process ends.
  void watch_all() {
    std::unique_lock<std::mutex> held(mutex_);
    for (;;) {
      changed_.wait(held, [&] { return !under_way_.empty() || calling_until_.has_value(); });
      while (!under_way_.empty() && GPU(EventQuery)(under_way_.front().event) != GPU(ErrorNotReady)) {
        (void)GPU(GetLastError)();
        free_.push_back(under_way_.front().event);
        under_way_.pop_front();
      }
      if (under_way_.empty() && !calling_until_.has_value()) continue;
      const Clock::time_point until = under_way_.empty() ? *calling_until_ : under_way_.front().until;
      if (const std::string why = broken(until); !why.empty()) abort_all(why);
      held.unlock();
      std::this_thread::sleep_for(kPause);
      held.lock();
    }
  }

  /// Why the communicators must end; empty if they work.
  std::string broken(Clock::time_point until) const {
    for (const auto& [key, comm] : comms_) {
      nccl::Result status = nccl::kSuccess;
      if (nccl::Api::get().comm_get_async_error(comm, &status) != nccl::kSuccess) continue;
      if (status != nccl::kSuccess && status != nccl::kInProgress) return problem("a collective", status) + "; " + who_ended();
    }
    if (Clock::now() < until) return "";
    return "a run with collectives did not end in AIT_RANKS_TIMEOUT seconds; " + who_ended();
  }

  void abort_all(const std::string& why) {
    fail_held(why);
    if (stop_ != nullptr) *static_cast<volatile uint32_t*>(stop_) = 1;
    for (const auto& [key, comm] : comms_) (void)nccl::Api::get().comm_abort(comm);
    comms_.clear();
    under_way_.clear();
    calling_until_.reset();
  }

  std::mutex launching_;  ///< launches have one order
  std::mutex mutex_;      ///< of the members below
  std::condition_variable changed_;
  std::map<Key, nccl::Comm> comms_;
  std::deque<Run> under_way_;
  std::vector<GPU(Event_t)> free_;
  std::string failure_;
  std::optional<Clock::time_point> calling_until_;  ///< of the call of the library that is under way
  bool is_watching_ = false;
  bool has_rooms_ = false;
  uint32_t* stop_ = nullptr;
  std::set<std::pair<uint64_t, int64_t>> compared_;  ///< guarded by `launching_`, as the members below
  std::map<Key, std::unique_ptr<Peers>> rooms_;
};

int32_t run(const ait_host_v1* host, const ait_collective_v1* args, void* stream) {
  const std::string why = Ranks::get().run(*args, static_cast<gpu::Stream>(stream));
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}

int32_t open(const ait_host_v1* host, const ait_peers_v1* args, void* stream) {
  const std::string why = Ranks::get().open(*args, static_cast<gpu::Stream>(stream));
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}
int32_t permute(const ait_host_v1* host, const ait_permute_v1* args, void* stream) {
  const std::string why = Ranks::get().permute(*args, static_cast<gpu::Stream>(stream));
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}
int32_t close(const ait_host_v1* host, const ait_peers_v1* args, void* stream) {
  const std::string why = Ranks::get().close(*args, static_cast<gpu::Stream>(stream));
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}

}  // namespace

const ait_collective_service_v1 kCollectiveService{run};
const ait_peers_service_v1 kPeersService{open, close};
const ait_permute_service_v1 kPermuteService{permute};

void watch_collectives(void* stream) { Ranks::get().watch(static_cast<gpu::Stream>(stream)); }
std::string collectives_failure() { return Ranks::get().failure(); }

}  // namespace ait::runtime
