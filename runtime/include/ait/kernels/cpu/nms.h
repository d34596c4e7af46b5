/// @file nms.h
/// @brief Non-maximum suppression of boxes, the best first.
#ifndef AIT_KERNELS_CPU_NMS_H_
#define AIT_KERNELS_CPU_NMS_H_

#include <stdint.h>

#include <vector>

#include "ait/context.h"
#include "ait/kernels/box.h"
#include "ait/kernels/cpu/block.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief keep[b, i] = whether box i of batch b remains; boxes are [batch, count, 4], `valid` [batch, count] or null.
template <class T>
int32_t nms(const Context&, int64_t batch, int64_t count, const T* boxes, const bool* valid, double iou, bool* keep) {
  using A = compute_t<T>;
  parallel_tasks(batch, batch > 1 && batch * count >= kParallelElements / 64 ? num_threads() : 1, [&](int64_t b) {
    std::vector<Box<A>> kept;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = b * count + i;
      const Box<A> box = Box<A>::read(boxes + 4 * at);
      bool remains = valid == nullptr || valid[at];
      for (size_t k = 0; remains && k < kept.size(); ++k) remains = !overlap(kept[k], box, static_cast<A>(iou));
      if (remains) kept.push_back(box);
      keep[at] = remains;
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_NMS_H_
