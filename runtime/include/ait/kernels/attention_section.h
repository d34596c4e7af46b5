/// @file attention_section.h
/// @brief In which order the tiles of causal attention are worked on, so that all multiprocessors end at about the same time.
#ifndef AIT_KERNELS_ATTENTION_SECTION_H_
#define AIT_KERNELS_ATTENTION_SECTION_H_

#include <stdint.h>

namespace ait {

/// @brief What `even_section` depends on.
struct SectionOf {
  int row_tiles, instances, tile_rows, step_cols, shift, cols, most, sms;  ///< row r stands at column r + shift

  bool operator==(const SectionOf& x) const {
    return row_tiles == x.row_tiles && instances == x.instances && tile_rows == x.tile_rows && step_cols == x.step_cols && shift == x.shift &&
           cols == x.cols && most == x.most && sms == x.sms;
  }
};

/// @brief How many heads to work on side by side under a causal mask, so that the multiprocessors end at about the same time.
/// The tiles go around as `FlashPlace` and `FlashTurns` say; every number up to `most` is tried. The last answer of a thread is kept.
inline int even_section(const SectionOf& of) {
  static thread_local SectionOf last = {};
  static thread_local int answer = 1;
  constexpr int kMostTiles = 1 << 13, kMostTried = 40, kMostSms = 256;
  const int64_t tiles = int64_t(of.row_tiles) * of.instances;
  if (of == last) return answer;
  last = of, answer = 1;
  if (tiles > kMostTiles || of.sms > kMostSms || tiles <= of.sms) return answer;
  int64_t best = INT64_MAX;
  for (int section = 1; section <= of.most && section <= kMostTried; ++section) {
    int64_t load[kMostSms] = {}, longest = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int of_section = section * of.row_tiles, first = tile / of_section * section, left = of.instances - first;
      const int row_tile = of.row_tiles - 1 - tile % of_section / (left < section ? left : section);
      const int end = (row_tile + 1) * of.tile_rows + of.shift, seen = end < of.cols ? (end > 0 ? end : 0) : of.cols;
      const int round = tile / of.sms, block = tile % of.sms;
      int64_t& mine = load[round & 1 ? of.sms - 1 - block : block];
      mine += 10 * ((seen + of.step_cols - 1) / of.step_cols) + 7;  // a tile costs as much as 0.7 steps beside its steps
      longest = mine > longest ? mine : longest;
    }
    if (longest < best) best = longest, answer = section;
  }
  return answer;
}

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_SECTION_H_
