/// @file operator.h
/// @brief The arguments of kernels of operators from outside of the package: tensors with their sizes; and the calls of these kernels.
#ifndef AIT_OPERATOR_H_
#define AIT_OPERATOR_H_

#include <stdint.h>

#include <array>
#include <exception>
#include <type_traits>

#include "ait/context.h"
#include "ait/float8.h"
#include "ait/types.h"
#if defined(AIT_GPU)
#include "ait/gpu/gpu.h"
#endif

namespace ait {

/// @brief A tensor of `T` with `Rank` dims; `const T` if it is only read. May be passed to a GPU kernel by value.
template <class T, int Rank>
struct Tensor {
  using value_type = std::remove_const_t<T>;
  static constexpr int rank = Rank;

  T* data;
  int64_t shape[Rank > 0 ? Rank : 1];
  int64_t strides[Rank > 0 ? Rank : 1];  ///< in elements; those of a row-major tensor unless the kernel is `strided`

  /// @brief The number of elements.
  AIT_FN int64_t elements() const {
    int64_t count = 1;
    for (int i = 0; i < Rank; ++i) count *= shape[i];
    return count;
  }

  /// @brief The element at `indices`, one for each dim.
  template <class... Index>
  AIT_FN T& operator()(Index... indices) const {
    static_assert(sizeof...(Index) == Rank, "an index for each dim");
    const int64_t index[Rank > 0 ? Rank : 1] = {static_cast<int64_t>(indices)...};
    int64_t offset = 0;
    for (int i = 0; i < Rank; ++i) offset += index[i] * strides[i];
    return data[offset];
  }

  /// @brief Element `i` of a row-major tensor.
  AIT_FN T& operator[](int64_t i) const { return data[i]; }
};

namespace detail {

/// @brief Passes failures on, and remembers that there was one: an author may not return the status.
struct Failures {
  const ait_host_v1* host;
  int32_t status = 0;

  static int32_t keep(void* self, const char* message) {
    auto* failures = static_cast<Failures*>(self);
    return failures->status = failures->host->fail(failures->host->self, message);
  }
};

}  // namespace detail

/// @brief Calls the function of an operator with a context; returns its status. A failure that it reports, an exception and an error of
/// a launch on a GPU fail the run, whether or not it returns a status.
template <class Call>
int32_t call_operator(const Context& run, Call&& call) {
  detail::Failures failures{run.host};
  const ait_host_v1 host{&failures, &detail::Failures::keep};
  const Context ctx{run.stream, &host};
  int32_t status = 0;
  try {
    if constexpr (std::is_void_v<decltype(call(ctx))>) {
      call(ctx);
    } else {
      status = static_cast<int32_t>(call(ctx));
    }
  } catch (const std::exception& error) {
    return ctx.fail(error.what());
  } catch (...) {
    return ctx.fail("the kernel threw something that is no std::exception");
  }
  if (status == 0) status = failures.status;
#if defined(AIT_GPU)
  if (status == 0) {
    const gpu::Error error = gpu::take_error();
    if (error != gpu::kSuccess) return ctx.fail(gpu::error_text(error));
  }
#endif
  return status;
}

#if defined(AIT_GPU)
/// @brief The stream to launch on.
inline gpu::Stream stream_of(const Context& ctx) { return static_cast<gpu::Stream>(ctx.stream); }
#endif

}  // namespace ait

#endif  // AIT_OPERATOR_H_
