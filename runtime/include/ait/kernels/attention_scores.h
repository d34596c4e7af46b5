/// @file attention_scores.h
/// @brief The functor that changes the scaled scores of attention, for the kernels of all targets.
#ifndef AIT_KERNELS_ATTENTION_SCORES_H_
#define AIT_KERNELS_ATTENTION_SCORES_H_

#include "ait/types.h"

namespace ait {

/// @brief How the elements of an operand lie along the columns of the scores.
enum class ScoreColumns {
  kNone,  ///< one element for all columns
  kUnit,  ///< next to each other
  kAny,   ///< a stride apart
};

/// @brief Adds a mask to the scores.
struct AddMask {
  template <class A, class M>
  static AIT_FN void apply(A score, M mask, A& out) {
    out = score + static_cast<A>(mask);
  }
};

/// @brief Changes nothing; for scales that are not above 0, which a kernel cannot apply after it has looked for the largest score.
struct SameScores {
  template <class A>
  static AIT_FN void apply(A score, A& out) {
    out = score;
  }
};

/// @brief Changes scores as `F` does; the results are the weights, with 0 for hidden columns.
template <class F>
struct NoSoftmax : F {};

/// @brief Whether the weights of a row are a softmax of its scores, changed by `F`.
template <class F>
inline constexpr bool kHasSoftmax = true;
template <class F>
inline constexpr bool kHasSoftmax<NoSoftmax<F>> = false;

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_SCORES_H_
