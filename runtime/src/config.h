/// @file config.h
/// @brief Settings of the process, given by Python before the first model is made.
#ifndef AIT_RUNTIME_CONFIG_H_
#define AIT_RUNTIME_CONFIG_H_

#include <string>
#include <vector>

namespace ait::runtime {

void set_gemm_library_candidates(std::vector<std::string> candidates);
void set_attention_library_candidates(std::vector<std::string> candidates);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_CONFIG_H_
