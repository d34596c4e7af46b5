/// @file ranks.cc
/// @brief The service "ranks" by Open MPI, which is loaded at the first call.
///
/// All messages are non-blocking, and waiting for them ends after AIT_RANKS_TIMEOUT seconds, so that no rank waits for ever for one that died
/// or took another way. A message has a header with the key and the size of the computation; ranks that differ in them fail, all of them.
#include "cpu/ranks.h"

#include <string.h>
#include <time.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "dynamic_library.h"

namespace ait::runtime {
namespace {

constexpr int kHeaderTag = 7301, kDataTag = 7302, kThreadsSerialized = 2, kSuccess = 0;
constexpr int64_t kLargest = int64_t(1) << 30;  // bytes of a message; MPI counts in int

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The seconds to wait for another rank.
double limit() {
  const char* const text = std::getenv("AIT_RANKS_TIMEOUT");
  const double seconds = text == nullptr ? 0 : std::atof(text);
  return seconds > 0 ? seconds : 300;
}

/// The functions of Open MPI, and this process's number.
struct Mpi {
  int (*initialized)(int*) = nullptr;
  int (*init)(int*, char***, int, int*) = nullptr;
  int (*finalized)(int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*comm_rank)(void*, int*) = nullptr;
  int (*comm_size)(void*, int*) = nullptr;
  int (*set_errhandler)(void*, void*) = nullptr;
  int (*isend)(const void*, int, void*, int, int, void*, void**) = nullptr;
  int (*irecv)(void*, int, void*, int, int, void*, void**) = nullptr;
  int (*testall)(int, void**, int*, void*) = nullptr;
  void *world = nullptr, *byte = nullptr, *return_errors = nullptr;
  int rank = 0, size = 1;
  std::string error;  ///< why no exchange is possible any more

  Mpi() {
    const LibraryName name{"Open MPI", "mpi", "AIT_MPI", "apt-get install openmpi-bin", {"libmpi.so.40", "libmpi.so"}};
    // Open MPI's objects are addresses of its variables, as mpi.h says; they are looked up as if they were functions.
    void (*world_at)() = nullptr, (*byte_at)() = nullptr, (*errors_at)() = nullptr;
    const std::vector<Symbol> symbols{
        {"MPI_Initialized", initialized}, {"MPI_Init_thread", init},   {"MPI_Finalized", finalized},
        {"MPI_Finalize", finalize},       {"MPI_Comm_rank", comm_rank}, {"MPI_Comm_size", comm_size},
        {"MPI_Comm_set_errhandler", set_errhandler}, {"MPI_Isend", isend}, {"MPI_Irecv", irecv},
        {"MPI_Testall", testall},         {"ompi_mpi_comm_world", world_at}, {"ompi_mpi_byte", byte_at},
        {"ompi_mpi_errors_return", errors_at}};
    // Open MPI loads plugins that look up its symbols among those of the process.
    for (const std::string& place : places_of(name)) {
      if (dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) break;
    }
    if (!load_functions(name, places_of(name), symbols, &error)) return;
    world = reinterpret_cast<void*>(world_at);
    byte = reinterpret_cast<void*>(byte_at);
    return_errors = reinterpret_cast<void*>(errors_at);
    int is_there = 0, level = 0;
    initialized(&is_there);
    if (!is_there) {
      if (init(nullptr, nullptr, kThreadsSerialized, &level) != kSuccess) {
        error = "MPI_Init_thread failed: start the processes with mpirun";
        return;
      }
      std::atexit([] { the().end(); });
    }
    set_errhandler(world, return_errors);
    comm_rank(world, &rank);
    comm_size(world, &size);
  }

  static Mpi& the() {
    static Mpi* const instance = new Mpi;  // lives as long as the process, whose exit ends MPI
    return *instance;
  }

  void end() const {
    int is_over = 0;
    finalized(&is_over);
    if (!is_over) finalize();
  }

  std::string self() const { return "rank " + std::to_string(rank) + " of " + std::to_string(size); }
};

std::mutex& lock() {
  static std::mutex instance;
  return instance;
}

struct Header {
  uint64_t key;
  int64_t bytes;
};

/// The messages of one exchange.
struct Messages {
  Mpi& mpi;
  std::vector<void*> requests;

  bool send(const void* data, int64_t bytes, int64_t to, int tag) {
    for (int64_t at = 0; at == 0 || at < bytes; at += kLargest) {
      const int count = int(bytes - at < kLargest ? bytes - at : kLargest);
      requests.push_back(nullptr);
      if (mpi.isend(static_cast<const char*>(data) + at, count, mpi.byte, int(to), tag, mpi.world, &requests.back()) != kSuccess) return false;
    }
    return true;
  }

  bool receive(void* data, int64_t bytes, int64_t from, int tag) {
    for (int64_t at = 0; at == 0 || at < bytes; at += kLargest) {
      const int count = int(bytes - at < kLargest ? bytes - at : kLargest);
      requests.push_back(nullptr);
      if (mpi.irecv(static_cast<char*>(data) + at, count, mpi.byte, int(from), tag, mpi.world, &requests.back()) != kSuccess) return false;
    }
    return true;
  }

  /// Waits for all messages until a time; says why they did not all arrive.
  std::string wait(double until) {
    int done = 0;
    for (int64_t turn = 0;; ++turn) {
      if (mpi.testall(int(requests.size()), requests.data(), &done, nullptr) != kSuccess) return "a message to another rank failed";
      if (done) break;
      if (turn > 1000) {
        const timespec pause{0, 20000};
        nanosleep(&pause, nullptr);
        if (now() > until) return "another rank does not answer; it has ended, runs something else, or needs more than AIT_RANKS_TIMEOUT seconds";
      }
    }
    requests.clear();
    return "";
  }
};

/// The world ranks of the members of this rank's group, and its own place among them.
std::vector<int64_t> members_of(const ait_group_v1& group, int64_t rank, int64_t* place) {
  int64_t base = rank, count = 1;
  *place = 0;
  for (int32_t i = 0; i < group.num_axes; ++i) {
    const int64_t own = rank / group.steps[i] % group.sizes[i];
    base -= own * group.steps[i];
    *place = *place * group.sizes[i] + own;
    count *= group.sizes[i];
  }
  std::vector<int64_t> members;
  for (int64_t member = 0; member < count; ++member) {
    int64_t left = member, at = base;
    for (int32_t i = group.num_axes - 1; i >= 0; --i) {
      at += left % group.sizes[i] * group.steps[i];
      left /= group.sizes[i];
    }
    members.push_back(at);
  }
  return members;
}

/// Why this process cannot be a rank of such a mesh; empty if it can.
std::string refusal(const Mpi& mpi, const ait_group_v1& group) {
  if (!mpi.error.empty()) return mpi.error;
  if (mpi.size == group.ranks) return "";
  const std::string count = std::to_string(group.ranks);
  return "the model needs " + count + " ranks, this process is " + mpi.self() + ": start it with mpirun -n " + count;
}

std::string exchanged(Mpi& mpi, const ait_exchange_v1& x) {
  int64_t place = 0;
  const std::vector<int64_t> members = members_of(x.group, mpi.rank, &place);
  const double until = now() + limit();
  Messages messages{mpi, {}};
  const Header own{x.key, x.bytes};
  std::vector<Header> headers(members.size());
  const auto data = [&](size_t i) { return static_cast<const char*>(x.data) + int64_t(i) * x.step; };
  const auto received = [&](size_t i) { return static_cast<char*>(x.received) + int64_t(i) * x.bytes; };
  bool sent = true;
  for (size_t i = 0; i < members.size(); ++i) {
    if (int64_t(i) == place) continue;
    sent = sent && messages.receive(&headers[i], sizeof(Header), members[i], kHeaderTag);
    sent = sent && messages.send(&own, sizeof(Header), members[i], kHeaderTag);
  }
  if (!sent) return "a message to another rank failed";
  if (std::string why = messages.wait(until); !why.empty()) return why;
  for (size_t i = 0; i < members.size(); ++i) {
    if (int64_t(i) == place || (headers[i].key == own.key && headers[i].bytes == own.bytes)) continue;
    return "rank " + std::to_string(members[i]) + (headers[i].key == own.key ? " sends " + std::to_string(headers[i].bytes) + " bytes, expected " +
           std::to_string(own.bytes) + ": give all ranks inputs of the same shapes" : std::string(" runs another artifact or another step of it: load one file on all ranks, and run it in the same order"));
  }
  if (x.bytes == 0) return "";
  for (size_t i = 0; i < members.size(); ++i) {
    if (int64_t(i) == place) {
      memcpy(received(i), data(i), size_t(x.bytes));
      continue;
    }
    sent = sent && messages.receive(received(i), x.bytes, members[i], kDataTag);
    sent = sent && messages.send(data(i), x.bytes, members[i], kDataTag);
  }
  return sent ? messages.wait(until) : "a message to another rank failed";
}

/// One exchange; after a failure messages may be under way, so that no other one is possible.
std::string exchange_once(const ait_exchange_v1& x) {
  const std::lock_guard<std::mutex> guard(lock());
  Mpi& mpi = Mpi::the();
  if (std::string why = refusal(mpi, x.group); !why.empty()) return why;
  if (std::string why = exchanged(mpi, x); !why.empty()) mpi.error = mpi.self() + ": " + why;
  return mpi.error;
}

int32_t place(const ait_host_v1* host, const ait_place_v1* args, void*) {
  const std::lock_guard<std::mutex> guard(lock());
  const Mpi& mpi = Mpi::the();
  if (const std::string why = refusal(mpi, args->group); !why.empty()) return host->fail(host->self, why.c_str());
  members_of(args->group, mpi.rank, args->place);
  return 0;
}

int32_t exchange(const ait_host_v1* host, const ait_exchange_v1* args, void*) {
  const std::string why = exchange_once(*args);
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}

}  // namespace

const ait_ranks_service_v1 kRanksService{place, exchange};

/// Compares `digest` with that of all other ranks and writes this process's number to `rank`, or why that is not possible to `reason`.
extern "C" __attribute__((visibility("default"))) int32_t ait_ranks_agree(int64_t ranks, uint64_t digest, int64_t* rank, char* reason, int64_t room) {
  const int64_t step = 1;
  uint64_t nothing = 0;
  std::vector<char> received(size_t(ranks) * sizeof(nothing));
  const ait_exchange_v1 x{{ranks, 1, &ranks, &step}, &nothing, 0, sizeof(nothing), received.data(), digest};
  const std::string why = exchange_once(x);
  *rank = Mpi::the().rank;
  strncpy(reason, why.c_str(), size_t(room) - 1);
  reason[room - 1] = 0;
  return why.empty() ? 0 : 1;
}

}  // namespace ait::runtime
