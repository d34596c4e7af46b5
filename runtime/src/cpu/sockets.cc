/// @file sockets.cc
/// @brief Messages by sockets, one to each other rank. A rank that ends closes its sockets, which the others see at once.
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>

#include "cpu/transport.h"

namespace ait::runtime {
namespace {

constexpr int64_t kLargest = int64_t(1) << 20;  // bytes that one call of the system moves
constexpr int kTurns = 200;                     // without progress, before the process sleeps
constexpr int kPause = 20;                      // milliseconds of a sleep

class Sockets final : public Transport {
 public:
  Sockets(int own, const std::vector<int>& sockets) {
    rank = own;
    size = int(sockets.size());
    for (const int socket : sockets) peers_.push_back({socket, {}, {}});
  }

  bool send(const void* data, int64_t bytes, int64_t to) override {
    if (bytes > 0) peers_[size_t(to)].out.push_back({static_cast<char*>(const_cast<void*>(data)), bytes});
    return true;
  }
  bool receive(void* data, int64_t bytes, int64_t from) override {
    if (bytes > 0) peers_[size_t(from)].in.push_back({static_cast<char*>(data), bytes});
    return true;
  }

  std::string wait(double until) override {
    for (int turn = 0;; ++turn) {
      bool moved = false, is_done = true;
      for (size_t i = 0; i < peers_.size(); ++i) {
        Peer& peer = peers_[i];
        const bool is_alive = pass(peer.out, &moved, [&](char* data, size_t bytes) { return ::send(peer.socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT); }) &&
                              pass(peer.in, &moved, [&](char* data, size_t bytes) { return ::recv(peer.socket, data, bytes, MSG_DONTWAIT); });
        if (!is_alive) return "rank " + std::to_string(i) + " has ended";
        is_done = is_done && peer.in.empty() && peer.out.empty();
      }
      if (is_done) return "";
      if (moved) turn = 0;
      if (turn < kTurns) continue;
      rest();
      if (now() > until) return silent(late());
    }
  }

  std::string ended() override {
    std::vector<int64_t> found;
    for (size_t i = 0; i < peers_.size(); ++i) {
      char next = 0;
      if (int(i) == rank) continue;
      const ssize_t count = ::recv(peers_[i].socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
      if (count == 0 || (count < 0 && !is_late())) found.push_back(int64_t(i));
    }
    return named(found);
  }

 private:
  struct Part {
    char* data;
    int64_t left;
  };
  struct Peer {
    int socket;
    std::deque<Part> out, in;
  };

  /// Whether the last call of the system could do nothing now.
  static bool is_late() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  /// Moves as many bytes as there are now. False if the other side is gone.
  template <class Move>
  static bool pass(std::deque<Part>& parts, bool* moved, const Move& move) {
    while (!parts.empty()) {
      Part& part = parts.front();
      const ssize_t count = move(part.data, size_t(std::min(part.left, kLargest)));
      if (count == 0) return false;
      if (count < 0) return is_late();
      *moved = true;
      part.data += count;
      part.left -= count;
      if (part.left == 0) parts.pop_front();
    }
    return true;
  }

  /// Sleeps until one of the sockets that are waited for is ready, or for a short time.
  void rest() const {
    std::vector<pollfd> waited;
    for (const Peer& peer : peers_) {
      const int events = (peer.in.empty() ? 0 : POLLIN) | (peer.out.empty() ? 0 : POLLOUT);
      if (events != 0) waited.push_back({peer.socket, short(events), 0});
    }
    (void)::poll(waited.data(), waited.size(), kPause);
  }

  std::vector<int64_t> late() const {
    std::vector<int64_t> found;
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!peers_[i].in.empty() || !peers_[i].out.empty()) found.push_back(int64_t(i));
    }
    return found;
  }

  std::vector<Peer> peers_;
};

}  // namespace

Transport* socket_transport(int rank, const std::vector<int>& sockets) { return new Sockets(rank, sockets); }

}  // namespace ait::runtime
