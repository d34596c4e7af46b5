/// @file warpgroup.h
/// @brief The matrix instruction of a warpgroup, which goes on beside its threads until it is waited for.
///
/// A product is computed when it starts. Its accumulators hold a mark that is no number until their group is waited for, and whoever touches
/// them, or an operand in registers, or writes an operand in shared memory before, fails.
#ifndef AIT_EMULATOR_WARPGROUP_H_
#define AIT_EMULATOR_WARPGROUP_H_

#include "emulator/matrix.h"

namespace ait::emulator {

/// @brief wgmma.mma_async m64nN, of K of 32 bytes: what one thread brings.
struct Product {
  void* d;                   ///< N / 2 registers of float, or of int32_t for integers: the layout is that of wgmma.cuh
  int columns;               ///< N
  const uint32_t* a_registers;  ///< four registers, as `multiply_16x8x16` or `multiply_16x8x32` has them; null if `a` describes the operand
  uint64_t a, b;             ///< matrix descriptors
  bool a_transposed, b_transposed;  ///< M or N is the contiguous dim
  bool accumulate;
  Narrow a_type, b_type;
};

void wgmma(const Product& product, Site site);
void wgmma_fence(Site site);
void wgmma_commit(Site site);
void wgmma_wait(int pending, Site site);
/// @brief setmaxnreg, which all threads of a warpgroup must reach.
void set_registers(int count, Site site);

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_WARPGROUP_H_
