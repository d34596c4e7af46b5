/// @file external.h
/// @brief The arguments of operators with their own templates: pointers with `raw()`, and the stream.
#ifndef AIT_EXTERNAL_H_
#define AIT_EXTERNAL_H_

#include "ait/operator.h"

/// @brief The stream of a call on the CPU, where there is none.
using cpuStream_t = void*;

namespace ait::external {

/// @brief An element of 16 bits: templates take the address of `raw()` and give it a type of their own.
struct Raw16 {
  uint16_t bits;

  uint16_t& raw() { return bits; }
};

template <class T>
using Element = std::conditional_t<is_narrow_float<T>, Raw16, T>;

/// @brief A buffer as templates expect it: not const, floats of 16 bits with `raw()`.
template <class T>
Element<T>* pointer(const T* data) {
  return reinterpret_cast<Element<T>*>(const_cast<T*>(data));
}

/// @brief The stream of the run.
#if defined(AIT_GPU)
inline gpu::Stream stream(const Context& ctx) { return stream_of(ctx); }
#else
inline cpuStream_t stream(const Context& ctx) { return ctx.stream; }
#endif

}  // namespace ait::external

#endif  // AIT_EXTERNAL_H_
