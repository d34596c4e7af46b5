/// @file group_norm.h
/// @brief From the statistics of a group norm, a mean and a factor for each channel.
#ifndef AIT_KERNELS_CPU_GROUP_NORM_H_
#define AIT_KERNELS_CPU_GROUP_NORM_H_

#include <math.h>
#include <stdint.h>

#include "ait/context.h"
#include "ait/types.h"

namespace ait::cpu {

/// @brief The mean and the factor of each channel: the normalised and scaled element is (x - mean) * factor.
/// @param found the means of all units, then their variances; a group has `per_group` units of `channels` channels
/// @param factors the mean for each channel of each batch, then the factor
template <class A, class T>
int32_t group_factors(const Context&, int64_t batch, const A* found, int64_t groups, int64_t per_group, int64_t channels, const T* scale,
                      double eps, A* factors) {
  const int64_t units = batch * groups * per_group, of_group = per_group * channels;
  for (int64_t g = 0; g < batch * groups; ++g) {
    const A* const means = found + g * per_group;
    const A* const variances = means + units;
    A mean = 0, variance = 0;
    for (int64_t u = 0; u < per_group; ++u) mean += means[u];
    mean /= static_cast<A>(per_group);
    for (int64_t u = 0; u < per_group; ++u) variance += variances[u] + (means[u] - mean) * (means[u] - mean);
    const A rest = A(1) / static_cast<A>(::sqrt(static_cast<double>(variance / static_cast<A>(per_group)) + eps));
    for (int64_t c = 0; c < of_group; ++c) {
      const int64_t channel = g % groups * of_group + c;
      factors[g * of_group + c] = mean;
      factors[units * channels + g * of_group + c] = scale == nullptr ? rest : rest * static_cast<A>(static_cast<compute_t<T>>(scale[channel]));
    }
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GROUP_NORM_H_
