/// @file mpi.cc
/// @brief Messages by Open MPI. All of them are non-blocking, so that no rank waits for ever for one that died or took another way.
#include <algorithm>
#include <cstdlib>

#include "cpu/transport.h"
#include "dynamic_library.h"

namespace ait::runtime {
namespace {

constexpr int kTag = 7301, kThreadsSerialized = 2, kSuccess = 0;
constexpr int64_t kLargest = int64_t(1) << 30;  // bytes of a message; MPI counts in int

class Mpi final : public Transport {
 public:
  Mpi() {
    const LibraryName name{"Open MPI", "mpi", "AIT_MPI", "apt-get install openmpi-bin", {"libmpi.so.40", "libmpi.so"}};
    // Open MPI's objects are addresses of its variables, as mpi.h says; they are looked up as if they were functions.
    void (*world_at)() = nullptr, (*byte_at)() = nullptr, (*errors_at)() = nullptr;
    const std::vector<Symbol> symbols{
        {"MPI_Initialized", initialized_}, {"MPI_Init_thread", init_},    {"MPI_Finalized", finalized_},
        {"MPI_Finalize", finalize_},       {"MPI_Comm_rank", comm_rank_}, {"MPI_Comm_size", comm_size_},
        {"MPI_Comm_set_errhandler", set_errhandler_}, {"MPI_Isend", isend_}, {"MPI_Irecv", irecv_},
        {"MPI_Testall", testall_},         {"ompi_mpi_comm_world", world_at}, {"ompi_mpi_byte", byte_at},
        {"ompi_mpi_errors_return", errors_at}};
    // Open MPI loads plugins that look up its symbols among those of the process.
    for (const std::string& place : places_of(name)) {
      if (dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) break;
    }
    if (!load_functions(name, places_of(name), symbols, &error)) return;
    world_ = reinterpret_cast<void*>(world_at);
    byte_ = reinterpret_cast<void*>(byte_at);
    int is_there = 0, level = 0;
    initialized_(&is_there);
    if (!is_there) {
      if (init_(nullptr, nullptr, kThreadsSerialized, &level) != kSuccess) {
        error = "MPI_Init_thread failed: start the processes with mpirun";
        return;
      }
      std::atexit([] { static_cast<Mpi&>(mpi_transport()).end(); });
    }
    set_errhandler_(world_, reinterpret_cast<void*>(errors_at));
    comm_rank_(world_, &rank);
    comm_size_(world_, &size);
  }

  bool send(const void* data, int64_t bytes, int64_t to) override {
    return each_part(bytes, to, [&](int64_t at, int count, void** request) {
      return isend_(static_cast<const char*>(data) + at, count, byte_, int(to), kTag, world_, request);
    });
  }

  bool receive(void* data, int64_t bytes, int64_t from) override {
    return each_part(bytes, from, [&](int64_t at, int count, void** request) {
      return irecv_(static_cast<char*>(data) + at, count, byte_, int(from), kTag, world_, request);
    });
  }

  std::string wait(double until) override {
    int done = 0;
    for (int64_t turn = 0;; ++turn) {
      if (testall_(int(requests_.size()), requests_.data(), &done, nullptr) != kSuccess) return "a message to another rank failed";
      if (done) break;
      if (turn > 1000) {
        const timespec pause{0, 20000};
        nanosleep(&pause, nullptr);
        if (now() > until) return silent(late());
      }
    }
    requests_.clear();
    peers_.clear();
    return "";
  }

  void end() const {
    int is_over = 0;
    finalized_(&is_over);
    if (!is_over) finalize_();
  }

 private:
  template <class Start>
  bool each_part(int64_t bytes, int64_t peer, const Start& start) {
    for (int64_t at = 0; at == 0 || at < bytes; at += kLargest) {
      requests_.push_back(nullptr);
      peers_.push_back(peer);
      if (start(at, int(std::min(bytes - at, kLargest)), &requests_.back()) != kSuccess) return false;
    }
    return true;
  }

  /// The ranks whose messages are still under way.
  std::vector<int64_t> late() {
    std::vector<int64_t> found;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      if (testall_(1, &requests_[i], &done, nullptr) == kSuccess && done) continue;
      if (std::find(found.begin(), found.end(), peers_[i]) == found.end()) found.push_back(peers_[i]);
    }
    return found;
  }

  int (*initialized_)(int*) = nullptr;
  int (*init_)(int*, char***, int, int*) = nullptr;
  int (*finalized_)(int*) = nullptr;
  int (*finalize_)() = nullptr;
  int (*comm_rank_)(void*, int*) = nullptr;
  int (*comm_size_)(void*, int*) = nullptr;
  int (*set_errhandler_)(void*, void*) = nullptr;
  int (*isend_)(const void*, int, void*, int, int, void*, void**) = nullptr;
  int (*irecv_)(void*, int, void*, int, int, void*, void**) = nullptr;
  int (*testall_)(int, void**, int*, void*) = nullptr;
  void *world_ = nullptr, *byte_ = nullptr;
  std::vector<void*> requests_;
  std::vector<int64_t> peers_;  ///< of each request
};

}  // namespace

Transport& mpi_transport() {
  static Mpi* const instance = new Mpi;  // lives as long as the process, whose exit ends MPI
  return *instance;
}

}  // namespace ait::runtime
