#include "export/weights.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deploy/blake3.h"
#include "error.h"
#include "threads.h"

namespace ait::runtime {
namespace {

constexpr int64_t kPage = 4096;
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

/// The file of this library, open for reading.
class File {
 public:
  explicit File(const std::string& path) : path_(path), handle_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat about {};
    if (handle_ >= 0 && fstat(handle_, &about) == 0) {
      size = static_cast<uint64_t>(about.st_size);
      return;
    }
    const std::string why = std::strerror(errno);
    if (handle_ >= 0) close(handle_);
    fail(ErrorKind::kArtifact, path_, " cannot be read, so its weights cannot be loaded: ", why);
  }
  ~File() { close(handle_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void read(uint64_t offset, uint64_t bytes, void* to) const {
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t count = pread(handle_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(ErrorKind::kArtifact, path_, " cannot be read, so its weights cannot be loaded: ", std::strerror(errno));
      if (count == 0) fail(ErrorKind::kArtifact, path_, " became shorter while its weights were read: replace a library by renaming a new file");
      done += static_cast<uint64_t>(count);
    }
  }

  uint64_t size = 0;

 private:
  const std::string& path_;
  int handle_;
};

}  // namespace

StoredWeights::StoredWeights() : path_(own_path()) {
  const File file(path_);
  Footer footer{};
  if (file.size > sizeof footer) file.read(file.size - sizeof footer, sizeof footer, &footer);
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || footer.begin > file.size || footer.bytes > file.size ||
      footer.begin + footer.bytes + sizeof footer != file.size) {
    fail(ErrorKind::kArtifact, path_, " does not end with the weights of the model: it is truncated, or a tool (strip, patchelf) has removed "
                                      "them; export the model again");
  }
  bytes_ = footer.bytes;
  if (bytes_ == 0) return;
  void* const data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) fail(ErrorKind::kMemory, "out of host memory: the weights of ", path_, " need ", bytes_, " bytes");
  data_ = static_cast<uint8_t*>(data);
  try {
    file.read(footer.begin, bytes_, data_);
    const Blake3 hash = blake3(data_, bytes_, num_threads());
    if (std::memcmp(hash.data(), footer.blake3, hash.size()) != 0) {
      fail(ErrorKind::kArtifact, path_, " is damaged: its weights do not have their hash; export the model again");
    }
  } catch (...) {
    munmap(data_, bytes_);
    throw;
  }
}

StoredWeights::~StoredWeights() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

const void* StoredWeights::at(int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > bytes_ || static_cast<uint64_t>(bytes) > bytes_ - static_cast<uint64_t>(offset)) {
    fail(ErrorKind::kArtifact, path_, " does not hold all weights of the model: export it again");
  }
  return data_ + offset;
}

void StoredWeights::release(int64_t offset, int64_t bytes) const {
  const int64_t first = (offset + kPage - 1) / kPage * kPage, last = (offset + bytes) / kPage * kPage;
  if (first < last) madvise(data_ + first, static_cast<size_t>(last - first), MADV_DONTNEED);
}

}  // namespace ait::runtime
