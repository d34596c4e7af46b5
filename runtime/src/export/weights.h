/// @file weights.h
/// @brief The weights that follow an exported library in its own file.
///
/// The file is the shared library, zeros up to a page, the weights and the kernel libraries that the model calls, and a footer of 64 bytes: the
/// magic number, where the weights begin, how many bytes all of them have, zeros, and their BLAKE3.
#ifndef AIT_RUNTIME_EXPORT_WEIGHTS_H_
#define AIT_RUNTIME_EXPORT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ait::runtime {

/// @brief A copy of the weights of this library, so that the bytes that were hashed are used, also if the file is written meanwhile. Throws an Error
/// of kind kArtifact if the file has none, or is damaged.
class StoredWeights {
 public:
  StoredWeights();
  ~StoredWeights();
  StoredWeights(const StoredWeights&) = delete;
  StoredWeights& operator=(const StoredWeights&) = delete;

  /// `bytes` bytes from `offset` on. Throws if they are not all there.
  const void* at(int64_t offset, int64_t bytes) const;
  /// Gives the whole pages of these bytes back, which are not read any more.
  void release(int64_t offset, int64_t bytes) const;

 private:
  std::string path_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_EXPORT_WEIGHTS_H_
