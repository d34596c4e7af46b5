/// @file collective.h
/// @brief Collectives on row-major tensors. Parts of a sum are added in the order of the members, so that all members get the same bits.
#ifndef AIT_KERNELS_CPU_COLLECTIVE_H_
#define AIT_KERNELS_CPU_COLLECTIVE_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/reduction.h"
#include "ait/parallel.h"
#include "ait/ranks_service.h"

namespace ait::cpu {

/// @brief The group of a collective: axes of a mesh, and a key of the computation.
template <int kAxes>
struct Group {
  int64_t ranks;
  int64_t sizes[kAxes];
  int64_t steps[kAxes];
  uint64_t key;

  int64_t members() const {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  ait_group_v1 group() const { return {ranks, kAxes, sizes, steps}; }
};

namespace detail {

template <int kAxes>
int32_t exchange(const Context& ctx, const Group<kAxes>& group, const void* data, int64_t step, int64_t bytes, void* received) {
  return call_service(ctx, &ait_ranks_service_v1::exchange, ait_exchange_v1{group.group(), data, step, bytes, received, group.key});
}

/// Copies `rows` rows of `bytes` bytes.
inline void copy_rows(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows, int64_t bytes) {
  for (int64_t i = 0; i < rows; ++i) memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(bytes));
}

/// out[i] = the parts of element i, joined in the order of the members.
template <class Join, class Compute, class T>
void join_parts(int64_t members, int64_t count, const T* parts, T* out) {
  using A = typename Join::template Acc<Compute>;
  parallel_for(count, count >= 1 << 16, [=](int64_t i) {
    A total = static_cast<A>(static_cast<Compute>(parts[i]));
    for (int64_t member = 1; member < members; ++member) total = Join::join(total, static_cast<A>(static_cast<Compute>(parts[member * count + i])));
    out[i] = static_cast<T>(total);
  });
}

}  // namespace detail

/// @brief out = the operands of all members, joined element by element. `workspace` has room for all of them.
template <class Join, class Compute, class T, int kAxes>
int32_t all_reduce(const Context& ctx, const Group<kAxes>& group, int64_t count, const T* in, T* out, void* workspace) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  if (const int32_t status = detail::exchange(ctx, group, in, 0, bytes, workspace)) return status;
  detail::join_parts<Join, Compute>(group.members(), count, static_cast<const T*>(workspace), out);
  return 0;
}

/// @brief out = the pieces of all members side by side, in each of `rows` rows of which a piece has `bytes` bytes.
template <int kAxes>
int32_t all_gather(const Context& ctx, const Group<kAxes>& group, int64_t rows, int64_t bytes, const void* in, void* out, void* workspace) {
  const int64_t members = group.members(), size = rows * bytes;
  void* const received = rows == 1 ? out : workspace;
  if (const int32_t status = detail::exchange(ctx, group, in, 0, size, received)) return status;
  for (int64_t i = 0; i < members && rows != 1; ++i) {
    detail::copy_rows(static_cast<const char*>(workspace) + i * size, bytes, static_cast<char*>(out) + i * bytes, members * bytes, rows, bytes);
  }
  return 0;
}

/// @brief out = this member's piece of the joined operands; a piece has `count` elements in each of `rows` rows. `workspace` has room for
/// two operands.
template <class Join, class Compute, class T, int kAxes>
int32_t reduce_scatter(const Context& ctx, const Group<kAxes>& group, int64_t rows, int64_t count, const T* in, T* out, void* workspace) {
  const int64_t members = group.members(), row = count * static_cast<int64_t>(sizeof(T)), size = rows * row;
  char* const sent = static_cast<char*>(workspace);
  for (int64_t i = 0; i < members; ++i) {
    detail::copy_rows(reinterpret_cast<const char*>(in) + i * row, members * row, sent + i * size, row, rows, row);
  }
  if (const int32_t status = detail::exchange(ctx, group, sent, size, size, sent + members * size)) return status;
  detail::join_parts<Join, Compute>(members, rows * count, reinterpret_cast<const T*>(sent + members * size), out);
  return 0;
}

/// @brief Piece i of the split dim goes to member i, which joins what it gets along another dim. Rows before the split dim have `in_bytes`
/// bytes of each piece; rows before the joined dim have `out_bytes` bytes of each member's part. `workspace` has room for two operands.
template <int kAxes>
int32_t all_to_all(const Context& ctx, const Group<kAxes>& group, int64_t in_rows, int64_t in_bytes, int64_t out_rows, int64_t out_bytes,
                   const void* in, void* out, void* workspace) {
  const int64_t members = group.members(), size = in_rows * in_bytes;
  char* const sent = static_cast<char*>(workspace);
  char* const received = sent + members * size;
  for (int64_t i = 0; i < members; ++i) {
    detail::copy_rows(static_cast<const char*>(in) + i * in_bytes, members * in_bytes, sent + i * size, in_bytes, in_rows, in_bytes);
  }
  if (const int32_t status = detail::exchange(ctx, group, sent, size, size, received)) return status;
  for (int64_t i = 0; i < members; ++i) {
    detail::copy_rows(received + i * size, out_bytes, static_cast<char*>(out) + i * out_bytes, members * out_bytes, out_rows, out_bytes);
  }
  return 0;
}

/// @brief out = the operand of member `root`. `workspace` has room for the operands of all members.
template <int kAxes>
int32_t broadcast(const Context& ctx, const Group<kAxes>& group, int64_t bytes, int64_t root, const void* in, void* out, void* workspace) {
  if (const int32_t status = detail::exchange(ctx, group, in, 0, bytes, workspace)) return status;
  memcpy(out, static_cast<const char*>(workspace) + root * bytes, static_cast<size_t>(bytes));
  return 0;
}

/// @brief out = this member's piece, of `bytes` bytes in each of `rows` rows.
template <int kAxes>
int32_t all_slice(const Context& ctx, const Group<kAxes>& group, int64_t rows, int64_t bytes, const void* in, void* out) {
  int64_t place = 0;
  if (const int32_t status = call_service(ctx, &ait_ranks_service_v1::place, ait_place_v1{group.group(), &place})) return status;
  detail::copy_rows(static_cast<const char*>(in) + place * bytes, group.members() * bytes, static_cast<char*>(out), bytes, rows, bytes);
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_COLLECTIVE_H_
