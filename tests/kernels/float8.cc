#include "ait/float8.h"
#include "ait/math.h"

using ait::cast;
using ait::convert;

template <class T>
static void round_all(const double* x, int64_t n, uint8_t* bits) {
  for (int64_t i = 0; i < n; ++i) bits[i] = ait::bit_cast<uint8_t>(convert<T>(x[i]));
}
template <class T>
static void read_all(float* values) {
  for (int i = 0; i < 256; ++i) values[i] = ait::to_float(ait::bit_cast<T>(static_cast<uint8_t>(i)));
}
#define AIT_FLOAT8(NAME)                                                                                      \
  extern "C" void round_##NAME(const double* x, int64_t n, uint8_t* bits) { round_all<ait::NAME>(x, n, bits); } \
  extern "C" void read_##NAME(float* values) { read_all<ait::NAME>(values); }
AIT_FLOAT8(float8_e4m3fn)
AIT_FLOAT8(float8_e5m2)
AIT_FLOAT8(float8_e8m0fnu)

template <class T>
static void saturate_all(const float* x, int64_t n, uint16_t* bits) {
  for (int64_t i = 0; i < n; ++i) bits[i] = T::saturated(x[i], x[n - 1 - i]);
}
extern "C" void saturate_float8_e4m3fn(const float* x, int64_t n, uint16_t* bits) { saturate_all<ait::float8_e4m3fn>(x, n, bits); }
extern "C" void saturate_float8_e5m2(const float* x, int64_t n, uint16_t* bits) { saturate_all<ait::float8_e5m2>(x, n, bits); }

extern "C" void divide(const float* a, const float* b, int64_t n, float* q) {
  for (int64_t i = 0; i < n; ++i) q[i] = ait::div_float8(a[i], b[i]);
}

extern "C" void to_4_bits(const float* x, int64_t n, int8_t* i4, uint8_t* ui4) {
  for (int64_t i = 0; i < n; ++i) i4[i] = cast<int8_t>(cast<ait::int4_t>(x[i])), ui4[i] = cast<uint8_t>(cast<ait::uint4_t>(x[i]));
}
