/// @file matrix.cc
#include "emulator/matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

namespace ait::emulator {
namespace {
struct Rows {
  uint32_t address;
  uint32_t* result;
};

uint16_t element(void** brought, int matrix, int row, int col) {
  const auto& lane = *static_cast<Rows*>(brought[matrix * 8 + row]);
  uint16_t bits;
  memmove(&bits, static_cast<char*>(shared_pointer(lane.address)) + 2 * col, 2);
  return bits;
}

template <bool kTransposed>
void spread(void** brought, int) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      uint32_t pair = 0;
      for (int e = 0; e < 2; ++e) {
        const int along = 2 * (lane % 4) + e, across = lane / 4;
        pair |= uint32_t(kTransposed ? element(brought, i, along, across) : element(brought, i, across, along)) << (16 * e);
      }
      static_cast<Rows*>(brought[lane])->result[i] = pair;
    }
  }
}

/// Every lane gets the addresses of all.
void tell_addresses(void** brought, int) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* addresses = static_cast<uint32_t*>(brought[lane]);
    for (int i = 0; i < 4; ++i) addresses[1 + i] = *static_cast<uint32_t*>(brought[i * 8 + lane / 4]);
  }
}

void transpose_words(void** brought, int) {
  uint16_t matrix[8][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 2; ++e) matrix[lane / 4][2 * (lane % 4) + e] = uint16_t(*static_cast<uint32_t*>(brought[lane]) >> (16 * e));
  }
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t word = 0;
    for (int e = 0; e < 2; ++e) word |= uint32_t(matrix[2 * (lane % 4) + e][lane / 4]) << (16 * e);
    *static_cast<uint32_t*>(brought[lane]) = word;
  }
}

struct Fragment {
  float* c;
  uint32_t a[4], b[2];
  Narrow type;
};

/// Element `index` (0 or 1) of a register.
float part(uint32_t word, int index, Narrow type) { return widen(uint16_t(word >> (16 * index)), type); }

void multiply(void** brought, int) {
  float a[16][16], b[16][8];
  const Narrow type = static_cast<Fragment*>(brought[0])->type;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<Fragment*>(brought[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < 4; ++i) a[g + 8 * (i % 2)][2 * t + 8 * (i / 2) + e] = part(mine.a[i], e, type);
      for (int i = 0; i < 2; ++i) b[2 * t + 8 * i + e][g] = part(mine.b[i], e, type);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* c = static_cast<Fragment*>(brought[lane])->c;
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2;
      double sum = c[i];
      for (int k = 0; k < 16; ++k) sum += double(a[row][k]) * double(b[k][col]);
      c[i] = float(sum);
    }
  }
}

float tf32(uint32_t bits) {
  float value;
  bits &= 0xffffe000u;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void multiply_tf32(void** brought, int) {
  float a[16][8], b[8][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<Fragment*>(brought[lane]);
    for (int i = 0; i < 4; ++i) a[lane / 4 + 8 * (i % 2)][lane % 4 + 4 * (i / 2)] = tf32(mine.a[i]);
    for (int i = 0; i < 2; ++i) b[lane % 4 + 4 * i][lane / 4] = tf32(mine.b[i]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* c = static_cast<Fragment*>(brought[lane])->c;
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2;
      double sum = c[i];
      for (int k = 0; k < 8; ++k) sum += double(a[row][k]) * double(b[k][col]);
      c[i] = float(sum);
    }
  }
}

template <class Sum>
struct ByteFragment {
  Sum* c;
  uint32_t a[4], b[2];
  Narrow a_type, b_type;
};

/// Byte `index` of a register as a number.
float byte_part(uint32_t word, int index, Narrow type) { return widen(uint16_t(word >> (8 * index) & 0xffu), type); }

int32_t sum_of_bytes(int32_t c, double products) { return int32_t(uint32_t(c) + uint32_t(int64_t(products))); }
float sum_of_bytes(float c, double products) { return short_sum(double(c) + products); }

template <class Sum>
void multiply_bytes(void** brought, int) {
  float a[16][32], b[32][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<ByteFragment<Sum>*>(brought[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int e = 0; e < 4; ++e) {
      for (int i = 0; i < 4; ++i) a[g + 8 * (i % 2)][4 * t + 16 * (i / 2) + e] = byte_part(mine.a[i], e, mine.a_type);
      for (int i = 0; i < 2; ++i) b[4 * t + 16 * i + e][g] = byte_part(mine.b[i], e, mine.b_type);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    Sum* c = static_cast<ByteFragment<Sum>*>(brought[lane])->c;
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2;
      double products = 0;
      for (int k = 0; k < 32; ++k) products += double(a[row][k]) * double(b[k][col]);
      c[i] = sum_of_bytes(c[i], products);
    }
  }
}

struct Square {
  int size;
  float* c;
  uint16_t a[4], b[4];
  Narrow type;
};

/// What gfx90a takes a number for: zero if it is below the smallest normal one of its type.
float flushed(float x, float smallest) { return fabsf(x) < smallest ? copysignf(0.f, x) : x; }

/// Multiplies squares whose registers lie in the lanes as AMD's tables say: `read` converts an element of a or b, and `add` adds the product of
/// a row of a and a column of b to an element of c.
template <class Lane, class T, class Read, class Add>
void multiply_lanes(void** brought, const Read& read, const Add& add) {
  const int size = static_cast<Lane*>(brought[0])->size, depth = 256 / size;
  T a[32][16], b[32][16];
  for (int lane = 0; lane < 64; ++lane) {
    const auto& mine = *static_cast<Lane*>(brought[lane]);
    for (int i = 0; i < 4; ++i) {
      a[lane % size][4 * (lane / size) + i] = read(mine.a[i]);
      b[lane % size][4 * (lane / size) + i] = read(mine.b[i]);
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    auto* c = static_cast<Lane*>(brought[lane])->c;
    for (int r = 0; r < size * size / 64; ++r) {
      const int row = 8 * (r / 4) + 4 * (lane / size) + r % 4;
      c[r] = add(c[r], a[row], b[lane % size], depth);
    }
  }
}

void multiply_squares(void** brought, int) {
  const Narrow type = static_cast<Square*>(brought[0])->type;
  const float smallest = type == Narrow::half ? 0x1p-14f : FLT_MIN;
  multiply_lanes<Square, float>(
      brought, [=](uint16_t bits) { return flushed(widen(bits, type), smallest); },
      [](float c, const float* a, const float* b, int depth) {
        double sum = flushed(c, FLT_MIN);
        for (int k = 0; k < depth; ++k) sum += double(a[k]) * double(b[k]);
        return flushed(float(sum), FLT_MIN);
      });
}

struct ByteSquare {
  int size;
  int32_t* c;
  uint8_t a[4], b[4];
};

void multiply_byte_squares(void** brought, int) {
  multiply_lanes<ByteSquare, int32_t>(
      brought, [](uint8_t bits) { return int8_t(bits); },
      [](int32_t c, const int32_t* a, const int32_t* b, int depth) {
        uint32_t sum = uint32_t(c);
        for (int k = 0; k < depth; ++k) sum += uint32_t(a[k] * b[k]);
        return int32_t(sum);
      });
}
}  // namespace

float widen(uint16_t bits, Narrow type) {
  if (type == Narrow::half) {
    _Float16 x;
    memcpy(&x, &bits, 2);
    return float(x);
  }
  if (type == Narrow::s8) return float(int8_t(bits));
  if (type == Narrow::u8) return float(uint8_t(bits));
  if (type == Narrow::e4m3 || type == Narrow::e5m2) {
    const int mantissa = type == Narrow::e4m3 ? 3 : 2, bias = type == Narrow::e4m3 ? 7 : 15;
    const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1), top = type == Narrow::e4m3 ? 15 : 31;
    const float sign = bits & 0x80 ? -1.f : 1.f;
    if (exponent == top && type == Narrow::e5m2) return fraction == 0 ? sign * INFINITY : NAN;
    if (exponent == top && fraction == 7) return NAN;
    const int whole = exponent == 0 ? fraction : fraction + (1 << mantissa);
    return sign * ldexpf(float(whole), (exponent == 0 ? 1 : exponent) - bias - mantissa);
  }
  const uint32_t wide = uint32_t(bits) << 16;
  float x;
  memcpy(&x, &wide, 4);
  return x;
}

float short_sum(double sum) {
  if (!isfinite(sum)) return float(sum);
  int exponent;
  const double mantissa = frexp(sum, &exponent);
  return float(ldexp(trunc(ldexp(mantissa, 14)), exponent - 14));
}

void load_matrices(uint32_t (&r)[4], uint32_t address, bool transposed, Site site) {
  if (address % 16 != 0) fail("ldmatrix of a row at %u, which is not aligned to 16 bytes", address);
  check_speculative_read(shared_pointer(address), 16);  // pipelines read ahead of the last step
  Rows mine{address, r};
  meet(Scope::warp, "ldmatrix", false, transposed ? spread<true> : spread<false>, &mine, site);
}

void store_matrices(uint32_t address, const uint32_t (&r)[4], Site site) {
  if (address % 16 != 0) fail("stmatrix of a row at %u, which is not aligned to 16 bytes", address);
  uint32_t addresses[5] = {address};  // of this lane's row, and of the rows that its words belong to
  meet(Scope::warp, "stmatrix", false, tell_addresses, addresses, site);
  for (int i = 0; i < 4; ++i) {
    const uint32_t to = addresses[1 + i] + uint32_t(lane_index()) % 4 * 4;
    check_write_of_warp(to, 4);
    memcpy(shared_pointer(to), &r[i], 4);
  }
}

uint32_t transpose_8x8(uint32_t word, Site site) {
  meet(Scope::warp, "movmatrix", false, transpose_words, &word, site);
  return word;
}

void multiply_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow type, Site site) {
  Fragment mine{c, {a[0], a[1], a[2], a[3]}, {b0, b1}, type};
  meet(Scope::warp, "mma", false, multiply, &mine, site);
}

void multiply_16x8x8(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Site site) {
  Fragment mine{c, {a[0], a[1], a[2], a[3]}, {b0, b1}, Narrow::half};
  meet(Scope::warp, "mma", false, multiply_tf32, &mine, site);
}

void multiply_16x8x32(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow a_type, Narrow b_type, Site site) {
  ByteFragment<int32_t> mine{c, {a[0], a[1], a[2], a[3]}, {b0, b1}, a_type, b_type};
  meet(Scope::warp, "mma", false, multiply_bytes<int32_t>, &mine, site);
}

void multiply_16x8x32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Narrow a_type, Narrow b_type, Site site) {
  ByteFragment<float> mine{c, {a[0], a[1], a[2], a[3]}, {b0, b1}, a_type, b_type};
  meet(Scope::warp, "mma", false, multiply_bytes<float>, &mine, site);
}

void multiply_mfma(int size, float* c, const uint16_t (&a)[4], const uint16_t (&b)[4], Narrow type, Site site) {
  Square mine{size, c, {a[0], a[1], a[2], a[3]}, {b[0], b[1], b[2], b[3]}, type};
  meet(Scope::warp, "mfma", false, multiply_squares, &mine, site);
}

void multiply_mfma_bytes(int size, int32_t* c, const uint8_t (&a)[4], const uint8_t (&b)[4], Site site) {
  ByteSquare mine{size, c, {a[0], a[1], a[2], a[3]}, {b[0], b[1], b[2], b[3]}};
  meet(Scope::warp, "mfma", false, multiply_byte_squares, &mine, site);
}

}  // namespace ait::emulator
