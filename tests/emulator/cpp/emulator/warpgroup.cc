/// @file warpgroup.cc
#include "emulator/warpgroup.h"

#include <string.h>

#include <algorithm>

#include "emulator/bulk.h"
#include "emulator/state.h"

namespace ait::emulator {
namespace {
constexpr int kThreads = 128, kDepthBytes = 32;
constexpr uint32_t kMark = 0x7fc5a5a5;  ///< no number; in accumulators that are not complete

Warpgroup& warpgroup() { return current->block->products[current->thread / kThreads]; }

/// The threads of this warpgroup.
std::vector<Fiber*> members() {
  const auto first = current->block->threads.begin() + current->thread / kThreads * kThreads;
  return {first, first + std::min<ptrdiff_t>(kThreads, current->block->threads.end() - first)};
}

/// A matrix descriptor of the PTX manual. `swizzle` bytes of a line: 0, 32, 64, 128.
struct Operand {
  uint32_t start, leading, stride, base, swizzle;

  explicit Operand(uint64_t word)
      : start(uint32_t(word & 0x3fff) << 4),
        leading(uint32_t(word >> 16 & 0x3fff) << 4),
        stride(uint32_t(word >> 32 & 0x3fff) << 4),
        base(uint32_t(word >> 49 & 7)),
        swizzle((const uint32_t[]){0, 128, 64, 32}[word >> 62]) {
    const uint32_t lines = swizzle == 0 ? 1 : swizzle / 16;
    if ((start >> 7 & (lines - 1)) != base) fail("wgmma: the operand at %u starts inside of a swizzle pattern of %u bytes, with base offset %u", start, swizzle * 8, base);
  }

  /// The address of 16 bytes along the contiguous dim: from `along` on, in elements of 2 bytes, a multiple of 8, and `across`.
  uint32_t at(uint32_t along, uint32_t across, bool transposed) const {
    if (swizzle == 0) {
      // Blocks of 8 x 8 elements, 128 bytes each.
      return transposed ? start + along / 8 * stride + across / 8 * leading + across % 8 * 16
                        : start + along / 8 * leading + across / 8 * stride + across % 8 * 16;
    }
    // Lines of `swizzle` bytes, in groups of eight.
    const uint32_t line = swizzle / 2;  // elements
    const uint32_t address = start + along % line * 2 + along / line * (transposed ? leading : 0) + across % 8 * swizzle + across / 8 * stride;
    return swizzled(address, swizzle);
  }
};

/// Reads `count` lines of K: to[k][i] for K and the other dim.
void gather(const char* name, uint64_t word, int count, bool transposed, Narrow type, const Toucher& by, std::vector<float>& to) {
  Block& block = *current->block;
  const Operand operand(word);
  const int bytes = bytes_of(type), depth = kDepthBytes / bytes, piece = 16 / bytes;
  if (bytes == 1 && transposed) fail("wgmma: operand %s of 8-bit numbers is not contiguous along K", name);
  to.resize(size_t(count) * depth);
  const int contiguous = transposed ? count : depth, other = transposed ? depth : count;
  if (!transposed && operand.swizzle != 0 && operand.start % operand.swizzle + kDepthBytes > operand.swizzle) {
    fail("wgmma: operand %s crosses the end of its lines", name);
  }
  for (int across = 0; across < other; ++across) {
    for (int along = 0; along < contiguous; along += piece) {
      const uint32_t address = operand.at(uint32_t(along * bytes / 2), uint32_t(across), transposed);
      if (address % 16 != 0 || address >= kWindowBytes) fail("wgmma: operand %s at %u of shared memory", name, address);
      touch_dynamic(block, address, 16, read, by);
      for (int i = 0; i < piece; ++i) {
        uint16_t bits = 0;
        memcpy(&bits, block.window + address + i * bytes, size_t(bytes));
        const int k = transposed ? across : along + i, x = transposed ? along + i : across;
        to[size_t(k) * count + x] = widen(bits, type);
      }
    }
  }
}

/// The row and column of register `r` of a thread.
int row_of(int thread, int r) { return thread / 32 * 16 + thread % 32 / 4 + r / 2 % 2 * 8; }
int column_of(int thread, int r) { return r / 4 * 8 + thread % 4 * 2 + r % 2; }

/// What a register of results holds.
double register_value(const char* at, bool integer) {
  int32_t whole;
  float number;
  memcpy(&whole, at, 4);
  memcpy(&number, at, 4);
  return integer ? double(whole) : double(number);
}

Accumulator& accumulator(Warpgroup& group, void** brought, const std::vector<Fiber*>& threads) {
  const auto& first = *static_cast<const Product*>(brought[0]);
  for (Accumulator& found : group.accumulators) {
    if (found.registers[0] == first.d) {
      if (found.columns != first.columns) fail("wgmma of %d columns into accumulators of one of %d that was not waited for", first.columns, found.columns);
      return found;
    }
  }
  if (!group.fenced) fail("wgmma with no wgmma.fence after its registers were accessed");
  Accumulator made;
  made.columns = first.columns;
  made.integers = is_integer(first.a_type);
  made.values.resize(size_t(64) * first.columns);
  for (int t = 0; t < kThreads; ++t) {
    char* d = static_cast<char*>(static_cast<Product*>(brought[t])->d);
    made.registers.push_back(d);
    for (int r = 0; r < made.columns / 2; ++r) {
      if (first.accumulate) made.values[size_t(row_of(t, r)) * made.columns + column_of(t, r)] = register_value(d + r * 4, made.integers);
      memcpy(d + r * 4, &kMark, 4);
    }
    threads[t]->held.push_back({d, size_t(made.columns) * 2, true});
  }
  group.accumulators.push_back(std::move(made));
  return group.accumulators.back();
}

/// A sum as the tensor cores keep it.
double kept(double sum, Narrow type) {
  if (is_integer(type)) return double(int32_t(uint32_t(int64_t(sum))));
  return bytes_of(type) == 1 ? short_sum(sum) : float(sum);
}

void multiply(void** brought, int count) {
  const auto& first = *static_cast<const Product*>(brought[0]);
  if (count != kThreads) fail("wgmma by a warpgroup of %d threads", count);
  for (int t = 1; t < kThreads; ++t) {
    const auto& other = *static_cast<const Product*>(brought[t]);
    if (other.a != first.a || other.b != first.b || other.accumulate != first.accumulate) fail("wgmma: thread %d of the warpgroup describes other operands", t);
  }
  Warpgroup& group = warpgroup();
  const std::vector<Fiber*> threads = members();
  if (group.actor == 0) group.actor = add_actor("a wgmma of warpgroup " + std::to_string(current->thread / kThreads), kThreads / kWarp);
  const Seen known = common(threads);
  const Toucher by{known, group.actor, group.group, Toucher::kNobody, true, "wgmma: "};
  const int columns = first.columns;
  static std::vector<float> a, b;
  gather("b", first.b, columns, first.b_transposed, first.b_type, by, b);
  if (first.a_registers == nullptr) {
    gather("a", first.a, 64, first.a_transposed, first.a_type, by, a);
  } else {
    const int bytes = bytes_of(first.a_type), each = 4 / bytes;  // elements of a register
    a.resize(size_t(64) * (kDepthBytes / bytes));
    for (int t = 0; t < kThreads; ++t) {
      const uint32_t* words = static_cast<const Product*>(brought[t])->a_registers;
      for (int i = 0; i < 4; ++i) {
        for (int e = 0; e < each; ++e) {
          const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2), k = t % 4 * each + 4 * each * (i / 2) + e;
          a[size_t(k) * 64 + row] = widen(uint16_t((words[i] >> (8 * bytes * e)) & (bytes == 1 ? 0xffu : 0xffffu)), first.a_type);
        }
      }
      group.operands.push_back({threads[t], words, {words[0], words[1], words[2], words[3]}, group.group});
      threads[t]->held.push_back({reinterpret_cast<const char*>(words), 16, false});
    }
  }
  Accumulator& into = accumulator(group, brought, threads);
  into.group = group.started = group.group;
  const int depth = kDepthBytes / bytes_of(first.a_type);
  double sums[256];
  for (int row = 0; row < 64; ++row) {
    double* const values = &into.values[size_t(row) * columns];
    for (int j = 0; j < columns; ++j) sums[j] = first.accumulate ? values[j] : 0.;
    for (int k = 0; k < depth; ++k) {
      const double x = a[size_t(k) * 64 + row];
      const float* const y = &b[size_t(k) * columns];
      for (int j = 0; j < columns; ++j) sums[j] += x * y[j];
    }
    for (int j = 0; j < columns; ++j) values[j] = kept(sums[j], first.a_type);
  }
}

void let_go(Fiber& fiber, const void* begin) {
  const auto found = std::find_if(fiber.held.begin(), fiber.held.end(), [&](const Held& held) { return held.begin == begin; });
  if (found != fiber.held.end()) fiber.held.erase(found);
}

/// Ends all groups up to this one.
void complete(Warpgroup& group, uint32_t last) {
  const std::vector<Fiber*> threads = members();
  group.waited = last;
  for (size_t i = 0; i < group.accumulators.size();) {
    Accumulator& done = group.accumulators[i];
    if (done.group > last) {
      ++i;
      continue;
    }
    for (int t = 0; t < int(threads.size()); ++t) {
      for (int r = 0; r < done.columns / 2; ++r) {
        char* const at = done.registers[t] + r * 4;
        if (memcmp(at, &kMark, 4) != 0) fail("accumulator %d of thread %u was written while a wgmma used it", r, threads[t]->thread);
        const double value = done.values[size_t(row_of(t, r)) * done.columns + column_of(t, r)];
        const int32_t whole = done.integers ? int32_t(value) : 0;
        const float number = float(value);
        memcpy(at, done.integers ? static_cast<const void*>(&whole) : &number, 4);
      }
      let_go(*threads[t], done.registers[t]);
    }
    group.accumulators.erase(group.accumulators.begin() + ptrdiff_t(i));
  }
  for (size_t i = 0; i < group.operands.size();) {
    const HeldOperand& held = group.operands[i];
    if (held.group > last) {
      ++i;
      continue;
    }
    if (memcmp(held.registers, held.words, 16) != 0) fail("an operand register of thread %u was written while a wgmma used it", held.fiber->thread);
    let_go(*held.fiber, held.registers);
    group.operands[i] = group.operands.back();
    group.operands.pop_back();
  }
}
}  // namespace

void wgmma(const Product& product, Site site) {
  Product mine = product;
  meet(Scope::warpgroup, "wgmma", false, multiply, &mine, site);
}

void wgmma_fence(Site site) {
  meet(Scope::warpgroup, "wgmma.fence", false, [](void**, int) { warpgroup().fenced = true; }, nullptr, site);
}

void wgmma_commit(Site site) {
  meet(Scope::warpgroup, "wgmma.commit_group", false, [](void**, int) { ++warpgroup().group; }, nullptr, site);
}

void wgmma_wait(int pending, Site site) {
  meet(
      Scope::warpgroup, "wgmma.wait_group", false,
      [](void** brought, int) {
        Warpgroup& group = warpgroup();
        const int64_t last = int64_t(group.group) - 1 - *static_cast<int*>(brought[0]);
        if (last > 0) complete(group, uint32_t(last));
        group.fenced = false;
      },
      &pending, site);
  // What other warps have of the products may still go on.
  if (warpgroup().actor != 0) learn(*current, warpgroup().actor + uint32_t(current->warp() % (kThreads / kWarp)), warpgroup().waited);
}

void set_registers(int count, Site site) {
  if (count < 24 || count > 256 || count % 8 != 0) fail("setmaxnreg of %d registers", count);
  meet(Scope::warpgroup, "setmaxnreg", false, nullptr, nullptr, site);
}

const char* left_undone(const Fiber& fiber) {
  const Warpgroup& group = fiber.block->products[fiber.thread / kThreads];
  if (group.started > group.waited) return "nobody waited for a wgmma of its warpgroup";
  return fiber.stored > fiber.store_waited ? "a bulk store of it may still read shared memory" : nullptr;
}

}  // namespace ait::emulator
