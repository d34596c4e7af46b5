/// @file inspect.h
/// @brief The results of the launches of a run: counts of NaN and infinite values, and the range of the others.
#ifndef AIT_RUNTIME_INSPECT_H_
#define AIT_RUNTIME_INSPECT_H_

#include <cstdint>
#include <vector>

#include "model.h"

namespace ait::runtime {

/// @brief A result of a launch. The range and the mean are those of its finite values; they are zero where there is none.
struct ResultValues {
  int launch, result;
  int64_t elements, nans, infinities;
  double lowest, highest, mean;
};

/// @brief Runs the model once, waits after each launch, and reads its results. Returns the shapes of the outputs, like `Model::run`.
std::vector<int64_t> inspect(Model& model, const Tensors& inputs, const Tensors& outputs, const RunOptions& options,
                             std::vector<ResultValues>& values);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_INSPECT_H_
