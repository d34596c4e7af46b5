/// @file warp.cc
/// @brief What the lanes of a warp exchange.
#include "emulator/emulator.h"

namespace ait::emulator {
namespace {
struct Word {
  uint64_t value, result;
  int from;
};

void exchange_words(void** brought, int count) {
  for (int i = 0; i < count; ++i) {
    auto* mine = static_cast<Word*>(brought[i]);
    if (mine == nullptr) continue;
    const bool there = mine->from >= 0 && mine->from < count && brought[mine->from] != nullptr;
    mine->result = there ? static_cast<Word*>(brought[mine->from])->value : 0xaaaaaaaaaaaaaaaaull;
  }
}

void count_votes(void** brought, int count) {
  uint64_t votes = 0;
  for (int i = 0; i < count; ++i) {
    if (brought[i] != nullptr && static_cast<Word*>(brought[i])->value != 0) votes |= uint64_t(1) << i;
  }
  for (int i = 0; i < count; ++i) {
    if (brought[i] != nullptr) static_cast<Word*>(brought[i])->result = votes;
  }
}
}  // namespace

uint64_t exchange(uint64_t word, int from, const char* what, Site site, uint64_t lanes) {
  Word mine{word, 0, from};
  meet(Scope::warp, what, false, exchange_words, &mine, site, lanes);
  return mine.result;
}

uint64_t ballot(bool yes, const char* what, Site site, uint64_t lanes) {
  Word mine{yes, 0, 0};
  meet(Scope::warp, what, false, count_votes, &mine, site, lanes);
  return mine.result;
}

}  // namespace ait::emulator
