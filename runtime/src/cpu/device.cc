#include "device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "ait/kernels/cpu/copy.h"
#include "ait/pack_panels.h"
#include "cpu/pool.h"
#include "error.h"
#include "strided.h"

namespace ait::runtime {
namespace {

/// Runs on the CPU are synchronous, so there is nothing to wait for.
class CpuEvent : public Event {
 public:
  void record(void*) override {}
  void wait(void*) override {}
};

class CpuStream : public Stream {
 public:
  void* get() const override { return nullptr; }
};

class CpuTimeline : public Timeline {
 public:
  void mark(void*) override { marks_.push_back(std::chrono::steady_clock::now()); }
  std::vector<double> seconds() override {
    std::vector<double> found;
    for (const auto& mark : marks_) found.push_back(std::chrono::duration<double>(mark - marks_.front()).count());
    marks_.clear();
    return found;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

/// Bits are moved, whatever they mean.
template <class T>
void pack_as(void* to, const void* from, const ait_constant_v1& constant, const ait_packing_v1& packing) {
  const int64_t own = constant.shape[0];
  int64_t columns = 1;
  for (int i = 1; i < int(constant.rank); ++i) columns *= constant.shape[i];
  if (packing.layout == AIT_PANELS_KN) {
    pack_panels_kn(static_cast<const T*>(from), packing.first, own, packing.rows, columns, static_cast<T*>(to));
  } else {
    pack_panels_nk(static_cast<const T*>(from), packing.first, own, columns, packing.rows, static_cast<T*>(to));
  }
}

template <class T>
void pack_winograd_as(void* to, const void* from, const ait_constant_v1& constant, const ait_packing_v1& packing) {
  int64_t channels = 1;
  for (int i = 1; i < int(constant.rank); ++i) channels *= constant.shape[i];
  channels /= 9;
  pack_panels_winograd(static_cast<const T*>(from), packing.first, constant.shape[0], channels, packing.rows, static_cast<float*>(to));
}

class CpuDevice : public Device {
 public:
  DLDevice dl() const override { return {kDLCPU, 0}; }
  std::string name() const override { return "cpu"; }
  size_t tensor_alignment() const override { return 1; }

  int enter() override {
    enter_run();
    return 0;
  }
  void leave(int) noexcept override { leave_run(); }

  void* allocate(size_t bytes, const char* what) override {
    constexpr size_t kHugePage = size_t{2} << 20;
    const size_t alignment = bytes >= 4 * kHugePage ? kHugePage : 256;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* data = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (data == nullptr) {
      const auto available = static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
      fail(ErrorKind::kMemory, "out of memory: ", what, " needs ", bytes, " bytes on cpu, ", available, " bytes are free");
    }
    if (alignment == kHugePage) madvise(data, rounded, MADV_HUGEPAGE);
    return data;
  }
  void release(void* data) noexcept override { std::free(data); }
  /// Large copies use all threads of the caller: one core does not use the whole bandwidth of the memory.
  void copy(void* to, const void* from, size_t bytes) override {
    constexpr size_t kPiece = size_t{4} << 20;
    const auto pieces = static_cast<int64_t>((bytes + kPiece - 1) / kPiece);
    parallel_for(pieces, pieces > 2, [=](int64_t i) {
      const size_t begin = static_cast<size_t>(i) * kPiece;
      std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, std::min(kPiece, bytes - begin));
    });
  }
  void copy_on(void* to, const void* from, size_t bytes, void*) override { copy(to, from, bytes); }
  void pack(void* to, const void* from, const ait_constant_v1& constant, const ait_packing_v1& packing) override {
    const bool transforms = packing.layout == AIT_PANELS_WINOGRAD && constant.rank >= 2;
    if (transforms && constant.dtype == AIT_F32) {
      pack_winograd_as<float>(to, from, constant, packing);
    } else if (transforms && constant.dtype == AIT_F16) {
      pack_winograd_as<half>(to, from, constant, packing);
    } else if (transforms && constant.dtype == AIT_BF16) {
      pack_winograd_as<bfloat16>(to, from, constant, packing);
    } else if (constant.rank >= 2 && constant.dtype == AIT_F32) {
      pack_as<uint32_t>(to, from, constant, packing);
    } else if (constant.rank >= 2 && constant.dtype == AIT_F64) {
      pack_as<uint64_t>(to, from, constant, packing);
    } else if (constant.rank >= 2 && (constant.dtype == AIT_F16 || constant.dtype == AIT_BF16)) {
      pack_as<uint16_t>(to, from, constant, packing);
    } else if (constant.rank >= 2 && (constant.dtype == AIT_I8 || constant.dtype == AIT_UI8)) {
      pack_as<uint8_t>(to, from, constant, packing);
    } else {
      Device::pack(to, from, constant, packing);
    }
  }

  void copy_strided(const StridedCopy& copy, void*) override {
    switch (copy.fits_kernels() ? copy.element : 0) {
      case 1: return copy_as<1>(copy);
      case 2: return copy_as<2>(copy);
      case 4: return copy_as<4>(copy);
      case 8: return copy_as<8>(copy);
      default: return copy_pieces(copy);
    }
  }

  template <size_t kBytes>
  static void copy_as(const StridedCopy& copy) {
    using Word = typename UnsignedOf<kBytes>::Type;
    int64_t sizes[kMaxCopyRank], to[kMaxCopyRank] = {}, from[kMaxCopyRank] = {};
    std::fill(std::begin(sizes), std::end(sizes), 1);
    std::copy(copy.shape.begin(), copy.shape.end(), sizes);
    std::copy(copy.to_strides.begin(), copy.to_strides.end(), to);
    std::copy(copy.from_strides.begin(), copy.from_strides.end(), from);
    cpu::copy(copy_piece(sizes, static_cast<const Word*>(copy.from), from, static_cast<Word*>(copy.to), to));
  }

  static void copy_pieces(const StridedCopy& copy) {
    for_each_line(copy, 1, [&copy](char* to, const char* from, const StridedLines& lines) {
      for (int64_t i = 0; i < lines.count; ++i) {
        std::memcpy(to, from, copy.element);
        to += lines.to_stride;
        from += lines.from_stride;
      }
    });
  }

  void sync(void*) override {}
  void sync_all() override {}
  bool is_capturing(void*) override { return false; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CpuStream>(); }
  std::unique_ptr<Timeline> make_timeline() override { return std::make_unique<CpuTimeline>(); }
  void occupy(DeviceBuffer&, int, void*) override {}
  bool has_graphs() const override { return false; }
  std::unique_ptr<Graph> record(const std::function<bool(void*)>&) override { return nullptr; }

  double seconds(const std::function<void()>& lead, const std::function<void()>& body) override {
    lead();
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  size_t cache_bytes() override {
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<size_t>(bytes) : size_t{32} << 20;
  }
};

}  // namespace

const char* device_target() { return "cpu"; }

std::unique_ptr<Device> make_device(int id) {
  static const bool has_threads = (detail::needed_service<ait_threads_service_v1>.entry.table = &kThreadsService, true);  // for loops in here
  (void)has_threads;
  if (id != 0) fail(ErrorKind::kRun, "there is no cpu:", id, ": the only CPU device is 0");
  return std::make_unique<CpuDevice>();
}

}  // namespace ait::runtime
