/// @file vector.h
/// @brief The vector registers of the processor that is compiled for.
#ifndef AIT_KERNELS_CPU_VECTOR_H_
#define AIT_KERNELS_CPU_VECTOR_H_

namespace ait::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kGemmRows = 14;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32, kGemmRows = 6;
#else
inline constexpr int kVectorBytes = 16, kGemmRows = 6;
#endif

template <class A>
struct VectorOf {
  typedef A Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(A)), may_alias));
};
template <class A>
using Vector = typename VectorOf<A>::Type;
template <class A>
inline constexpr int kLanes = kVectorBytes / int(sizeof(A));

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_VECTOR_H_
