/// @file amx.h
/// @brief The matrix unit of x86 processors (AMX), used for f32: tiles, and numbers of f32 as sums of three of bf16.
///
/// The unit multiplies tiles of 16 rows of 64 bytes: 16 x 32 by 32 x 16 numbers of bf16, which it adds up in f32. An f32 has 24 significant bits,
/// a bf16 8 of them, so that x = x1 + x2 + x3 exactly, and of the nine products of two such sums six matter: what the others add is below
/// 2^-23 of the product. Planes are cut off, not rounded, so that the first one of a finite number is finite.
///
/// Not for all numbers: infinities and NaN have no such sums, and the unit takes subnormal numbers for zero, planes of small numbers among
/// them. `fits_planes` tells by the largest number of a row which rows it may be used for: then what is lost of the others is less than 2^-24 of that.
#ifndef AIT_KERNELS_CPU_AMX_H_
#define AIT_KERNELS_CPU_AMX_H_

#include <stdint.h>

#include "ait/kernels/cpu/vector.h"

#if defined(__x86_64__) && defined(__AVX512F__) && defined(__GNUC__) && __has_include(<amxbf16intrin.h>)
#define AIT_CPU_AMX 1

namespace ait::cpu::amx {

/// Rows of a tile, numbers of bf16 in a row of one, bytes of one.
inline constexpr int64_t kTileRows = 16, kTileDepth = 32, kTileBytes = 1024;

/// Numbers of bf16 that make up one of f32.
inline constexpr int64_t kPlanes = 3;

/// Bytes of the planes of 16 rows (or columns) and 32 steps of k: a tile each.
inline constexpr int64_t kStepBytes = kPlanes * kTileBytes;

typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(64), aligned(4), may_alias));

/// @brief The tile registers of a thread: eight whole tiles while this lives. The system saves 8 KiB more with a thread that holds any.
class TileRegisters {
 public:
  TileRegisters() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  ~TileRegisters() { __asm__ volatile("tilerelease" ::); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

/// @brief The largest of the bits of some numbers without their signs, taken for integers: ordered as the numbers are, infinities and NaN on top.
inline Words largest(Words most, Floats x) {
  const Words bits = reinterpret_cast<Words>(x) & 0x7fffffffu;
  return bits > most ? bits : most;
}

/// @brief Whether the planes stand for rows whose largest number has these bits: none is infinite or NaN, and not all are so small (2^-102)
/// that their third planes may be subnormal.
inline bool fits_planes(uint32_t most) { return most < 0x7f800000u && (most == 0 || most >= uint32_t(127 - 102) << 23); }

/// @brief The planes of 16 pairs of numbers, each pair side by side; planes are `kTileBytes` apart.
inline __attribute__((always_inline)) void split(Floats x, Floats y, char* to) {
#pragma GCC unroll 3
  for (int plane = 0; plane < kPlanes; ++plane) {
    const Words high_x = reinterpret_cast<Words>(x) & 0xffff0000u, high_y = reinterpret_cast<Words>(y) & 0xffff0000u;
    *reinterpret_cast<Words*>(to + plane * kTileBytes) = (reinterpret_cast<Words>(x) >> 16) | high_y;
    x -= reinterpret_cast<Floats>(high_x), y -= reinterpret_cast<Floats>(high_y);
  }
}

// Registers: 0..3 are sums (row tile * 2 + column tile), 4 and 5 tiles of a, 6 and 7 of b.
#define AIT_TILE_LOAD(tile, from) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(int64_t(64)) : "memory")
#define AIT_TILE_STORE(tile, to, pitch) __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(pitch) : "memory")
#define AIT_TILE_MULTIPLY(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define AIT_TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)

/// @brief One or two tiles of a by two of b, all planes, for `steps` steps of 32: `out` is [16 * kRowTiles, 32].
/// Each step reads each tile from the second-level cache once, which has not much more to give than that.
/// @param a0,a1,b0,b1 tiles: [steps][kPlanes][kTileBytes]; @param pitch bytes from one row of `out` to the next
/// @param beside work of the vector unit, which is idle meanwhile: `begin()`, `part<0>()` to `part<3>()` and `end()` are called in each step
template <int kRowTiles, class Beside>
inline void multiply_tiles(const char* a0, const char* a1, const char* b0, const char* b1, int64_t steps, float* out, int64_t pitch,
                           Beside& beside) {
  const auto load_a = [&](int64_t at) __attribute__((always_inline)) {
    AIT_TILE_LOAD(4, a0 + at);
    if constexpr (kRowTiles > 1) AIT_TILE_LOAD(5, a1 + at);
  };
  const auto load_b = [&](int64_t at) __attribute__((always_inline)) {
    AIT_TILE_LOAD(6, b0 + at);
    AIT_TILE_LOAD(7, b1 + at);
  };
  const auto multiply = []() __attribute__((always_inline)) {
    AIT_TILE_MULTIPLY(0, 4, 6);
    AIT_TILE_MULTIPLY(1, 4, 7);
    if constexpr (kRowTiles > 1) {
      AIT_TILE_MULTIPLY(2, 5, 6);
      AIT_TILE_MULTIPLY(3, 5, 7);
    }
  };
  AIT_TILE_ZERO(0);
  AIT_TILE_ZERO(1);
  AIT_TILE_ZERO(2);
  AIT_TILE_ZERO(3);
  const int64_t end = steps * kStepBytes;
#pragma GCC unroll 1
  for (int64_t at = 0; at < end; at += kStepBytes) {
    beside.begin();
    load_a(at), load_b(at + 2 * kTileBytes), multiply(), beside.template part<0>();
    load_b(at + kTileBytes), multiply(), beside.template part<1>();
    load_a(at + kTileBytes), multiply(), beside.template part<2>();
    load_b(at), multiply(), beside.template part<3>();
    load_a(at + 2 * kTileBytes), multiply(), beside.end();
    load_a(at), multiply();
  }
  AIT_TILE_STORE(0, out, pitch);
  AIT_TILE_STORE(1, out + kTileRows, pitch);
  if constexpr (kRowTiles > 1) {
    float* const low = out + kTileRows * pitch / int64_t(sizeof(float));
    AIT_TILE_STORE(2, low, pitch);
    AIT_TILE_STORE(3, low + kTileRows, pitch);
  }
}

/// @brief Two tiles of a by two of b, without planes: `out` is [32, 32], its rows side by side.
/// @param a0,a1 16 rows each, `pitch_a` bytes apart; @param next_a bytes from a step to the next
/// @param last_a tiles of the last step of a0 and a1, side by side, null where it lies like the others; @param b0,b1 tiles: [steps][kTileBytes]
/// @param beside called with each step: work of the other units
template <class Beside>
inline void multiply_bf16(const char* a0, const char* a1, int64_t pitch_a, int64_t next_a, const char* last_a, const char* b0, const char* b1,
                          int64_t steps, float* out, const Beside& beside) {
  AIT_TILE_ZERO(0);
  AIT_TILE_ZERO(1);
  AIT_TILE_ZERO(2);
  AIT_TILE_ZERO(3);
#pragma GCC unroll 1
  for (int64_t step = 0; step < steps; ++step) {
    if (step == steps - 1 && last_a != nullptr) a0 = last_a, a1 = last_a + kTileBytes, pitch_a = 64;
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4" ::"r"(a0), "r"(pitch_a) : "memory");
    AIT_TILE_LOAD(6, b0);
    AIT_TILE_LOAD(7, b1);
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm5" ::"r"(a1), "r"(pitch_a) : "memory");
    AIT_TILE_MULTIPLY(0, 4, 6);
    AIT_TILE_MULTIPLY(1, 4, 7);
    AIT_TILE_MULTIPLY(2, 5, 6);
    AIT_TILE_MULTIPLY(3, 5, 7);
    a0 += next_a, a1 += next_a, b0 += kTileBytes, b1 += kTileBytes;
    beside(step);
  }
  const int64_t pitch = 2 * kTileRows * int64_t(sizeof(float));
  AIT_TILE_STORE(0, out, pitch);
  AIT_TILE_STORE(1, out + kTileRows, pitch);
  AIT_TILE_STORE(2, out + 2 * kTileRows * kTileRows, pitch);
  AIT_TILE_STORE(3, out + 2 * kTileRows * kTileRows + kTileRows, pitch);
}

#undef AIT_TILE_LOAD
#undef AIT_TILE_STORE
#undef AIT_TILE_MULTIPLY
#undef AIT_TILE_ZERO

}  // namespace ait::cpu::amx

#endif
#endif  // AIT_KERNELS_CPU_AMX_H_
