/// @file blake3.h
/// @brief BLAKE3, the hash of the parts of an artifact (github.com/BLAKE3-team/BLAKE3-specs): a tree over pieces of 1 KiB.
#ifndef AIT_RUNTIME_DEPLOY_BLAKE3_H_
#define AIT_RUNTIME_DEPLOY_BLAKE3_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ait::runtime {

using Blake3 = std::array<uint8_t, 32>;

/// @brief The hash of `size` bytes, computed by up to `threads` threads.
Blake3 blake3(const void* data, size_t size, int threads = 1);

/// @brief The hash of bytes that come in pieces, computed by up to `threads` threads.
class Blake3Stream {
 public:
  using Node = std::array<uint32_t, 8>;  ///< the chaining value of a node of the tree

  explicit Blake3Stream(int threads = 1) : threads_(threads < 1 ? 1 : static_cast<size_t>(threads)) {}
  void update(const void* data, size_t size);
  /// The hash of all bytes. The stream is used up.
  Blake3 finish();

 private:
  size_t threads_;
  std::vector<Node> nodes_;    ///< of the subtrees that are full and not the last one
  std::vector<uint8_t> rest_;  ///< what follows them, at most one subtree
};

/// @brief A hash as 64 lower-case hexadecimal digits.
std::string hex(const Blake3& hash);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEPLOY_BLAKE3_H_
