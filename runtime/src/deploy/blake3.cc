#include "deploy/blake3.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "threads.h"

namespace ait::runtime {
namespace {

constexpr size_t kBlock = 64, kChunk = 1024, kBlocks = kChunk / kBlock;
constexpr uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;
constexpr int kLanes = 16;
/// Chunks of a subtree that one thread hashes: a power of two, so that the subtrees are those of the whole tree.
constexpr size_t kSubtree = size_t{1} << 14;

constexpr uint32_t kIv[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr uint8_t kOrder[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};

/// One word of `kLanes` hashes that are computed together.
typedef uint32_t Lanes __attribute__((vector_size(4 * kLanes)));

using Words = Blake3Stream::Node;

#define AIT_INLINE inline __attribute__((always_inline))

template <class W>
AIT_INLINE void mix(W* v, int a, int b, int c, int d, const W& x, const W& y) {
  v[a] = v[a] + v[b] + x;
  v[d] = v[d] ^ v[a];
  v[d] = (v[d] >> 16) | (v[d] << 16);
  v[c] = v[c] + v[d];
  v[b] = v[b] ^ v[c];
  v[b] = (v[b] >> 12) | (v[b] << 20);
  v[a] = v[a] + v[b] + y;
  v[d] = v[d] ^ v[a];
  v[d] = (v[d] >> 8) | (v[d] << 24);
  v[c] = v[c] + v[d];
  v[b] = v[b] ^ v[c];
  v[b] = (v[b] >> 7) | (v[b] << 25);
}

/// Replaces the chaining value `cv` by that after the block `m`.
template <class W>
AIT_INLINE void compress(W* cv, const W* block, const W& counter_low, const W& counter_high, uint32_t length, uint32_t flags) {
  const W zero = counter_low - counter_low;
  W m[16], v[16];
  for (int i = 0; i < 16; ++i) m[i] = block[i];
  for (int i = 0; i < 8; ++i) v[i] = cv[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = zero + kIv[i];
  v[12] = counter_low;
  v[13] = counter_high;
  v[14] = zero + length;
  v[15] = zero + flags;
  for (int round = 0; round < 7; ++round) {
    mix(v, 0, 4, 8, 12, m[0], m[1]);
    mix(v, 1, 5, 9, 13, m[2], m[3]);
    mix(v, 2, 6, 10, 14, m[4], m[5]);
    mix(v, 3, 7, 11, 15, m[6], m[7]);
    mix(v, 0, 5, 10, 15, m[8], m[9]);
    mix(v, 1, 6, 11, 12, m[10], m[11]);
    mix(v, 2, 7, 8, 13, m[12], m[13]);
    mix(v, 3, 4, 9, 14, m[14], m[15]);
    W next[16];
    for (int i = 0; i < 16; ++i) next[i] = m[kOrder[i]];
    for (int i = 0; i < 16; ++i) m[i] = next[i];
  }
  for (int i = 0; i < 8; ++i) cv[i] = v[i] ^ v[i + 8];
}

/// Hashes `kLanes` inputs that follow each other, of `blocks` whole blocks each. `step` is 1 if the inputs are chunks, whose numbers count
/// from `counter`, and 0 if they are pairs of nodes.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void hash_lanes(const uint8_t* inputs, size_t blocks, uint64_t counter, int step, uint32_t flags, uint32_t first, uint32_t last, Words* out) {
  Lanes cv[8], low{}, high{};
  for (int i = 0; i < 8; ++i) cv[i] = Lanes{} + kIv[i];
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t number = counter + static_cast<uint64_t>(step * lane);
    low[lane] = static_cast<uint32_t>(number);
    high[lane] = static_cast<uint32_t>(number >> 32);
  }
  for (size_t b = 0; b < blocks; ++b) {
    alignas(64) uint32_t words[16][kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      uint32_t line[16];
      std::memcpy(line, inputs + (static_cast<size_t>(lane) * blocks + b) * kBlock, kBlock);
      for (int w = 0; w < 16; ++w) words[w][lane] = line[w];
    }
    Lanes m[16];
    for (int w = 0; w < 16; ++w) std::memcpy(&m[w], words[w], sizeof m[w]);
    compress(cv, m, low, high, kBlock, flags | (b == 0 ? first : 0) | (b + 1 == blocks ? last : 0));
  }
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) out[lane][static_cast<size_t>(i)] = cv[i][lane];
  }
}

/// The node of one chunk of at most `kChunk` bytes.
Words hash_chunk(const uint8_t* data, size_t size, uint64_t counter, uint32_t root) {
  Words cv;
  std::copy(kIv, kIv + 8, cv.begin());
  const size_t blocks = size == 0 ? 1 : (size + kBlock - 1) / kBlock;
  for (size_t b = 0; b < blocks; ++b) {
    uint32_t m[16] = {};
    const size_t length = std::min(kBlock, size - b * kBlock);
    if (length > 0) std::memcpy(m, data + b * kBlock, length);
    const bool is_last = b + 1 == blocks;
    compress<uint32_t>(cv.data(), m, static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), static_cast<uint32_t>(length),
                       (b == 0 ? kChunkStart : 0) | (is_last ? kChunkEnd | root : 0));
  }
  return cv;
}

Words hash_pair(const Words* pair, uint32_t root) {
  Words cv;
  std::copy(kIv, kIv + 8, cv.begin());
  uint32_t m[16];
  std::memcpy(m, pair, sizeof m);
  compress<uint32_t>(cv.data(), m, 0u, 0u, kBlock, kParent | root);
  return cv;
}

/// Replaces neighbouring nodes by their parents until at most `wanted` are left; a last one without a neighbour stays.
void reduce(std::vector<Words>* nodes, size_t wanted) {
  while (nodes->size() > wanted) {
    const size_t pairs = nodes->size() / 2;
    size_t i = 0;
    for (; i + kLanes <= pairs; i += kLanes) {
      Words parents[kLanes];
      hash_lanes(reinterpret_cast<const uint8_t*>(nodes->data() + 2 * i), 1, 0, 0, kParent, 0, 0, parents);
      std::copy(parents, parents + kLanes, nodes->begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (; i < pairs; ++i) (*nodes)[i] = hash_pair(nodes->data() + 2 * i, 0);
    if (nodes->size() % 2 != 0) (*nodes)[pairs] = nodes->back();
    nodes->resize(pairs + nodes->size() % 2);
  }
}

/// The nodes of the chunks of `data`, the first of which has the number `counter`.
std::vector<Words> hash_chunks(const uint8_t* data, size_t size, uint64_t counter) {
  const size_t chunks = (size + kChunk - 1) / kChunk, whole = size / kChunk;
  std::vector<Words> nodes(chunks);
  size_t i = 0;
  for (; i + kLanes <= whole; i += kLanes) {
    hash_lanes(data + i * kChunk, kBlocks, counter + i, 1, 0, kChunkStart, kChunkEnd, nodes.data() + i);
  }
  for (; i < chunks; ++i) nodes[i] = hash_chunk(data + i * kChunk, std::min(kChunk, size - i * kChunk), counter + i, 0);
  return nodes;
}

/// The node of a subtree that begins with chunk number `counter`.
Words hash_subtree(const uint8_t* data, size_t size, uint64_t counter) {
  std::vector<Words> nodes = hash_chunks(data, size, counter);
  reduce(&nodes, 1);
  return nodes[0];
}

}  // namespace

Blake3 blake3(const void* data, size_t size, int threads) {
  Blake3Stream stream(threads);
  stream.update(data, size);
  return stream.finish();
}

void Blake3Stream::update(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  constexpr size_t kBytes = kSubtree * kChunk;
  while (size > 0) {
    if (rest_.empty() && size > kBytes) {  // the last bytes stay: they may be the root
      const size_t whole = (size - 1) / kBytes, first = nodes_.size();
      nodes_.resize(first + whole);
      std::atomic<size_t> next{0};
      share_work(std::min(threads_, whole), [&] {
        for (size_t i = next++; i < whole; i = next++) nodes_[first + i] = hash_subtree(bytes + i * kBytes, kBytes, (first + i) * kSubtree);
      });
      bytes += whole * kBytes;
      size -= whole * kBytes;
    } else if (rest_.size() == kBytes) {
      nodes_.push_back(hash_subtree(rest_.data(), kBytes, nodes_.size() * kSubtree));
      rest_.clear();
    } else {
      const size_t taken = std::min(size, kBytes - rest_.size());
      rest_.insert(rest_.end(), bytes, bytes + taken);
      bytes += taken;
      size -= taken;
    }
  }
}

Blake3 Blake3Stream::finish() {
  Words root;
  if (nodes_.empty() && rest_.size() <= kChunk) {
    root = hash_chunk(rest_.data(), rest_.size(), 0, kRoot);
  } else {
    if (nodes_.empty()) {
      nodes_ = hash_chunks(rest_.data(), rest_.size(), 0);
    } else if (!rest_.empty()) {
      nodes_.push_back(hash_subtree(rest_.data(), rest_.size(), nodes_.size() * kSubtree));
    }
    reduce(&nodes_, 2);
    root = hash_pair(nodes_.data(), kRoot);
  }
  Blake3 hash;
  std::memcpy(hash.data(), root.data(), hash.size());
  return hash;
}

std::string hex(const Blake3& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace ait::runtime
