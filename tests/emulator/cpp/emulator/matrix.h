/// @file matrix.h
/// @brief The matrix instructions of a warp: fragments are spread over its lanes as the PTX and CDNA manuals say.
#ifndef AIT_EMULATOR_MATRIX_H_
#define AIT_EMULATOR_MATRIX_H_

#include "emulator/emulator.h"

namespace ait::emulator {

enum class Narrow { half, bfloat16, s8, u8, e4m3, e5m2 };

/// @brief The bytes of an element.
constexpr int bytes_of(Narrow type) { return type == Narrow::half || type == Narrow::bfloat16 ? 2 : 1; }
constexpr bool is_integer(Narrow type) { return type == Narrow::s8 || type == Narrow::u8; }

/// @brief `bits` as a number.
float widen(uint16_t bits, Narrow type);

/// @brief A sum of products of 8-bit floats as tensor cores of sm_89 and sm_90 keep it: cut to 14 bits.
float short_sum(double sum);

/// @brief ldmatrix.x4: lane l gives the address of row l % 8 of matrix l / 8, and gets of each matrix i, in r[i], elements 2 (l % 4) and the
/// one behind it of row l / 4; of column l / 4 if `transposed`.
void load_matrices(uint32_t (&r)[4], uint32_t address, bool transposed, Site site);

/// @brief stmatrix.x4: the reverse of `load_matrices`.
void store_matrices(uint32_t address, const uint32_t (&r)[4], Site site);

/// @brief movmatrix.m8n8.trans: lane l holds elements 2 (l % 4) + {0, 1} of row l / 4, and gets those of the transposed matrix.
uint32_t transpose_8x8(uint32_t word, Site site);

/// @brief mma.m16n8k16: c += a @ b. With g = l / 4 and t = l % 4, lane l holds a[g + 8 (i % 2)][2 t + 8 (i / 2) + {0, 1}] in a[i],
/// b[2 t + 8 i + {0, 1}][g] in b[i], c[g + 8 (i / 2)][2 t + i % 2] in c[i].
void multiply_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow type, Site site);

/// @brief mma.m16n8k8 of TF32: lane l holds a[g + 8 (i % 2)][t + 4 (i / 2)] in a[i], b[t + 4 i][g] in b[i], c as above. Bits that TF32 does not
/// have are ignored.
void multiply_16x8x8(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Site site);

/// @brief mma.m16n8k32 of 8-bit integers or floats: lane l holds a[g + 8 (i % 2)][4 t + 16 (i / 2) + {0 .. 3}] in a[i], b[4 t + 16 i + {0 .. 3}][g] in b[i],
/// c as above. Sums of integers wrap.
void multiply_16x8x32(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow a_type, Narrow b_type, Site site);
void multiply_16x8x32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow a_type, Narrow b_type, Site site);

/// @brief mfma.f32.SxSxD of CDNA, S 32 or 16 and D 256 / S: c += a @ b. With g = l / S, lane l holds a[l % S][4 g + i] and b[4 g + i][l % S]
/// in element i of `a` and `b`, and c[8 (r / 4) + 4 g + r % 4][l % S] in c[r]. As on gfx90a, a subnormal element or sum is taken for zero.
void multiply_mfma(int size, float* c, const uint16_t (&a)[4], const uint16_t (&b)[4], Narrow type, Site site);

/// @brief mfma.i32.SxSxD of gfx90a: as `multiply_mfma`, of signed bytes, with sums that wrap.
void multiply_mfma_bytes(int size, int32_t* c, const uint8_t (&a)[4], const uint8_t (&b)[4], Site site);

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_MATRIX_H_
