/// @file artifact.h
/// @brief Reads an artifact (`NAME.ait`) without Python. `ait_mlir/runtime/artifact.py` writes it and describes the format.
#ifndef AIT_RUNTIME_DEPLOY_ARTIFACT_H_
#define AIT_RUNTIME_DEPLOY_ARTIFACT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "deploy/json.h"

namespace ait::runtime {

/// @brief A file that is mapped into memory, read-only.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  /// Takes the whole pages of a range out of the memory of the process; they are read again when they are used.
  void release(const uint8_t* begin, size_t size) const;

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// @brief A constant of an artifact; its bytes belong to the artifact.
struct StoredConstant {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
  const uint8_t* data;
  size_t bytes;
};

/// @brief A checked artifact. Throws an Error of kind kArtifact if it is damaged or not for this machine.
class Artifact {
 public:
  /// @param verify_weights whether the hash of the constants is checked; that of everything else always is
  Artifact(const std::string& path, bool verify_weights);

  const std::vector<StoredConstant>& constants() const { return constants_; }
  /// Writes the library to a new file that only this user can read, and returns its path.
  std::string extract_library() const;
  void release(const StoredConstant& constant) const { file_.release(constant.data, constant.bytes); }

 private:
  struct Part {
    const uint8_t* data;
    size_t size;
  };

  Json read_manifest(size_t* end) const;
  Part read_part(const Json& parts, const char* name, bool verify, size_t* end) const;
  void check_machine(const Json& manifest) const;
  void read_constants(const Part& part);

  std::string path_;
  MappedFile file_;
  Part library_{};
  std::vector<StoredConstant> constants_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEPLOY_ARTIFACT_H_
