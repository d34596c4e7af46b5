/// @file bulk.h
/// @brief Barriers in shared memory and the bulk copies whose bytes they count; named barriers.
///
/// A copy is made when it starts, but nobody knows of it before the phase of its barrier has ended and was waited for: whoever touches the
/// bytes sooner fails. Addresses are those of the shared window; those that `address_in` returns, of shared memory of the cluster.
#ifndef AIT_EMULATOR_BULK_H_
#define AIT_EMULATOR_BULK_H_

#include "emulator/emulator.h"

namespace ait::emulator {

/// @brief A tensor in global memory as the copy engine sees it; dims from the contiguous one on.
struct TensorMap {
  static constexpr int kMostDims = 5;
  char* data = nullptr;
  int rank = 0, element_bytes = 0;
  uint64_t dims[kMostDims] = {};
  uint64_t strides[kMostDims] = {};  ///< bytes
  uint32_t box[kMostDims] = {};
  uint32_t swizzle_bytes = 0;        ///< of a line: 32, 64, 128; 0 for none
  /// A map of windows: dims are channels, x, y, maybe z, images; the box is channels by places, of which a line has those from `low` to `high`
  /// behind the last element, both moved by the offset of a copy, `steps` apart.
  bool windows = false;
  int low[3] = {}, high[3] = {};     ///< of x, y and z
  uint32_t steps[3] = {};

  int spatial() const { return rank - 2; }
};

/// @brief What the driver refuses in a map, or null.
const char* map_problem(const TensorMap& map);

/// @brief Where 16-byte pieces of lines lie in shared memory: the address with some bits of its line's number mixed in.
inline uint32_t swizzled(uint32_t address, uint32_t swizzle_bytes) {
  return swizzle_bytes == 0 ? address : address ^ (address >> 3 & (swizzle_bytes - 16));
}

void barrier_init(uint32_t address, uint32_t arrivals);
void barrier_init_fence();
/// @brief Announces `bytes`, and arrives.
void barrier_arrive(uint32_t address, uint32_t bytes = 0);
/// @brief Waits until the phase of this parity has ended.
void barrier_wait(uint32_t address, uint32_t parity, Site site);
/// @brief The address in block `rank` of the cluster.
uint32_t address_in(uint32_t address, uint32_t rank);

/// @brief st.async of 16 bytes.
void send(uint32_t to, uint32_t barrier, const void* from);
/// @brief cp.async.bulk.tensor from the box at `at`, to each block of `ranks` at the same place; 0: to this block.
void copy_box(uint32_t to, const TensorMap& map, uint32_t barrier, const int* at, uint16_t ranks);
/// @brief cp.async.bulk.tensor of im2col: the places from `at` on, moved by the offsets of a tap, to this block.
void copy_window(uint32_t to, const TensorMap& map, uint32_t barrier, const int* at, const uint16_t* offsets);
/// @brief cp.async.bulk.tensor to the box at `at`.
void store_box(const TensorMap& map, uint32_t from, const int* at);
/// @brief cp.async.bulk of `bytes` from `from`.
void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier);
void store_commit();
/// @brief Waits until all but `pending` groups have read shared memory.
void store_wait(int pending);
/// @brief fence.proxy.async
void publish_to_copies();

/// @brief bar.sync, or bar.arrive unless it `waits`.
void named_barrier(int id, int threads, bool waits, Site site);

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_BULK_H_
