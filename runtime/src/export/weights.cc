#include "export/weights.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "deploy/blake3.h"
#include "error.h"
#include "threads.h"

namespace ait::runtime {
namespace {

constexpr char kMagic[8] = {'A', 'I', 'T', 'W', 'G', 'H', 'T', '1'};

struct Footer {
  char magic[8];
  uint64_t begin, bytes, reserved;
  uint8_t blake3[32];
};
static_assert(sizeof(Footer) == 64);

/// Where the file of this library is.
std::string own_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&kMagic), &info) == 0 || info.dli_fname == nullptr) {
    fail(ErrorKind::kArtifact, "the file of this library cannot be found, so its weights cannot be read");
  }
  return info.dli_fname;
}

}  // namespace

StoredWeights::StoredWeights() : path_(own_path()) {
  const int handle = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (handle < 0 || fstat(handle, &about) != 0) {
    if (handle >= 0) close(handle);
    fail(ErrorKind::kArtifact, path_, " cannot be read, so its weights cannot be loaded");
  }
  size_ = static_cast<size_t>(about.st_size);
  void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
  close(handle);
  if (mapped == MAP_FAILED) fail(ErrorKind::kMemory, path_, " cannot be mapped into memory");
  file_ = static_cast<uint8_t*>(mapped);
  Footer footer{};
  if (size_ > sizeof footer) std::memcpy(&footer, file_ + size_ - sizeof footer, sizeof footer);
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || footer.begin > size_ || footer.bytes > size_ ||
      footer.begin + footer.bytes + sizeof footer != size_) {
    munmap(file_, size_);
    file_ = nullptr;
    fail(ErrorKind::kArtifact, path_, " does not end with the weights of the model: it is truncated, or a tool (strip, patchelf) has removed "
                                      "them; export the model again");
  }
  begin_ = footer.begin;
  bytes_ = footer.bytes;
  const Blake3 hash = blake3(file_ + begin_, bytes_, num_threads());
  if (std::memcmp(hash.data(), footer.blake3, hash.size()) != 0) {
    munmap(file_, size_);
    file_ = nullptr;
    fail(ErrorKind::kArtifact, path_, " is damaged: its weights do not have their hash; export the model again");
  }
}

StoredWeights::~StoredWeights() {
  if (file_ != nullptr) munmap(file_, size_);
}

const void* StoredWeights::at(int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > bytes_ || static_cast<uint64_t>(bytes) > bytes_ - static_cast<uint64_t>(offset)) {
    fail(ErrorKind::kArtifact, path_, " does not hold all weights of the model: export it again");
  }
  return file_ + begin_ + offset;
}

}  // namespace ait::runtime
