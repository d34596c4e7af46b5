/// @file blake3.h
/// @brief BLAKE3, the hash of the parts of an artifact (github.com/BLAKE3-team/BLAKE3-specs): a tree over pieces of 1 KiB.
#ifndef AIT_RUNTIME_DEPLOY_BLAKE3_H_
#define AIT_RUNTIME_DEPLOY_BLAKE3_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ait::runtime {

using Blake3 = std::array<uint8_t, 32>;

/// @brief The hash of `size` bytes, computed by up to `threads` threads.
Blake3 blake3(const void* data, size_t size, int threads = 1);

/// @brief A hash as 64 lower-case hexadecimal digits.
std::string hex(const Blake3& hash);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEPLOY_BLAKE3_H_
