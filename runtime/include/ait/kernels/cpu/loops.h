/// @file loops.h
/// @brief Accesses of generated loops, and the error for an index that is no index.
#ifndef AIT_KERNELS_CPU_LOOPS_H_
#define AIT_KERNELS_CPU_LOOPS_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tuple>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/loops.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief 0, which compilers do not know. GCC 12 reads wrong elements in a vectorised loop if an index is a converted condition,
///        as in `table[x > 0]`; `(x > 0) ^ hidden_zero()` is none.
inline int64_t hidden_zero() {
  int64_t zero = 0;
  __asm__("" : "+r"(zero));
  return zero;
}

/// @brief Reads neighbours in their compute type.
template <class T, int kLanes>
inline __attribute__((always_inline)) void load_lanes(const T* from, compute_t<T> (&to)[kLanes]) {
  widen(from, kLanes, to);
}

/// @brief Writes neighbours, rounded to their type.
template <class T, int kLanes>
inline __attribute__((always_inline)) void store_lanes(T* to, const compute_t<T> (&from)[kLanes]) {
  narrow(from, kLanes, to);
}

/// @brief The same for conditions, which are bytes that are 0 or 1: compilers make no vectors of arrays of `bool`.
template <int kLanes>
inline __attribute__((always_inline)) void load_lanes(const bool* from, uint8_t (&to)[kLanes]) {
  memcpy(to, from, kLanes);
}
template <int kLanes>
inline __attribute__((always_inline)) void store_lanes(bool* to, const uint8_t (&from)[kLanes]) {
  memcpy(to, from, kLanes);
}

/// @brief Joins the states of a fold in lanes, halves of them at a time.
template <class F, class A, int kLanes>
inline __attribute__((always_inline)) A join_lanes(const A (&states)[kLanes]) {
  A joined[kLanes];
  for (int j = 0; j < kLanes; ++j) joined[j] = states[j];
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC ivdep
    for (int j = 0; j < half; ++j) joined[j] = F::join(joined[j], joined[j + half]);
  }
  return joined[0];
}

/// @brief An index outside of its dim, if a run has met any.
struct Outside {
  bool found = false;
  int64_t value = 0, dim = 0, size = 0;
  const char* says = nullptr;  // the error, or null for the usual one
  std::atomic_flag is_changing = ATOMIC_FLAG_INIT;

  /// @brief Keeps the index if it is outside of its dim; of several, the smallest of the first dim, whatever the order of the threads.
  ///        Threads may call it at the same time.
  template <class T>
  void note(T index, int64_t of, int64_t elements, const char* text = nullptr) {
    if (within(index, elements)) return;
    while (is_changing.test_and_set(std::memory_order_acquire)) {
    }
    if (!found || std::make_tuple(of, elements, static_cast<int64_t>(index)) < std::make_tuple(dim, size, value)) {
      found = true;
      value = static_cast<int64_t>(index);
      dim = of;
      size = elements;
      says = text;
    }
    is_changing.clear(std::memory_order_release);
  }
  int32_t fail(const Context& ctx) const {
    char message[400];
    if (says != nullptr) {
      fill_in(message, sizeof message);
      return ctx.fail(message);
    }
    snprintf(message, sizeof message, "ait.at: index %lld is outside of dim %lld, which has %lld elements", static_cast<long long>(value),
             static_cast<long long>(dim), static_cast<long long>(size));
    return ctx.fail(message);
  }

  /// @brief The text of the error with the numbers in place of `{index}`, `{stored}` and `{size}`, cut where it is too long.
  void fill_in(char* to, size_t room) const {
    const struct {
      const char* word;
      int64_t number;
    } words[] = {{"{index}", value}, {"{stored}", value < 0 ? value - size : value}, {"{size}", size}};
    size_t used = 0;
    for (const char* at = says; *at != 0 && used + 1 < room;) {
      bool known = false;
      for (const auto& w : words) {
        if (known || strncmp(at, w.word, strlen(w.word)) != 0) continue;
        const int written = snprintf(to + used, room - used, "%lld", static_cast<long long>(w.number));
        used = written < static_cast<int>(room - used) ? used + static_cast<size_t>(written) : room - 1;
        at += strlen(w.word);
        known = true;
      }
      if (!known) to[used++] = *at++;
    }
    to[used] = 0;
  }
};

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_LOOPS_H_
