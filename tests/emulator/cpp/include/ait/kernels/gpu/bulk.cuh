/// @file bulk.cuh
/// @brief The instructions of runtime/include/ait/kernels/gpu/bulk.cuh, emulated.
#ifndef AIT_KERNELS_GPU_BULK_CUH_
#define AIT_KERNELS_GPU_BULK_CUH_

#include <cuda.h>

#include "ait/gpu/gpu.h"
#include "emulator/bulk.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline void barrier_init(uint32_t barrier, uint32_t arrivals) { emulator::barrier_init(barrier, arrivals); }
inline void barrier_init_fence() { emulator::barrier_init_fence(); }
inline void barrier_expect(uint32_t barrier, uint32_t bytes) { emulator::barrier_arrive(barrier, bytes); }
inline void barrier_arrive(uint32_t barrier) { emulator::barrier_arrive(barrier); }
inline void barrier_arrive(uint32_t barrier, uint32_t rank) { emulator::barrier_arrive(emulator::address_in(barrier, rank)); }
inline void barrier_wait(uint32_t barrier, uint32_t parity, AIT_EMULATOR_CALLER) { emulator::barrier_wait(barrier, parity, {file, line}); }
inline uint32_t address_in(uint32_t address, uint32_t rank) { return emulator::address_in(address, rank); }

template <bool kMulticast>
void copy_box(uint32_t to, const CUtensorMap* map, uint32_t barrier, int unit, int line, int inner, int outer, uint16_t mask) {
  const int at[4] = {unit, line, inner, outer};
  if (kMulticast && mask == 0) emulator::fail("a copy to no block of the cluster");
  emulator::copy_box(to, map->map, barrier, at, kMulticast ? mask : 0);
}
inline void copy_window(uint32_t to, const CUtensorMap* map, uint32_t barrier, int channel, int x, int y, int image, uint16_t dx, uint16_t dy) {
  const int at[4] = {channel, x, y, image};
  const uint16_t offsets[2] = {dx, dy};
  emulator::copy_window(to, map->map, barrier, at, offsets);
}
inline void copy_window(uint32_t to, const CUtensorMap* map, uint32_t barrier, int channel, int x, int y, int z, int image, uint16_t dx, uint16_t dy,
                        uint16_t dz) {
  const int at[5] = {channel, x, y, z, image};
  const uint16_t offsets[3] = {dx, dy, dz};
  emulator::copy_window(to, map->map, barrier, at, offsets);
}
inline void store_box(const CUtensorMap* map, uint32_t from, int unit, int line, int inner, int outer) {
  const int at[4] = {unit, line, inner, outer};
  emulator::store_box(map->map, from, at);
}
inline void store_commit() { emulator::store_commit(); }
template <int kPending>
void store_wait() {
  emulator::store_wait(kPending);
}
inline void publish_to_copies() { emulator::publish_to_copies(); }
inline void send(uint32_t to, uint32_t barrier, float a, float b, float c, float d) {
  const float v[4] = {a, b, c, d};
  emulator::send(to, barrier, v);
}
inline void prefetch_map(const CUtensorMap*) {}

inline void named_barrier_wait(int id, int threads, AIT_EMULATOR_CALLER) { emulator::named_barrier(id, threads, true, {file, line}); }
inline void named_barrier_arrive(int id, int threads, AIT_EMULATOR_CALLER) { emulator::named_barrier(id, threads, false, {file, line}); }

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_CUH_
