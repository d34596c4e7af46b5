/// @file transport.h
/// @brief Messages between the processes that run one model: by Open MPI, or by sockets that are connected already.
#ifndef AIT_RUNTIME_CPU_TRANSPORT_H_
#define AIT_RUNTIME_CPU_TRANSPORT_H_

#include <stdint.h>
#include <time.h>

#include <string>
#include <vector>

namespace ait::runtime {

/// @brief Seconds of a clock that only grows.
inline double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// @brief Messages between two processes arrive in the order in which they were sent.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Adds a message to those under way. The memory stays as it is until `wait`. False if that is not possible.
  virtual bool send(const void* data, int64_t bytes, int64_t to) = 0;
  virtual bool receive(void* data, int64_t bytes, int64_t from) = 0;
  /// Waits for all messages until a time; says why they did not all arrive.
  virtual std::string wait(double until) = 0;
  /// The ranks that are known to have ended, as "rank 1, rank 3".
  virtual std::string ended() { return ""; }

  std::string self() const { return "rank " + std::to_string(rank) + " of " + std::to_string(size); }

  int rank = 0, size = 1;
  std::string error;  ///< why no exchange is possible any more

 protected:
  static std::string named(const std::vector<int64_t>& ranks) {
    std::string text;
    for (const int64_t found : ranks) text += (text.empty() ? "rank " : ", rank ") + std::to_string(found);
    return text;
  }
  /// The reason where messages of some ranks have not come in time.
  static std::string silent(const std::vector<int64_t>& ranks) {
    return named(ranks) + (ranks.size() == 1 ? " does not answer; it has ended, runs something else, or needs"
                                             : " do not answer; they have ended, run something else, or need") +
           " more than AIT_RANKS_TIMEOUT seconds";
  }
};

/// @brief Open MPI, which is loaded at the first call; `error` says why it cannot be used.
Transport& mpi_transport();

/// @brief Sockets to each other rank, by its number; that of the own rank is ignored. The transport closes them.
Transport* socket_transport(int rank, const std::vector<int>& sockets);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CPU_TRANSPORT_H_
