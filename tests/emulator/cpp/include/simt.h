/// @file simt.h
/// @brief What CUDA and HIP have in common, for the emulator: qualifiers, indices, vectors, barriers, atomics.
#ifndef AIT_EMULATOR_SIMT_H_
#define AIT_EMULATOR_SIMT_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <type_traits>

#include "emulator/emulator.h"

#define AIT_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__ __restrict
/// Static storage of this thread of the host: one block of a cluster at a time is in it. Dynamic shared memory: `AIT_DYNAMIC_SHARED`.
#define __shared__ thread_local

// Calls that the compiler does not expand are checked.
extern "C" {
extern void* memcpy(void* to, const void* from, size_t bytes) noexcept __asm__("ait_emulator_memcpy");
extern void* memset(void* to, int value, size_t bytes) noexcept __asm__("ait_emulator_memset");
}

struct uint3 {
  uint32_t x, y, z;
};
struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern const uint3 threadIdx __asm__("ait_emulator_threadIdx");
extern const uint3 blockIdx __asm__("ait_emulator_blockIdx");
extern const uint3 blockDim __asm__("ait_emulator_blockDim");
extern const uint3 gridDim __asm__("ait_emulator_gridDim");

#define AIT_VECTORS(NAME, TYPE)                      \
  struct alignas(2 * sizeof(TYPE)) NAME##2 {         \
    TYPE x, y;                                       \
  };                                                 \
  struct alignas(16) NAME##4 {                       \
    TYPE x, y, z, w;                                 \
  };                                                 \
  inline NAME##2 make_##NAME##2(TYPE x, TYPE y) { return {x, y}; } \
  inline NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { return {x, y, z, w}; }
AIT_VECTORS(uint, uint32_t)
AIT_VECTORS(int, int32_t)
AIT_VECTORS(float, float)
#undef AIT_VECTORS

namespace ait::emulator {

/// @brief A launch of `kernel(arguments...)`.
template <class... Params, class... Args>
bool start(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes, uint32_t cluster, bool dependent, Args&&... args) {
  struct Call {
    void (*kernel)(Params...);
    std::tuple<std::decay_t<Params>...> arguments;
  };
  const Call call{kernel, {args...}};
  Launch launch;
  launch.kernel = reinterpret_cast<const void*>(kernel);
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  launch.shared_bytes = shared_bytes;
  launch.cluster = cluster;
  launch.dependent = dependent;
  launch.call = [](const void* pointer) {
    const Call& it = *static_cast<const Call*>(pointer);
    std::apply(it.kernel, it.arguments);
  };
  launch.arguments = &call;
  launch.argument_bytes = sizeof call;
  return run(launch);
}

template <class T>
T shuffle(T value, int from, const char* what, Site site, uint64_t lanes = ~uint64_t(0)) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "shuffles move up to 8 bytes");
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  word = exchange(word, from, what, site, lanes);
  __builtin_memcpy(&value, &word, sizeof(T));
  return value;
}

/// The lane that a shuffle within parts of `width` lanes asks for; its own where that is outside of the part.
inline int lane_above(int delta, int width) {
  const int lane = lane_index(), to = lane + delta;
  return to / width == lane / width ? to : lane;
}
inline int lane_below(int delta, int width) {
  const int lane = lane_index(), to = lane - delta;
  return to >= lane / width * width ? to : lane;
}
inline int lane_of_part(int from, int width) { return lane_index() / width * width + from % width; }

template <class T, class F>
__attribute__((noinline, no_sanitize("thread"))) T atomic(T* at, const F& next) {
  check_atomic(at, sizeof(T));
  T old;
  __builtin_memcpy(&old, at, sizeof(T));
  const T now = next(old);
  char* to = reinterpret_cast<char*>(at);
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = reinterpret_cast<const char*>(&now)[i];
  return old;
}
}  // namespace ait::emulator

inline void __syncthreads(AIT_EMULATOR_CALLER) {
  ait::emulator::meet(ait::emulator::Scope::block, "__syncthreads", true, nullptr, nullptr, {file, line});
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __ldg(const T* at) {
  return *at;
}

inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t choice) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= uint32_t(bytes >> (8 * (choice >> (4 * i) & 7)) & 0xff) << (8 * i);
  return word;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(uint32_t(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }

#define AIT_ATOMIC(NAME, NEXT)                                                           \
  template <class T>                                                                     \
  T NAME(T* at, std::common_type_t<T> value) {                                           \
    return ait::emulator::atomic(at, [&](T old) { return static_cast<T>(NEXT); });       \
  }
AIT_ATOMIC(atomicAdd, old + value)
AIT_ATOMIC(atomicSub, old - value)
AIT_ATOMIC(atomicMax, old > value ? old : value)
AIT_ATOMIC(atomicMin, old < value ? old : value)
AIT_ATOMIC(atomicAnd, old & value)
AIT_ATOMIC(atomicOr, old | value)
AIT_ATOMIC(atomicExch, ((void)old, value))
#undef AIT_ATOMIC
template <class T>
T atomicCAS(T* at, std::common_type_t<T> compare, std::common_type_t<T> value) {
  return ait::emulator::atomic(at, [&](T old) { return old == compare ? value : old; });
}

#endif  // AIT_EMULATOR_SIMT_H_
