/// @file emulator.h
/// @brief Runs kernels of the GPU templates on the CPU: what the stand-ins for the CUDA and HIP headers are made of.
///
/// Each thread of a block is a fiber that runs until it must wait for others. All its accesses to memory are checked, because the sources
/// are compiled with `-fsanitize=thread` and the functions that the compiler then calls are ours (memory.cc). A launch fails with a message on
///   - accesses outside of the buffers of the case and of shared memory, misaligned ones, writes to operands;
///   - reads of shared memory or of a result that nothing wrote, or that an asynchronous copy is still going to write;
///   - accesses of two threads to the same bytes of shared memory, one of them a write, with no barrier between them;
///   - barriers and warp operations that not all threads reach.
#ifndef AIT_EMULATOR_EMULATOR_H_
#define AIT_EMULATOR_EMULATOR_H_

#include <stddef.h>
#include <stdint.h>

namespace ait::emulator {

/// @brief A line of a kernel, for messages, and to tell one barrier from another.
struct Site {
  const char* file;
  int line;
};
/// The last parameters of a built-in that a kernel calls: from where.
#define AIT_EMULATOR_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define AIT_EMULATOR_SITE ::ait::emulator::Site{__builtin_FILE(), __builtin_LINE()}

struct Size {
  uint32_t x = 1, y = 1, z = 1;
  uint32_t count() const { return x * y * z; }
};

/// @brief A launch. `call(arguments)` runs the kernel as the current thread; `arguments` are `argument_bytes` that it may read.
struct Launch {
  const void* kernel;
  Size grid, block;
  size_t shared_bytes = 0;
  uint32_t cluster = 1;
  bool dependent = false;
  void (*call)(const void*) = nullptr;
  const void* arguments = nullptr;
  size_t argument_bytes = 0;
};

/// @brief Runs all blocks. False if something was wrong: see `last_error`.
bool run(const Launch& launch);
const char* last_error();

/// @brief Raises the shared memory that `kernel` may be launched with. False if no block has as much.
bool allow_shared(const void* kernel, size_t bytes);

/// @brief Fills memory of a buffer as the host's memset on a stream does.
bool fill(void* data, int value, size_t bytes);

// ** called by kernels **

/// @brief Ends the launch with this reason. Does not return.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// @brief The threads that meet.
enum class Scope { warp, warpgroup, block, cluster };

/// @brief Given what each of `count` threads brought; `absent` lanes are null. Runs once, when all are there.
using Combine = void (*)(void** brought, int count);

/// @brief Waits for all threads of `scope` (of a warp: the lanes in `lanes`) to come here, each with something for `combine`.
/// @param orders whether what they wrote to memory before is visible to all of them after
void meet(Scope scope, const char* what, bool orders, Combine combine, void* brought, Site site, uint64_t lanes = ~uint64_t(0));

/// @brief The word of lane `from`, as shuffles move it; one that is defined nowhere if no such lane takes part.
uint64_t exchange(uint64_t word, int from, const char* what, Site site, uint64_t lanes = ~uint64_t(0));
/// @brief A bit for each lane: whether it votes yes.
uint64_t ballot(bool yes, const char* what, Site site, uint64_t lanes = ~uint64_t(0));

int lane_index();
int warp_lanes();  ///< 32 or 64

/// @brief Dynamic shared memory of the block, as aligned as the kernel declares it and no more.
char* dynamic_shared(size_t alignment);

/// @brief Fails for an address of shared memory, for an instruction that accesses global memory alone.
void check_global(const void* address);

/// @brief The place of a pointer into shared memory in the shared window, and back.
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address, int rank = -1);

/// @brief Checks an access of this thread, as the compiler's calls do for ordinary ones.
void check_read(const void* from, size_t bytes);
void check_write(void* to, size_t bytes);
/// @brief As `check_read`, by an instruction whose result may go unused: what nothing wrote reads as NaN.
void check_speculative_read(const void* from, size_t bytes);
/// @brief As `check_write`, for an atomic operation: it may meet those of others.
void check_atomic(void* to, size_t bytes);
/// @brief As `check_write`, of a place in shared memory by an instruction that all lanes of the warp have come to: it may write where another
/// lane read before.
void check_write_of_warp(uint32_t address, size_t bytes);
/// @brief As `check_read` and `check_write`, of shared memory of any block of the cluster.
void check_remote_read(const void* from, size_t bytes);
void check_remote_write(void* to, size_t bytes);

/// @brief cp.async: `size` bytes (4 or 16) to shared memory, of which the first `bytes` come from `from`. They appear when their group is waited
/// for.
void copy_async(void* to, const void* from, int size, int bytes);
void copy_async_commit();
void copy_async_wait(int pending);

/// @brief Kernels launched as dependent may not touch global memory before this.
void wait_for_previous();

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_EMULATOR_H_
