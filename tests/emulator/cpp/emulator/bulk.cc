/// @file bulk.cc
/// @brief Bulk copies between global memory and shared memory of the cluster.
#include "emulator/bulk.h"

#include <string.h>

#include "emulator/state.h"

namespace ait::emulator {
namespace {
/// Calls `each` for the pieces of one line: `row` is its first element, `at` the first one wanted.
template <class Each>
void walk_line(const TensorMap& map, uint32_t shared, uint32_t line, const char* row, bool exists, int at, const Each& each) {
  const uint32_t line_bytes = map.box[0] * uint32_t(map.element_bytes);
  for (uint32_t x = 0; x < line_bytes; x += 16) {
    const uint32_t to = swizzled(shared + line * line_bytes + x, map.swizzle_bytes);
    const int64_t begin = int64_t(at) * map.element_bytes + x, end = int64_t(map.dims[0]) * map.element_bytes;
    if (!exists || begin >= end || begin + 16 <= 0) {
      each(to, static_cast<char*>(nullptr), 0, 0);
    } else {
      const int64_t skipped = begin < 0 ? -begin : 0;
      each(to, const_cast<char*>(row) + begin + skipped, uint32_t(skipped), uint32_t((begin + 16 < end ? begin + 16 : end) - begin - skipped));
    }
  }
}

/// Calls `each(shared address, pointer to the element or null, bytes)` for all pieces of a box: 16 bytes of a line, or those that exist.
template <class Each>
void walk(const TensorMap& map, uint32_t shared, const int* at, const Each& each) {
  uint32_t lines = 1;
  for (int d = 1; d < map.rank; ++d) lines *= map.box[d];
  for (uint32_t line = 0; line < lines; ++line) {
    char* row = map.data;
    bool exists = true;
    uint32_t rest = line;
    for (int d = 1; d < map.rank; ++d) {
      const int64_t i = int64_t(at[d]) + rest % map.box[d];
      rest /= map.box[d];
      exists = exists && i >= 0 && uint64_t(i) < map.dims[d];
      row += i * int64_t(map.strides[d]);
    }
    walk_line(map, shared, line, row, exists, at[0], each);
  }
}

/// The same for places of a window: along x, then y, maybe z, then images.
template <class Each>
void walk_window(const TensorMap& map, uint32_t shared, const int* at, const uint16_t* offsets, const Each& each) {
  const int spatial = map.spatial();
  int64_t place[TensorMap::kMostDims - 1];
  for (int d = 0; d <= spatial; ++d) place[d] = at[d + 1];
  for (int d = 0; d < spatial; ++d) {
    if (offsets[d] > (spatial == 3 ? 31 : 255)) fail("a copy of windows is moved by %u", unsigned(offsets[d]));
    const int64_t past = place[d] - map.low[d];
    if (past < 0 || past % map.steps[d] != 0 || place[d] >= int64_t(map.dims[d + 1]) + map.high[d]) fail("a copy of windows begins at no place of them");
  }
  for (uint32_t line = 0; line < map.box[1]; ++line) {
    const char* row = map.data;
    bool exists = true;
    for (int d = 0; d <= spatial; ++d) {
      const int64_t i = place[d] + (d < spatial ? offsets[d] : 0);
      exists = exists && i >= 0 && uint64_t(i) < map.dims[d + 1];
      row += i * int64_t(map.strides[d + 1]);
    }
    walk_line(map, shared, line, row, exists, at[0], each);
    for (int d = 0; d <= spatial; ++d) {
      place[d] += d < spatial ? int64_t(map.steps[d]) : 1;
      if (d == spatial || place[d] < int64_t(map.dims[d + 1]) + map.high[d]) break;
      place[d] = map.low[d];
    }
  }
}

uint32_t box_bytes(const TensorMap& map) {
  uint32_t bytes = uint32_t(map.element_bytes);
  for (int d = 0; d < (map.windows ? 2 : map.rank); ++d) bytes *= map.box[d];
  return bytes;
}

void check_shared_alignment(const char* what, const TensorMap& map, uint32_t offset) {
  if (map.data == nullptr) fail("%s with a tensor map that was not made", what);
  const uint32_t needed = map.swizzle_bytes == 0 ? 128 : map.swizzle_bytes * 8;
  if (offset % needed != 0) fail("%s: the box at %u in shared memory is not aligned to %u bytes, as its swizzle repeats", what, offset, needed);
}
}  // namespace

const char* map_problem(const TensorMap& map) {
  if (map.rank < 1 || map.rank > TensorMap::kMostDims) return "the rank is not 1 to 5";
  if (uintptr_t(map.data) % 16 != 0) return "the tensor is not aligned to 16 bytes";
  for (int d = 0; d < map.rank; ++d) {
    if (map.dims[d] == 0 || map.dims[d] > uint64_t(1) << 32) return "a dim is not 1 to 2^32";
    if (map.windows && d >= 2 ? map.box[d] != 0 : map.box[d] == 0 || map.box[d] > 256) return "a side of the box is not 1 to 256";
    if (d > 0 && (map.strides[d] % 16 != 0 || map.strides[d] >= uint64_t(1) << 40)) return "a stride is no multiple of 16, or 2^40 or more";
  }
  if (map.windows && map.rank != 4 && map.rank != 5) return "windows of another rank than 4 and 5 are not emulated";
  for (int d = 0; map.windows && d < map.spatial(); ++d) {
    const int most = map.rank == 4 ? 127 : 15;
    if (map.low[d] < -most - 1 || map.low[d] > most || map.high[d] < -most - 1 || map.high[d] > most) return "a corner is out of its range";
    if (map.steps[d] < 1 || map.steps[d] > 8) return "a step is not 1 to 8";
    if (int64_t(map.dims[d + 1]) + map.high[d] <= map.low[d]) return "there is no place";
  }
  const uint32_t line = map.box[0] * uint32_t(map.element_bytes);
  if (line % 16 != 0) return "lines of the box are no multiple of 16 bytes";
  if (map.swizzle_bytes != 0 && line > map.swizzle_bytes) return "lines of the box are longer than those of its swizzle";
  return nullptr;
}

namespace {
/// Copies what `walk_all(shared address, each)` goes through to each block of `ranks`; 0: to this block.
template <class Walk>
void copy_pieces(uint32_t to, const TensorMap& map, uint32_t barrier, uint16_t ranks, const Walk& walk_all) {
  const char* what = "cp.async.bulk.tensor";
  const Place own = place_of(to, what);
  const uint32_t counted = place_of(barrier, what).offset;
  if (&own.block != current->block) fail("%s: the destination is given by its place in this block", what);
  check_shared_alignment(what, map, own.offset);
  if (ranks >> blocks.size() != 0) fail("%s to blocks %#x of a cluster of %zu", what, ranks, blocks.size());
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    Block& block = ranks == 0 ? own.block : *blocks[rank];
    if (ranks == 0 ? rank != 0 : (ranks >> rank & 1) == 0) continue;
    const Barrier& at_end = barrier_at({block, counted}, what, true);
    const Toucher by{*current->seen, at_end.actor, at_end.phase + 1, Toucher::kNobody, true, "bulk "};
    walk_all(own.offset, [&](uint32_t offset, const char* from, uint32_t first, uint32_t bytes) {
      touch_dynamic(block, offset, 16, write, by);
      memset(block.window + offset, 0, 16);
      if (bytes == 0) return;
      check_read(from, bytes);
      memcpy(block.window + offset + first, from, bytes);
    });
    count_bytes({block, counted}, box_bytes(map));
  }
}
}  // namespace

void copy_box(uint32_t to, const TensorMap& map, uint32_t barrier, const int* at, uint16_t ranks) {
  if (map.windows) fail("a copy of a box with a map of windows");
  copy_pieces(to, map, barrier, ranks, [&](uint32_t shared, const auto& each) { walk(map, shared, at, each); });
}

void copy_window(uint32_t to, const TensorMap& map, uint32_t barrier, const int* at, const uint16_t* offsets) {
  if (!map.windows) fail("a copy of windows with a map of boxes");
  copy_pieces(to, map, barrier, 0, [&](uint32_t shared, const auto& each) { walk_window(map, shared, at, offsets, each); });
}

void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  const char* what = "cp.async.bulk";
  const Place place = place_of(to, what), counted = place_of(barrier, what);
  if (&place.block != current->block || &counted.block != current->block) fail("%s to another block", what);
  if (to % 16 != 0 || uintptr_t(from) % 16 != 0) fail("%s from %p to %#x, which are not both aligned to 16 bytes", what, from, to);
  if (bytes == 0 || bytes % 16 != 0) fail("%s of %u bytes, which are no multiple of 16", what, bytes);
  const Barrier& at_end = barrier_at(counted, what, true);
  const Toucher by{*current->seen, at_end.actor, at_end.phase + 1, Toucher::kNobody, true, "bulk "};
  for (uint32_t x = 0; x < bytes; x += 16) {
    touch_dynamic(place.block, place.offset + x, 16, write, by);
    check_read(static_cast<const char*>(from) + x, 16);
  }
  memcpy(place.block.window + place.offset, from, bytes);
  count_bytes(counted, bytes);
}

void send(uint32_t to, uint32_t barrier, const void* from) {
  const Place place = place_of(to, "st.async"), counted = place_of(barrier, "st.async");
  if (blocks.size() < 2) fail("st.async in a cluster of one block: it takes two");
  if (to % 16 != 0) fail("st.async to %#x, which is not aligned to 16 bytes", to);
  if (&place.block != &counted.block) fail("st.async to one block, counted in another");
  Barrier& at_end = barrier_at(counted, "st.async", true);
  if (at_end.sender == 0) at_end.sender = add_ordinary_actor("a store that is counted at the barrier at byte " + std::to_string(at_byte(counted)));
  touch_dynamic(place.block, place.offset, 16, write, {*current->seen, at_end.sender, at_end.phase + 1, current->index, false, "st.async: "});
  memcpy(place.block.window + place.offset, from, 16);
  count_bytes(counted, 16);
}

void store_box(const TensorMap& map, uint32_t from, const int* at) {
  const char* what = "cp.async.bulk.tensor";
  Fiber& self = *current;
  const Place place = place_of(from, what);
  if (&place.block != self.block) fail("%s from another block", what);
  check_shared_alignment(what, map, place.offset);
  if (self.store_actor == 0) self.store_actor = add_actor("a bulk store of " + name_of(self.index));
  self.stored = self.store_group;
  const Toucher by{*self.seen, self.store_actor, self.store_group, Toucher::kNobody, true, "bulk "};
  walk(map, place.offset, at, [&](uint32_t offset, char* to, uint32_t first, uint32_t bytes) {
    touch_dynamic(place.block, offset, 16, speculative_read, by);  // what does not exist outside is read as well
    if (bytes == 0) return;
    touch_dynamic(place.block, offset + first, bytes, read, by);
    check_write(to, bytes);
    memcpy(to, place.block.window + offset + first, bytes);
  });
}

void store_commit() { ++current->store_group; }

void store_wait(int pending) {
  Fiber& self = *current;
  const int64_t last = int64_t(self.store_group) - 1 - pending;
  if (last <= 0) return;
  self.store_waited = uint32_t(last);
  if (self.store_actor != 0) learn(self, self.store_actor, uint32_t(last));
}

void publish_to_copies() { publish(*current); }

}  // namespace ait::emulator
