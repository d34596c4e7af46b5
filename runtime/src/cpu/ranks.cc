/// @file ranks.cc
/// @brief The services "ranks" and "permute": exchanges and messages by the transport of this process.
///
/// Waiting for messages ends after AIT_RANKS_TIMEOUT seconds. A message has a header with the key and the size of the computation; ranks that
/// differ in them fail, all of them.
#include "cpu/ranks.h"

#include <string.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpu/transport.h"
#include "ranks_link.h"

namespace ait::runtime {
namespace {

constexpr size_t kMostText = 512;  ///< bytes of the problem that a rank tells the others

std::mutex& lock() {
  static std::mutex instance;
  return instance;
}

Transport*& joined() {
  static Transport* instance = nullptr;  // lives as long as the process, whose exit closes its sockets
  return instance;
}

Transport& transport() { return joined() != nullptr ? *joined() : mpi_transport(); }

struct Header {
  uint64_t key;
  int64_t bytes;
};

/// Why this process cannot be a rank of such a mesh; empty if it can.
std::string refusal(const Transport& found, const ait_group_v1& group) {
  if (!found.error.empty()) return found.error;
  if (found.size == group.ranks) return "";
  const std::string count = std::to_string(group.ranks);
  return "the model needs " + count + " ranks, this process is " + found.self() + ": start it with mpirun -n " + count +
         " or with torchrun --nproc-per-node " + count;
}

constexpr const char* kNotSent = "a message to another rank failed";

/// Compares the header with those of other ranks; says how they differ.
std::string compared(Transport& by, const std::vector<int64_t>& others, const Header& own, double until) {
  std::vector<Header> headers(others.size());
  bool sent = true;
  for (size_t i = 0; i < others.size(); ++i) {
    sent = sent && by.receive(&headers[i], sizeof(Header), others[i]);
    sent = sent && by.send(&own, sizeof(Header), others[i]);
  }
  if (!sent) return kNotSent;
  if (std::string why = by.wait(until); !why.empty()) return why;
  for (size_t i = 0; i < others.size(); ++i) {
    if (headers[i].key == own.key && headers[i].bytes == own.bytes) continue;
    return "rank " + std::to_string(others[i]) + (headers[i].key == own.key ? " sends " + std::to_string(headers[i].bytes) + " bytes, expected " +
           std::to_string(own.bytes) + ": give all ranks inputs of the same shapes" : std::string(" runs another artifact or another step of it: load one file on all ranks, and run it in the same order"));
  }
  return "";
}

std::string exchanged(Transport& by, const ait_exchange_v1& x) {
  int64_t place = 0;
  const std::vector<int64_t> members = members_of(x.group, by.rank, &place);
  const double until = now() + ranks_timeout();
  std::vector<int64_t> others = members;
  others.erase(others.begin() + place);
  if (std::string why = compared(by, others, {x.key, x.bytes}, until); !why.empty()) return why;
  if (x.bytes == 0) return "";
  const auto data = [&](size_t i) { return static_cast<const char*>(x.data) + int64_t(i) * x.step; };
  const auto received = [&](size_t i) { return static_cast<char*>(x.received) + int64_t(i) * x.bytes; };
  bool sent = true;
  for (size_t i = 0; i < members.size(); ++i) {
    if (int64_t(i) == place) {
      memcpy(received(i), data(i), size_t(x.bytes));
      continue;
    }
    sent = sent && by.receive(received(i), x.bytes, members[i]);
    sent = sent && by.send(data(i), x.bytes, members[i]);
  }
  return sent ? by.wait(until) : kNotSent;
}

/// Both ranks of a message compare their headers first.
std::string permuted(Transport& by, const ait_permute_v1& x) {
  int64_t place = 0;
  const std::vector<int64_t> members = members_of(x.group, by.rank, &place);
  const auto [source, target] = partners_of(x, place);
  if (source < 0) memset(x.result, 0, size_t(x.bytes));
  if (source == place) memcpy(x.result, x.data, size_t(x.bytes));
  std::vector<int64_t> others;
  if (source >= 0 && source != place) others.push_back(members[size_t(source)]);
  if (target >= 0 && target != place && target != source) others.push_back(members[size_t(target)]);
  const double until = now() + ranks_timeout();
  if (std::string why = compared(by, others, {x.key, x.bytes}, until); !why.empty()) return why;
  if (x.bytes == 0) return "";
  bool sent = true;
  if (source >= 0 && source != place) sent = by.receive(x.result, x.bytes, members[size_t(source)]);
  if (target >= 0 && target != place) sent = sent && by.send(x.data, x.bytes, members[size_t(target)]);
  return sent ? by.wait(until) : kNotSent;
}

/// One exchange or message; after a failure messages may be under way, so that no other one is possible.
template <class Args>
std::string run_once(std::string (*function)(Transport&, const Args&), const Args& x) {
  const std::lock_guard<std::mutex> guard(lock());
  Transport& by = transport();
  if (std::string why = refusal(by, x.group); !why.empty()) return why;
  if (std::string why = function(by, x); !why.empty()) by.error = by.self() + ": " + why;
  return by.error;
}

int32_t place(const ait_host_v1* host, const ait_place_v1* args, void*) {
  const std::lock_guard<std::mutex> guard(lock());
  const Transport& by = transport();
  if (const std::string why = refusal(by, args->group); !why.empty()) return host->fail(host->self, why.c_str());
  members_of(args->group, by.rank, args->place);
  return 0;
}

int32_t exchange(const ait_host_v1* host, const ait_exchange_v1* args, void*) {
  const std::string why = run_once(exchanged, *args);
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}

int32_t permute(const ait_host_v1* host, const ait_permute_v1* args, void*) {
  const std::string why = run_once(permuted, *args);
  return why.empty() ? 0 : host->fail(host->self, why.c_str());
}

int32_t written(const std::string& why, char* reason, int64_t room) {
  strncpy(reason, why.c_str(), size_t(room) - 1);
  reason[room - 1] = 0;
  return why.empty() ? 0 : 1;
}

int32_t exchange_by_link(const ait_exchange_v1* args, char* reason, int64_t room) { return written(run_once(exchanged, *args), reason, room); }

void ended_by_link(char* text, int64_t room) {
  const std::lock_guard<std::mutex> guard(lock());
  written(transport().ended(), text, room);
}

}  // namespace

const ait_ranks_service_v1 kRanksService{place, exchange};
const ait_permute_service_v1 kPermuteService{permute};

#define AIT_EXPORTED extern "C" __attribute__((visibility("default")))

/// Lets this process be a rank by sockets that are connected to each other rank.
AIT_EXPORTED void ait_ranks_join(int64_t rank, int64_t ranks, const int32_t* sockets) {
  const std::lock_guard<std::mutex> guard(lock());
  joined() = socket_transport(int(rank), {sockets, sockets + ranks});
}

/// Compares `digest` with that of all other ranks and writes this process's number to `rank`, or why that is not possible to `reason`. A
/// `problem` of a rank, if it is not empty, is the reason on all of them.
AIT_EXPORTED int32_t ait_ranks_agree(int64_t ranks, uint64_t digest, const char* problem, int64_t* rank, char* reason, int64_t room) {
  const int64_t step = 1;
  std::vector<char> own(kMostText), all(size_t(ranks) * kMostText);
  strncpy(own.data(), problem, kMostText - 1);
  const ait_exchange_v1 x{{ranks, 1, &ranks, &step}, own.data(), 0, int64_t(kMostText), all.data(), digest};
  std::string why = run_once(exchanged, x);
  for (int64_t i = 0; i < ranks && why.empty(); ++i) {
    const char* const text = all.data() + size_t(i) * kMostText;
    if (*text != 0) why = "rank " + std::to_string(i) + " of " + std::to_string(ranks) + ": " + std::string(text, strnlen(text, kMostText - 1));
  }
  *rank = transport().rank;
  return written(why, reason, room);
}

/// The connections of this process, for the runtime library of a GPU.
AIT_EXPORTED const void* ait_ranks_link() {
  static RanksLink link{0, 1, exchange_by_link, ended_by_link};
  link.rank = transport().rank;
  link.ranks = transport().size;
  return &link;
}

}  // namespace ait::runtime
