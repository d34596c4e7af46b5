/// @file peers.cuh
/// @brief All-reduces of small tensors in one launch, through memory that the cards of a group write for each other.
///
/// A block writes its share into the room of each other card and then, there, the number of the launch. When it has the numbers of all others, it
/// joins the shares in the order of the members: all members have the same bits, in each run. Launches use two slots in turn. A card writes into a
/// slot for the second time only after a launch between, in which each other card told that it had begun that one, and so had ended the one before.
/// Numbers are kept in memory of the card, so that a recorded launch can be replayed. Grids follow from sizes alone: they are the same on all cards.
#ifndef AIT_KERNELS_GPU_PEERS_CUH_
#define AIT_KERNELS_GPU_PEERS_CUH_

#include <stdint.h>

#include "ait/context.h"
#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/group.cuh"
#include "ait/kernels/gpu/row.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/norm_eps.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"
#include "ait/peers_service.h"

namespace ait::gpu {

/// Threads of a block that adds without a norm.
inline constexpr int kPeerThreads = 512;

namespace detail {

/// Writes a number to memory of any card, after all that the block has written before its last barrier.
__device__ __forceinline__ void release_for_all(uint32_t* to, uint32_t number) {
#if defined(AIT_EMULATED) || defined(AIT_HIP)
  *static_cast<volatile uint32_t*>(to) = number;
#else
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(number) : "memory");
#endif
}

/// Reads a number that any card writes; what that card wrote before is then visible to this block after its next barrier.
__device__ __forceinline__ uint32_t acquire_from_all(const uint32_t* from) {
#if defined(AIT_EMULATED) || defined(AIT_HIP)
  return *static_cast<const volatile uint32_t*>(from);
#else
  uint32_t number;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(number) : "l"(__cvta_generic_to_global(from)) : "memory");
  return number;
#endif
}

/// The part of a launch that concerns other cards. All threads of a block call each function, in this order: the constructor, `tell`, `wait`, `end`.
class PeerLaunch {
 public:
  __device__ __forceinline__ explicit PeerLaunch(const ait_peer_memory_v1& memory)
      : memory_(memory), number_(*static_cast<const volatile uint32_t*>(&own().launches) + 1) {}

  /// Where member `from` writes what it sends to member `to`.
  template <class T>
  __device__ __forceinline__ T* slot(int to, int from) const {
    char* const slots = reinterpret_cast<char*>(memory_.rooms[to] + 1);
    return reinterpret_cast<T*>(slots + (static_cast<int64_t>(number_ % 2) * memory_.members + from) * memory_.bytes);
  }

  /// Tells the others that this block has written its share.
  __device__ __forceinline__ void tell() const {
    __syncthreads();
    const int to = static_cast<int>(threadIdx.x);
    if (to < memory_.members && to != memory_.place) release_for_all(&memory_.rooms[to]->arrived[memory_.place][blockIdx.x], number_);
  }

  /// Waits for the shares of the others. Once the host says so, it waits no more, and what is read is not theirs.
  __device__ __forceinline__ void wait() const {
    const int from = static_cast<int>(threadIdx.x);
    if (from < memory_.members && from != memory_.place) {
      const uint32_t* const arrived = &own().arrived[from][blockIdx.x];
      for (uint32_t turn = 1; static_cast<int32_t>(acquire_from_all(arrived) - number_) < 0; ++turn) {
#if defined(AIT_EMULATED)
        ::ait::emulator::fail("waits for member %d, which has not written launch %u", from, number_);
#else
        if (turn % 1024 == 0 && *static_cast<const volatile uint32_t*>(memory_.stop) != 0) break;
#endif
      }
    }
    __syncthreads();
  }

  /// The last block counts the launch.
  __device__ __forceinline__ void end() const {
    if (threadIdx.x != 0 || atomicAdd(&own().ended, 1u) != gridDim.x - 1) return;
    own().ended = 0;
    own().launches = number_;
  }

 private:
  __device__ __forceinline__ ait_peer_room_v1& own() const { return *memory_.rooms[memory_.place]; }

  const ait_peer_memory_v1& memory_;
  uint32_t number_;
};

/// Sends a chunk of this member to all others.
template <int kVec, class T>
__device__ __forceinline__ void send_chunk(const PeerLaunch& peers, const ait_peer_memory_v1& memory, int64_t first, const T (&own)[kVec]) {
#pragma unroll
  for (int to = 0; to < AIT_MOST_PEERS; ++to) {
    if (to < memory.members && to != memory.place) store<kVec>(peers.template slot<T>(to, memory.place) + first, own);
  }
}

/// The chunks of all members, joined in their order.
template <class Join, class C, int kVec, class T>
__device__ __forceinline__ void join_chunks(const PeerLaunch& peers, const ait_peer_memory_v1& memory, int64_t first, const T (&own)[kVec],
                                            typename Join::template Acc<C> (&total)[kVec]) {
  using A = typename Join::template Acc<C>;
  T parts[AIT_MOST_PEERS][kVec];
#pragma unroll
  for (int from = 0; from < AIT_MOST_PEERS; ++from) {
    if (from < memory.members && from != memory.place) load<kVec>(peers.template slot<const T>(memory.place, from) + first, parts[from]);
  }
#pragma unroll
  for (int from = 0; from < AIT_MOST_PEERS; ++from) {
    if (from >= memory.members) continue;
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const A part = static_cast<A>(convert<C>(from == memory.place ? own[j] : parts[from][j]));
      total[j] = from == 0 ? part : Join::join(total[j], part);
    }
  }
}

/// Up to `kVec` elements from `first` on; those behind the last are 0.
template <int kVec, class T>
__device__ __forceinline__ void read_chunk(const T* x, int64_t first, int64_t count, T (&to)[kVec]) {
  if (count - first >= kVec && reinterpret_cast<uintptr_t>(x + first) % kAccessBytes<T, kVec> == 0) {
    load<kVec>(x + first, to);
    return;
  }
#pragma unroll
  for (int j = 0; j < kVec; ++j) to[j] = first + j < count ? x[first + j] : T{};
}

}  // namespace detail

/// @brief y = the operands x of all members, joined.
template <class Join, class C, int kVec, class T>
__global__ void __launch_bounds__(kPeerThreads) all_reduce_peers_kernel(ait_peer_memory_v1 memory, int64_t count, const T* x, T* y) {
  wait_for_previous();
  allow_next();
  const detail::PeerLaunch peers(memory);
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kPeerThreads + threadIdx.x) * kVec;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kPeerThreads * kVec;
  for (int64_t first = begin; first < count; first += step) {
    T own[kVec];
    detail::read_chunk<kVec>(x, first, count, own);
    detail::send_chunk<kVec>(peers, memory, first, own);
  }
  peers.tell();
  peers.wait();
  for (int64_t first = begin; first < count; first += step) {
    T own[kVec];
    detail::read_chunk<kVec>(x, first, count, own);
    typename Join::template Acc<C> total[kVec];
    detail::join_chunks<Join, C, kVec>(peers, memory, first, own, total);
    T result[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) result[j] = convert<T>(static_cast<C>(total[j]));
    store_within<kVec>(y + first, first, count - first, result);
  }
  peers.end();
}

/// @brief Launches the kernel; the rooms have slots for all of x.
template <class Join, class C, class T>
int32_t launch_all_reduce(const Context& ctx, const ait_peer_memory_v1& memory, int64_t count, const T* x, T* y) {
  constexpr int kVec = 16 / sizeof(T);
  LaunchConfig config;
  config.block = dim3(kPeerThreads);
  const int64_t blocks = (count + kPeerThreads * kVec - 1) / (kPeerThreads * kVec);
  config.grid = dim3(static_cast<uint32_t>(blocks < AIT_PEER_BLOCKS ? blocks : AIT_PEER_BLOCKS));
  config.dependent = true;
  return launch(ctx, config, all_reduce_peers_kernel<Join, C, kVec, T>, memory, count, x, y);
}

/// @brief An all-reduce through memory of the cards, or by the library where the group has none or the tensor is too large.
template <class Join, class C, class T>
int32_t all_reduce_peers(const Context& ctx, const ait_collective_v1& args, const T* x, T* y) {
  ait_peer_memory_v1 memory = {};
  const ait_peers_v1 sent = {args.group, args.count * static_cast<int64_t>(sizeof(T)), args.key, &memory};
  if (args.count == 0) return 0;
  if (const int32_t status = call_service(ctx, &ait_peers_service_v1::open, sent)) return status;
  if (memory.members == 0) return library_collective(ctx, args);
  if (const int32_t status = launch_all_reduce<Join, C>(ctx, memory, args.count, x, y)) return status;
  return call_service(ctx, &ait_peers_service_v1::close, sent);
}

namespace detail {
/// s = the parts in order, and the stored sum.
struct AddTwo {
  template <class C>
  static AIT_FN void apply(C a, C b, C& normalised, C& sum) {
    normalised = sum = a + b;
  }
};

/// Chunks of 16 bytes of a row that a thread of a block holds, and the threads.
template <int kChunks>
inline constexpr int kPeerItems = (kChunks + 1023) / 1024;
template <int kChunks>
inline constexpr int kPeerRowThreads = whole_warps((kChunks + kPeerItems<kChunks> - 1) / kPeerItems<kChunks>);
}  // namespace detail

/// @brief sum = the operands x of all members, added, and the residual; y = the norm of sum. A block has a row at a time, of `kLength` elements.
template <int kLength, bool kCentred, class T>
__global__ void __launch_bounds__((detail::kPeerRowThreads<kLength * static_cast<int>(sizeof(T)) / 16>))
    reduced_norm_peers_kernel(ait_peer_memory_v1 memory, int64_t rows, const T* x, const T* residual, const T* scale, const T* bias, double eps, T* y,
                              T* sum) {
  using C = compute_t<T>;
  constexpr int kVec = 16 / sizeof(T), kChunks = kLength / kVec, kItems = detail::kPeerItems<kChunks>;
  constexpr int kThreads = detail::kPeerRowThreads<kChunks>;
  using Reducer = GroupReducer<C, kThreads>;
  __shared__ C shared[Reducer::kShared];
  Reducer reducer;
  reducer.shared = shared;
  wait_for_previous();
  allow_next();
  const detail::PeerLaunch peers(memory);
  const auto place = [](int item) { return (item * kThreads + static_cast<int>(threadIdx.x)) * kVec; };
  const auto read = [&](const T* from, T(&to)[kItems][kVec]) {
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (place(item) < kLength) detail::read_chunk<kVec>(from, place(item), kLength, to[item]);
    }
  };
  T own[kItems][kVec], added[kItems][kVec], scales[kItems][kVec], biases[kItems][kVec];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    read(x + row * kLength, own);
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (place(item) < kLength) detail::send_chunk<kVec>(peers, memory, row * kLength + place(item), own[item]);
    }
  }
  peers.tell();
  // What the first row needs is on its way while the block waits.
  int64_t row = blockIdx.x;
  if (rows > gridDim.x) read(x + row * kLength, own);  // else it is still here
  read(residual + row * kLength, added);
  if (scale != nullptr) read(scale, scales);
  if (bias != nullptr) read(bias, biases);
  peers.wait();
  while (true) {
    C values[kItems][kVec], moments[2] = {0, 0};
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (place(item) >= kLength) continue;
      const int64_t first = row * kLength + place(item);
      detail::join_chunks<Sum, C, kVec>(peers, memory, first, own[item], values[item]);
      T stored[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        values[item][j] += convert<C>(added[item][j]);
        stored[j] = convert<T>(values[item][j]);
        moments[0] += kCentred ? values[item][j] : values[item][j] * values[item][j];
      }
      store_within<kVec>(sum + first, 0, kVec, stored);
    }
    C first_moment[1] = {moments[0]};
    reducer.reduce(first_moment, Plus{});
    C mean = 0, variance = first_moment[0] / C(kLength);
    if constexpr (kCentred) {
      mean = variance;
      moments[0] = 0;
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (place(item) >= kLength) continue;
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          const C difference = values[item][j] - mean;
          moments[0] += difference;
          moments[1] += difference * difference;
        }
      }
      reducer.reduce(moments, Plus{});
      const C shift = moments[0] / C(kLength);  // of the mean, which was rounded
      variance = moments[1] / C(kLength) - shift * shift;
      mean += shift;
    }
    const C inverse = ait::rsqrt(with_eps(variance < C(0) ? C(0) : variance, static_cast<C>(eps)));
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (place(item) >= kLength) continue;
      T result[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        C normalised = (values[item][j] - mean) * inverse;
        if (scale != nullptr) normalised *= convert<C>(scales[item][j]);
        if (bias != nullptr) normalised += convert<C>(biases[item][j]);
        result[j] = convert<T>(normalised);
      }
      store_within<kVec>(y + row * kLength + place(item), 0, kVec, result);
    }
    row += gridDim.x;
    if (row >= rows) break;
    read(x + row * kLength, own);
    read(residual + row * kLength, added);
  }
  peers.end();
}

/// @brief Launches the kernel; the rooms have slots for all of x.
template <int kLength, bool kCentred, class T>
int32_t launch_reduced_norm(const Context& ctx, const ait_peer_memory_v1& memory, int64_t rows, const T* x, const T* residual, const T* scale,
                            const T* bias, double eps, T* y, T* sum) {
  LaunchConfig config;
  config.block = dim3(detail::kPeerRowThreads<kLength * static_cast<int>(sizeof(T)) / 16>);
  config.grid = dim3(static_cast<uint32_t>(rows < AIT_PEER_BLOCKS ? rows : AIT_PEER_BLOCKS));
  config.dependent = true;
  return launch(ctx, config, reduced_norm_peers_kernel<kLength, kCentred, T>, memory, rows, x, residual, scale, bias, eps, y, sum);
}

/// @brief A sum over all members, a residual and a norm; where the group has no memory, or too little, by the library and then by the kernel of norms.
/// `workspace` has room for x.
template <int kLength, bool kCentred, class T>
int32_t reduced_norm_peers(const Context& ctx, const ait_collective_v1& args, int64_t rows, const T* x, const T* residual, const T* scale,
                           const T* bias, double eps, T* y, T* sum, void* workspace) {
  ait_peer_memory_v1 memory = {};
  const ait_peers_v1 sent = {args.group, args.count * static_cast<int64_t>(sizeof(T)), args.key, &memory};
  if (rows == 0) return 0;
  if (const int32_t status = call_service(ctx, &ait_peers_service_v1::open, sent)) return status;
  if (memory.members == 0) {
    if (const int32_t status = library_collective(ctx, args)) return status;
    const int64_t sizes[] = {rows, kLength}, strides[] = {kLength, 1};
    const auto ins = pack(operand<Inner::unit>(static_cast<const T*>(workspace), strides), operand<Inner::unit>(residual, strides));
    const auto outs = pack(operand<Inner::unit>(y, strides), operand<Inner::unit>(sum, strides));
    constexpr int kStep = 16 / sizeof(T);
    if constexpr (kCentred) {
      return layer_norm<detail::AddTwo, 1, kLength, kLength, kStep, false>(ctx, sizes, ins, outs, scale, bias, eps);
    } else {
      return rms_norm<detail::AddTwo, 1, kLength, kLength, kStep, false>(ctx, sizes, ins, outs, scale, bias, eps);
    }
  }
  if (const int32_t status = launch_reduced_norm<kLength, kCentred>(ctx, memory, rows, x, residual, scale, bias, eps, y, sum)) return status;
  return call_service(ctx, &ait_peers_service_v1::close, sent);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_PEERS_CUH_
