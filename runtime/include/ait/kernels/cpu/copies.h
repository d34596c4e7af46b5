/// @file copies.h
/// @brief Several copies between strided buffers at once.
#ifndef AIT_KERNELS_CPU_COPIES_H_
#define AIT_KERNELS_CPU_COPIES_H_

#include <stddef.h>
#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/copy.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief The copies of all pieces, none of which overlaps another. Threads share the pieces; a large one they share among them.
template <size_t kBytes, size_t kCount>
int32_t copies(const Context&, const CopyPiece<kBytes> (&pieces)[kCount]) {
  int64_t bytes = 0, largest = 0;
  for (const CopyPiece<kBytes>& piece : pieces) {
    const int64_t own = piece.elements() * static_cast<int64_t>(kBytes);
    bytes += own;
    largest = own > largest ? own : largest;
  }
  const bool shared = bytes >= detail::kParallelBytes && largest < detail::kParallelBytes;
  parallel_tasks(static_cast<int64_t>(kCount), shared ? num_threads() : 1, [&](int64_t i) { copy(pieces[i]); });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_COPIES_H_
