// NCCL for processes of one machine whose devices are those of tests/runtime/fake_cuda: data pass through shared memory. A rank that waits for
// another one returns when its communicator is aborted, as NCCL's launches do.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

extern "C" int ait_test_launch(void* stream, void (*body)(const void*), const void* work, size_t bytes, int count);

namespace {

constexpr size_t kRoom = 1 << 16;  // bytes of each rank
constexpr int kOk = 0, kInvalid = 4, kRemote = 6;

constexpr int kMostRanks = 8;

struct Shared {
  std::atomic<int64_t> arrived;
  std::atomic<int64_t> sent[kMostRanks][kMostRanks], taken[kMostRanks][kMostRanks];  // messages, by sender and receiver
  char data[];  // a room of each rank for collectives, then one for its messages
};

struct Comm {
  Shared* shared;
  int count, rank;
  int64_t rounds = 0;
  std::atomic<bool> aborted{false};

  char* slot(int of) const { return shared->data + size_t(of) * kRoom; }
  char* box(int from, int to) const { return slot(count + from) + size_t(to) * (kRoom / size_t(count)); }
  template <class Condition>
  bool wait(const Condition& done) const {
    while (!done()) {
      if (aborted) return false;
      usleep(200);
    }
    return true;
  }
  // Waits until all ranks have come here; false if the communicator was aborted.
  bool meet() {
    shared->arrived.fetch_add(1);
    ++rounds;
    return wait([this] { return shared->arrived.load() >= rounds * count; });
  }
};

struct Work {
  const void* in;
  void* out;
  Comm* comm;
  size_t bytes, count;
  int kind, type, join, root;
  void* others;
};
enum Kind { kReduce, kGather, kScatter, kBroadcast, kGroup };

struct Message {
  const char* from;
  char* to;
  size_t bytes;
  int peer;
};
thread_local std::vector<Message>* group = nullptr;

size_t bytes_of(int type) { return type <= 1 ? 1 : type <= 3 ? 4 : type <= 5 ? 8 : type == 6 || type == 9 ? 2 : type == 7 ? 4 : 8; }

template <class T>
void join(const Work& w, size_t first) {
  for (size_t i = 0; i < w.count; ++i) {
    T total{};
    for (int r = 0; r < w.comm->count; ++r) {
      T x;
      std::memcpy(&x, w.comm->slot(r) + (first + i) * sizeof(T), sizeof(T));
      total = r == 0 ? x : w.join == 0 ? T(total + x) : w.join == 1 ? T(total * x) : w.join == 2 ? std::max(total, x) : std::min(total, x);
    }
    std::memcpy(static_cast<char*>(w.out) + i * sizeof(T), &total, sizeof(T));
  }
}

void join_any(const Work& w, size_t first) {
  switch (w.type) {
    case 0: return join<int8_t>(w, first);
    case 1: return join<uint8_t>(w, first);
    case 2: return join<int32_t>(w, first);
    case 4: return join<int64_t>(w, first);
    case 6: return join<_Float16>(w, first);
    case 7: return join<float>(w, first);
    case 8: return join<double>(w, first);
    default: std::abort();
  }
}

void compute(const void* data) {
  const Work& w = *static_cast<const Work*>(data);
  Comm& comm = *w.comm;
  if (w.kind == kGroup) {
    const auto& messages = *static_cast<std::vector<Message>*>(w.others);
    Shared& shared = *comm.shared;  // a sender waits until its last message was taken, a receiver until one has come
    for (const Message& m : messages) {
      if (m.from == nullptr) continue;
      std::atomic<int64_t>&sent = shared.sent[comm.rank][m.peer], &taken = shared.taken[comm.rank][m.peer];
      if (!comm.wait([&] { return taken == sent; })) return;
      std::memcpy(comm.box(comm.rank, m.peer), m.from, m.bytes);
      ++sent;
    }
    for (const Message& m : messages) {
      if (m.to == nullptr) continue;
      std::atomic<int64_t>&sent = shared.sent[m.peer][comm.rank], &taken = shared.taken[m.peer][comm.rank];
      if (!comm.wait([&] { return taken < sent; })) return;
      std::memcpy(m.to, comm.box(m.peer, comm.rank), m.bytes);
      ++taken;
    }
    return;
  }
  std::memcpy(comm.slot(comm.rank), w.in, w.bytes);
  if (!comm.meet()) return;
  if (w.kind == kReduce) join_any(w, 0);
  if (w.kind == kScatter) join_any(w, size_t(comm.rank) * w.count);
  if (w.kind == kBroadcast) std::memcpy(w.out, comm.slot(w.root), w.bytes);
  for (int r = 0; r < comm.count && w.kind == kGather; ++r) std::memcpy(static_cast<char*>(w.out) + size_t(r) * w.bytes, comm.slot(r), w.bytes);
  comm.meet();
}

int launch(const Work& work, void* stream) {
  if (work.bytes > kRoom) return kInvalid;
  return ait_test_launch(stream, compute, &work, sizeof(work), 2) == 0 ? kOk : kInvalid;
}

}  // namespace

extern "C" {

struct Id {
  char text[128];
};

int ncclGetUniqueId(Id* id) {
  std::snprintf(id->text, sizeof(id->text), "/ait_fake_nccl_%d_%ld", int(getpid()), random());
  return kOk;
}
int ncclCommInitRank(Comm** made, int count, Id id, int rank) {
  if (const char* refused = std::getenv("FAKE_NCCL_REFUSES"); refused != nullptr) return std::atoi(refused);
  const int file = shm_open(id.text, O_CREAT | O_RDWR, 0600);
  if (count > kMostRanks) return kInvalid;
  const size_t bytes = sizeof(Shared) + 2 * size_t(count) * kRoom;
  if (file < 0 || ftruncate(file, off_t(bytes)) != 0) return kInvalid;
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (place == MAP_FAILED) return kInvalid;
  *made = new Comm{static_cast<Shared*>(place), count, rank};
  if (!(*made)->meet()) return kRemote;
  shm_unlink(id.text);
  return kOk;
}
int ncclCommAbort(Comm* comm) {
  comm->aborted = true;
  return kOk;
}
int ncclCommGetAsyncError(Comm*, int* status) {
  *status = kOk;
  return kOk;
}
const char* ncclGetErrorString(int status) { return status == kRemote ? "remote process exited" : status == 5 ? "invalid usage" : "invalid argument"; }
int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, Comm* comm, void* stream) {
  return launch({in, out, comm, count * bytes_of(type), count, kReduce, type, op, 0, nullptr}, stream);
}
int ncclAllGather(const void* in, void* out, size_t count, int type, Comm* comm, void* stream) {
  return launch({in, out, comm, count * bytes_of(type), count, kGather, type, 0, 0, nullptr}, stream);
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, Comm* comm, void* stream) {
  return launch({in, out, comm, count * bytes_of(type) * size_t(comm->count), count, kScatter, type, op, 0, nullptr}, stream);
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, Comm* comm, void* stream) {
  return launch({in, out, comm, count * bytes_of(type), count, kBroadcast, type, 0, root, nullptr}, stream);
}
int ncclGroupStart() {
  group = new std::vector<Message>;  // which a recorded launch keeps
  return kOk;
}
thread_local Comm* group_comm;
thread_local void* group_stream;
int ncclSend(const void* in, size_t count, int type, int peer, Comm* comm, void* stream) {
  group->push_back({static_cast<const char*>(in), nullptr, count * bytes_of(type), peer});
  group_comm = comm;
  group_stream = stream;
  return kOk;
}
int ncclRecv(void* out, size_t count, int type, int peer, Comm* comm, void* stream) {
  group->push_back({nullptr, static_cast<char*>(out), count * bytes_of(type), peer});
  group_comm = comm;
  group_stream = stream;
  return kOk;
}
int ncclGroupEnd() {
  return launch({group->front().from, nullptr, group_comm, 0, 0, kGroup, 0, 0, 0, group}, group_stream);
}

}  // extern "C"
