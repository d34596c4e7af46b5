/// @file faults.h
/// @brief A hook of test builds (-DAIT_FAULTS): one allocation or launch fails. In other builds it is nothing.
#ifndef AIT_RUNTIME_FAULTS_H_
#define AIT_RUNTIME_FAULTS_H_

#if defined(AIT_FAULTS)

#include <atomic>
#include <cstdint>

namespace ait::runtime {

/// Counted down by each allocation and launch; the one that makes it 0 fails.
inline std::atomic<int64_t> calls_to_fault{-1};
inline bool is_fault() { return calls_to_fault.load() > 0 && --calls_to_fault == 0; }

}  // namespace ait::runtime

#else

namespace ait::runtime {

constexpr bool is_fault() { return false; }

}  // namespace ait::runtime

#endif

#endif  // AIT_RUNTIME_FAULTS_H_
