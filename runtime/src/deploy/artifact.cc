#include "deploy/artifact.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "deploy/blake3.h"
#include "device.h"
#include "error.h"
#include "threads.h"

namespace ait::runtime {
namespace {

constexpr size_t kPage = 4096, kHeader = 64;
constexpr uint32_t kFormatVersion = 2;
constexpr uint8_t kMagic[8] = {0x89, 'A', 'I', 'T', '\r', '\n', 0x1a, '\n'};
constexpr uint64_t kMaxManifest = uint64_t{1} << 28;

template <class T>
T read_at(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// The code of each dtype in a safetensors file, in the order of `ait_dtype`, and its bytes.
struct Code {
  const char* name;
  size_t bytes;
};
constexpr Code kCodes[] = {{"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"BOOL", 1}, {"I8", 1}, {"I32", 4}, {"I64", 8},
                            {"U8", 1},  {"I16", 2}};
static_assert(std::size(kCodes) == AIT_DTYPES);

std::set<std::string> cpu_flags() {
  std::ifstream info("/proc/cpuinfo");
  info.exceptions(std::ios::badbit);  // out of memory is not the end of the file
  std::string line;
  while (std::getline(info, line)) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    words.exceptions(std::ios::badbit);
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) {
    if (errno == ENOENT) fail(ErrorKind::kArtifact, path, ": there is no such artifact");
    fail(ErrorKind::kArtifact, path, " cannot be read: ", std::strerror(errno));
  }
  struct stat about {};
  if (fstat(handle, &about) == 0 && S_ISREG(about.st_mode)) size_ = static_cast<size_t>(about.st_size);
  void* const data = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
  const int reason = errno;
  close(handle);
  if (data == MAP_FAILED) fail(ErrorKind::kArtifact, path, " cannot be read: ", std::strerror(reason));
  data_ = static_cast<uint8_t*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

void MappedFile::release(const uint8_t* begin, size_t size) const {
  const size_t first = (static_cast<size_t>(begin - data_) + kPage - 1) / kPage * kPage;
  const size_t last = static_cast<size_t>(begin + size - data_) / kPage * kPage;
  if (first < last) madvise(data_ + first, last - first, MADV_DONTNEED);
}

Artifact::Artifact(const std::string& path, bool verify_weights) : path_(path), file_(path) {
  size_t end = 0;
  const Json manifest = read_manifest(&end);
  try {
    check_machine(manifest);
    if (manifest.object().count("kernel_libraries") != 0 && !manifest.at("kernel_libraries").list().empty()) {
      fail(ErrorKind::kArtifact, "it calls functions of kernel libraries, which the library for C and C++ programs does not have");
    }
    const Json& parts = manifest.at("parts");
    read_part(parts, "ir", true, &end);
    library_ = read_part(parts, "library", true, &end);
    const Part constants = read_part(parts, "constants", verify_weights, &end);
    if (end != file_.size()) fail(ErrorKind::kArtifact, "it is damaged: ", file_.size() - end, " bytes follow its last part");
    read_constants(constants);
  } catch (const Error& error) {
    fail(error.kind(), path_, ": ", error.what());
  }
}

Json Artifact::read_manifest(size_t* end) const {
  const uint8_t* const data = file_.data();
  const size_t size = file_.size();
  if (size < kHeader) fail(ErrorKind::kArtifact, path_, " is no artifact or is truncated: it has ", size, " bytes");
  if (std::memcmp(data, kMagic, sizeof kMagic) != 0) {
    fail(ErrorKind::kArtifact, path_, " is no artifact: it does not begin with the magic number of one");
  }
  const auto version = read_at<uint32_t>(data + 8), reserved = read_at<uint32_t>(data + 12);
  const auto length = read_at<uint64_t>(data + 16), total = read_at<uint64_t>(data + 24);
  if (version != kFormatVersion) {
    fail(ErrorKind::kArtifact, path_, " has artifact format ", version, ", expected ", kFormatVersion, ": compile the model again");
  }
  if (total != size) fail(ErrorKind::kArtifact, path_, " is truncated or damaged: it has ", size, " bytes, its header says ", total);
  if (reserved != 0 || length > kMaxManifest || length > size - kHeader) {
    fail(ErrorKind::kArtifact, path_, " is damaged: its header makes no sense");
  }
  const Blake3 hash = blake3(data + kHeader, length);
  if (std::memcmp(hash.data(), data + 32, hash.size()) != 0) {
    fail(ErrorKind::kArtifact, path_, " is damaged: the manifest does not have the hash in the header");
  }
  *end = kHeader + length;
  try {
    return Json::parse({reinterpret_cast<const char*>(data + kHeader), length});
  } catch (const Error& error) {
    fail(ErrorKind::kArtifact, path_, " has a malformed manifest: ", error.what());
  }
}

Artifact::Part Artifact::read_part(const Json& parts, const char* name, bool verify, size_t* end) const {
  const Json& entry = parts.at(name);
  const int64_t offset = entry.at("offset").integer(), size = entry.at("size").integer();
  const auto total = static_cast<int64_t>(file_.size()), before = static_cast<int64_t>(*end);
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (offset < before || offset > total || size < 0 || size > total - offset ||
      !std::all_of(file_.data() + before, file_.data() + offset, is_zero)) {
    fail(ErrorKind::kArtifact, "it is damaged: the ", name, " is not where the manifest says");
  }
  const Part part{file_.data() + offset, static_cast<size_t>(size)};
  if (verify) {
    const std::string found = hex(blake3(part.data, part.size, num_threads()));
    file_.release(part.data, part.size);
    if (found != entry.at("blake3").string()) {
      fail(ErrorKind::kArtifact, "it is damaged: the ", name, " does not have the hash in the manifest");
    }
  }
  *end = static_cast<size_t>(offset + size);
  return part;
}

void Artifact::check_machine(const Json& manifest) const {
  const std::string& target = manifest.at("target").string();
  if (target != device_target()) {
    fail(ErrorKind::kArtifact, "it is for target ", target, ", this runtime runs target ", device_target());
  }
  const std::set<std::string> flags = cpu_flags();
  std::string missing;
  for (const Json& flag : manifest.at("instruction_sets").list()) {
    if (flags.count(flag.string()) == 0) missing += (missing.empty() ? "" : ", ") + flag.string();
  }
  if (target == "cpu" && !missing.empty()) {
    fail(ErrorKind::kArtifact, "it was compiled for a CPU with ", missing, ", which this one lacks: compile it here, or with an arch that both have");
  }
}

void Artifact::read_constants(const Part& part) {
  const uint64_t header = part.size < 8 ? UINT64_MAX : read_at<uint64_t>(part.data);
  if (part.size < 8 || header > part.size - 8) fail(ErrorKind::kArtifact, "the constants are no safetensors file");
  const uint8_t* const body = part.data + 8 + header;
  const auto size = static_cast<int64_t>(part.size - 8 - header);
  const Json index = Json::parse({reinterpret_cast<const char*>(part.data + 8), header});
  for (const auto& [name, about] : index.object()) {
    if (name == "__metadata__") continue;
    StoredConstant constant{name, -1, {}, nullptr, 0};
    const std::string& code = about.at("dtype").string();
    int64_t bytes = 1;
    bool is_valid = false;
    for (int32_t i = 0; i < AIT_DTYPES; ++i) {
      if (code == kCodes[i].name) constant.dtype = i, bytes = static_cast<int64_t>(kCodes[i].bytes), is_valid = true;
    }
    for (const Json& extent : about.at("shape").list()) {
      constant.shape.push_back(extent.integer());
      is_valid &= constant.shape.back() >= 0 && !__builtin_mul_overflow(bytes, constant.shape.back(), &bytes);
    }
    const std::vector<Json>& place = about.at("data_offsets").list();
    is_valid = is_valid && place.size() == 2 && place[0].integer() >= 0 && place[1].integer() <= size &&
               place[0].integer() <= place[1].integer() && place[1].integer() - place[0].integer() == bytes;
    if (!is_valid) fail(ErrorKind::kArtifact, "the constants are no safetensors file: '", name, "' is malformed");
    constant.data = body + place[0].integer();
    constant.bytes = static_cast<size_t>(bytes);
    constants_.push_back(std::move(constant));
  }
}

std::string Artifact::extract_library() const {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = std::string(folder == nullptr || *folder == '\0' ? "/tmp" : folder) + "/ait_XXXXXX.so";
  const int handle = mkstemps(path.data(), 3);
  if (handle < 0) fail(ErrorKind::kRun, path, " cannot be made: ", std::strerror(errno), "; set TMPDIR to a folder for the library of the model");
  size_t written = 0;
  while (written < library_.size) {
    const ssize_t count = write(handle, library_.data + written, library_.size - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int reason = errno;
      close(handle);
      unlink(path.c_str());
      fail(ErrorKind::kRun, path, " cannot be written: ", std::strerror(reason));
    }
    written += static_cast<size_t>(count);
  }
  close(handle);
  return path;
}

}  // namespace ait::runtime
