/// @file further.h
/// @brief The types of an epilogue's operands, which distinguish tensors that are read from results that are written.
#ifndef AIT_KERNELS_FURTHER_H_
#define AIT_KERNELS_FURTHER_H_

namespace ait {

/// @brief In the place of an operand's element type: a further result of the epilogue, with elements of type `D`. Further results come after
/// all operands.
template <class D>
struct Further {};

/// @brief The element type that stands in a list of operands for a buffer: of elements that are read, or `Further`.
template <class T>
struct OperandOf {
  using Type = Further<T>;
};
template <class T>
struct OperandOf<const T> {
  using Type = T;
};

}  // namespace ait
#endif  // AIT_KERNELS_FURTHER_H_
