#include "deploy/artifact.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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
constexpr uint64_t kMaxHeader = 100000000;  ///< of a safetensors file
constexpr int64_t kMaxGap = 1 << 20;        ///< zeros between two parts
constexpr size_t kMaxHoles = 1 << 20;       ///< bytes of IR or code that the disk need not have

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
                            {"U8", 1},  {"I16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I4", 1}, {"U4", 1}};
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

/// A library of an artifact for the CPU, and the instruction sets that it needs.
struct Compiled {
  std::string part, arch;
  const std::vector<Json>* instruction_sets;
};

/// The first one is for `arch` of the manifest; those for other CPUs are listed as `variants`.
std::vector<Compiled> libraries_of(const Json& manifest) {
  std::vector<Compiled> found{{"library", manifest.at("arch").string(), &manifest.at("instruction_sets").list()}};
  if (manifest.object().count("variants") == 0) return found;
  for (const Json& variant : manifest.at("variants").list()) {
    const std::string& arch = variant.at("arch").string();
    found.push_back({"library." + arch, arch, &variant.at("instruction_sets").list()});
  }
  return found;
}

/// The parts of the file, in order.
std::vector<std::string> part_names(const Json& manifest) {
  std::vector<std::string> names{"ir"};
  for (const Compiled& compiled : libraries_of(manifest)) names.push_back(compiled.part);
  names.emplace_back("constants");
  return names;
}

/// Refuses a file that is no model library for this kind of CPU, by its header and its names, before the system's
/// loader runs its constructors. As `ait_mlir/host/model_libraries.py`, this finds a file that is there by mistake.
void check_model_library(const std::vector<uint8_t>& library) {
  constexpr uint8_t kElf64[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
#if defined(__x86_64__)
  constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr uint16_t kMachine = EM_AARCH64;
#else
  constexpr uint16_t kMachine = EM_NONE;
#endif
  constexpr std::string_view kTable("\0ait_model_get\0", 15);
  const std::string_view text(reinterpret_cast<const char*>(library.data()), library.size());
  if (library.size() < sizeof(Elf64_Ehdr) || std::memcmp(library.data(), kElf64, sizeof kElf64) != 0 ||
      read_at<uint16_t>(library.data() + offsetof(Elf64_Ehdr, e_type)) != ET_DYN) {
    fail(ErrorKind::kArtifact, "its library is no shared library of 64 bits; it was not loaded");
  }
  if (kMachine != EM_NONE && read_at<uint16_t>(library.data() + offsetof(Elf64_Ehdr, e_machine)) != kMachine) {
    fail(ErrorKind::kArtifact, "its library is for another kind of CPU than this one; it was not loaded");
  }
  if (text.find(kTable) == std::string_view::npos) {
    fail(ErrorKind::kArtifact, "its library is not a model library: it does not export ait_model_get; it was not loaded");
  }
}

}  // namespace

ArtifactBytes::ArtifactBytes(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_ < 0) {
    if (errno == ENOENT) fail(ErrorKind::kArtifact, path, ": there is no such artifact");
    fail(ErrorKind::kArtifact, path, " cannot be read: ", std::strerror(errno));
  }
  struct stat about {};
  if (fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file_);
    fail(ErrorKind::kArtifact, path, " is no artifact: expected a regular file, not a folder, pipe or device");
  }
  size_ = static_cast<size_t>(about.st_size);
}

ArtifactBytes::~ArtifactBytes() {
  if (file_ >= 0) close(file_);
}

size_t ArtifactBytes::holes(size_t offset, size_t size) const {
  size_t found = 0;
  const auto end = static_cast<off_t>(offset + size);
  for (auto at = static_cast<off_t>(offset); data_ == nullptr && at < end;) {
    const off_t hole = lseek(file_, at, SEEK_HOLE);
    if (hole < 0 || hole >= end) break;
    const off_t data = lseek(file_, hole, SEEK_DATA);
    at = data < 0 ? end : std::min(data, end);  // negative: the hole reaches to the end of the file
    found += static_cast<size_t>(at - hole);
  }
  return found;
}

void ArtifactBytes::read(size_t offset, size_t size, void* to) const {
  if (data_ != nullptr) {
    std::memcpy(to, data_ + offset, size);
    return;
  }
  for (size_t done = 0; done < size;) {
    const ssize_t count = pread(file_, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::kArtifact, "it cannot be read: ", std::strerror(errno));
    if (count == 0) fail(ErrorKind::kArtifact, "it became shorter while it was read: replace an artifact by renaming a new file");
    done += static_cast<size_t>(count);
  }
}

std::vector<uint8_t> ArtifactBytes::read(size_t offset, size_t size) const {
  std::vector<uint8_t> copy(size);
  read(offset, size, copy.data());
  return copy;
}

StoredConstants::StoredConstants(size_t bytes) : size_(bytes) {
  if (size_ == 0) return;
  void* const data = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) fail(ErrorKind::kMemory, "out of host memory: the constants of the file need ", size_, " bytes");
  data_ = static_cast<uint8_t*>(data);
}

StoredConstants::~StoredConstants() {
  if (data_ != nullptr) munmap(data_, size_);
}

void StoredConstants::release(const StoredConstant& constant) const {
  const size_t first = (static_cast<size_t>(constant.data - data_) + kPage - 1) / kPage * kPage;
  const size_t last = static_cast<size_t>(constant.data + constant.bytes - data_) / kPage * kPage;
  if (first < last) madvise(data_ + first, last - first, MADV_DONTNEED);
}

Artifact::Artifact(const std::string& path, bool verify_weights) : path_(path), bytes_(path), verify_weights_(verify_weights) { open(); }

Artifact::Artifact(const void* data, size_t size, bool verify_weights)
    : path_("the artifact in memory"), bytes_(data, size), verify_weights_(verify_weights) {
  open();
}

void Artifact::open() {
  try {
    size_t end = 0;
    const Json manifest = read_manifest(&end);
    const std::string chosen = choose_library(manifest);
    if (manifest.object().count("kernel_libraries") != 0 && !manifest.at("kernel_libraries").list().empty()) {
      fail(ErrorKind::kArtifact, "it calls functions of kernel libraries, which the library for C and C++ programs does not have");
    }
    if (manifest.object().count("ranks") != 0 && manifest.at("ranks").integer() != 1) {
      fail(ErrorKind::kArtifact, "several ranks run it, which the library for C and C++ programs cannot do: run it from Python");
    }
    const Json& parts = manifest.at("parts");
    std::string library_hash;
    for (const std::string& name : part_names(manifest)) {
      const Part part = find_part(parts, name, &end);
      if (name == "constants") {
        constants_ = part;
        check_constants_header();
        continue;
      }
      std::vector<uint8_t> copy = read_part(part, name);
      if (name != chosen) continue;
      library_ = std::move(copy);
      library_hash = part.hash;
    }
    if (end != bytes_.size()) fail(ErrorKind::kArtifact, "it is damaged: ", bytes_.size() - end, " bytes follow its last part");
    check_model_library(library_);
    if (verify_weights_) constants_key_ = library_hash + "-" + constants_.hash;
  } catch (const Error& error) {
    fail(error.kind(), path_, ": ", error.what());
  }
}

Json Artifact::read_manifest(size_t* end) const {
  const size_t size = bytes_.size();
  if (size < kHeader) fail(ErrorKind::kArtifact, "it is no artifact or is truncated: it has ", size, " bytes");
  const std::vector<uint8_t> header = bytes_.read(0, kHeader);
  const uint8_t* const data = header.data();
  if (std::memcmp(data, kMagic, sizeof kMagic) != 0) {
    fail(ErrorKind::kArtifact, "it is no artifact: it does not begin with the magic number of one");
  }
  const auto version = read_at<uint32_t>(data + 8), reserved = read_at<uint32_t>(data + 12);
  const auto length = read_at<uint64_t>(data + 16), total = read_at<uint64_t>(data + 24);
  if (version != kFormatVersion) {
    fail(ErrorKind::kArtifact, "it has artifact format ", version, ", expected ", kFormatVersion, ": compile the model again");
  }
  if (total != size) fail(ErrorKind::kArtifact, "it is truncated or damaged: it has ", size, " bytes, its header says ", total);
  if (reserved != 0 || length > kMaxManifest || length > size - kHeader) {
    fail(ErrorKind::kArtifact, "it is damaged: its header makes no sense");
  }
  const std::vector<uint8_t> text = bytes_.read(kHeader, length);
  const Blake3 hash = blake3(text.data(), length);
  if (std::memcmp(hash.data(), data + 32, hash.size()) != 0) {
    fail(ErrorKind::kArtifact, "it is damaged: the manifest does not have the hash in the header");
  }
  *end = kHeader + length;
  try {
    return Json::parse({reinterpret_cast<const char*>(text.data()), length});
  } catch (const Error& error) {
    fail(ErrorKind::kArtifact, "it has a malformed manifest: ", error.what());
  }
}

Artifact::Part Artifact::find_part(const Json& parts, const std::string& name, size_t* end) const {
  const Json& entry = parts.at(name);
  const int64_t offset = entry.at("offset").integer(), size = entry.at("size").integer();
  const auto total = static_cast<int64_t>(bytes_.size()), before = static_cast<int64_t>(*end);
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  const bool is_inside = offset >= before && offset <= total && size >= 0 && size <= total - offset && offset - before < kMaxGap;
  const std::vector<uint8_t> gap = is_inside ? bytes_.read(*end, static_cast<size_t>(offset - before)) : std::vector<uint8_t>();
  if (!is_inside || !std::all_of(gap.begin(), gap.end(), is_zero)) {
    fail(ErrorKind::kArtifact, "it is damaged: part '", name, "' is not where the manifest says");
  }
  *end = static_cast<size_t>(offset + size);
  return {static_cast<size_t>(offset), static_cast<size_t>(size), entry.at("blake3").string()};
}

void Artifact::damaged(const std::string& name) const {
  fail(ErrorKind::kArtifact, "it is damaged: part '", name, "' does not have the hash in the manifest, unless it was written while it was read");
}

std::vector<uint8_t> Artifact::read_part(const Part& part, const std::string& name) const {
  if (const size_t holes = bytes_.holes(part.offset, part.size); holes > kMaxHoles) {
    fail(ErrorKind::kArtifact, "it is damaged: ", holes, " bytes of part '", name, "' were never written: copy it again");
  }
  std::vector<uint8_t> copy = bytes_.read(part.offset, part.size);
  if (hex(blake3(copy.data(), copy.size(), num_threads())) != part.hash) damaged(name);
  return copy;
}

void Artifact::check_constants_header() const {
  uint64_t length = 0;
  const size_t size = constants_.size;
  if (size >= sizeof length) bytes_.read(constants_.offset, sizeof length, &length);
  if (size < sizeof length || length > std::min<uint64_t>(size - sizeof length, kMaxHeader)) {
    fail(ErrorKind::kArtifact, "the constants are no safetensors file");
  }
  const std::vector<uint8_t> text = bytes_.read(constants_.offset + sizeof length, length);
  try {
    (void)Json::parse({reinterpret_cast<const char*>(text.data()), length});
  } catch (const Error& error) {
    fail(ErrorKind::kArtifact, "the constants are no safetensors file: ", error.what());
  }
}

void Artifact::read_constants(uint8_t* to) const {
  constexpr size_t kWindow = size_t{1} << 26, kPiece = size_t{1} << 23;
  std::vector<uint8_t> window(to == nullptr ? std::min(kWindow, constants_.size) : 0);
  Blake3Stream hash(num_threads());
  for (size_t begin = 0; begin < constants_.size; begin += kWindow) {
    const size_t size = std::min(kWindow, constants_.size - begin);
    uint8_t* const place = to == nullptr ? window.data() : to + begin;
    std::atomic<size_t> next{0};
    share_work(std::min(static_cast<size_t>(num_threads()), (size + kPiece - 1) / kPiece), [&] {
      for (size_t at = kPiece * next++; at < size; at = kPiece * next++) {
        bytes_.read(constants_.offset + begin + at, std::min(kPiece, size - at), place + at);
      }
    });
    if (verify_weights_) hash.update(place, size);
  }
  if (verify_weights_ && hex(hash.finish()) != constants_.hash) damaged("constants");
}

std::unique_ptr<StoredConstants> Artifact::constants() const {
  try {
    auto stored = std::make_unique<StoredConstants>(constants_.size);
    read_constants(stored->data());
    stored->read_header();
    return stored;
  } catch (const Error& error) {
    fail(error.kind(), path_, ": ", error.what());
  }
}

void Artifact::check_constants() const {
  if (!verify_weights_) return;
  try {
    read_constants(nullptr);
  } catch (const Error& error) {
    fail(error.kind(), path_, ": ", error.what());
  }
}

std::string Artifact::choose_library(const Json& manifest) const {
  const std::string& target = manifest.at("target").string();
  if (target != device_target()) {
    fail(ErrorKind::kArtifact, "it is for target ", target, ", this runtime runs target ", device_target());
  }
  if (target != "cpu") return "library";
  const std::set<std::string> flags = cpu_flags();
  std::string chosen, refusals;
  size_t most = 0;
  for (const Compiled& compiled : libraries_of(manifest)) {
    std::string missing;
    for (const Json& flag : *compiled.instruction_sets) {
      if (flags.count(flag.string()) == 0) missing += (missing.empty() ? "" : ", ") + flag.string();
    }
    if (!missing.empty()) {
      refusals += (refusals.empty() ? "" : "; ") + compiled.arch + " needs " + missing;
    } else if (chosen.empty() || compiled.instruction_sets->size() > most) {
      chosen = compiled.part;
      most = compiled.instruction_sets->size();
    }
  }
  if (!chosen.empty()) return chosen;
  fail(ErrorKind::kArtifact, "it was compiled for a CPU with features that this one lacks (", refusals,
       "): compile it here, or with a --cpu that both have");
}

void StoredConstants::read_header() {
  const uint64_t header = size_ < 8 ? UINT64_MAX : read_at<uint64_t>(data_);
  if (size_ < 8 || header > size_ - 8) fail(ErrorKind::kArtifact, "the constants are no safetensors file");
  const uint8_t* const body = data_ + 8 + header;
  const auto size = static_cast<int64_t>(size_ - 8 - header);
  const Json index = Json::parse({reinterpret_cast<const char*>(data_ + 8), header});
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
    all_.push_back(std::move(constant));
  }
}

std::string Artifact::extract_library() const {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = std::string(folder == nullptr || *folder == '\0' ? "/tmp" : folder) + "/ait_XXXXXX.so";
  const int handle = mkstemps(path.data(), 3);
  if (handle < 0) fail(ErrorKind::kRun, path, " cannot be made: ", std::strerror(errno), "; set TMPDIR to a folder for the library of the model");
  size_t written = 0;
  while (written < library_.size()) {
    const ssize_t count = write(handle, library_.data() + written, library_.size() - written);
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
