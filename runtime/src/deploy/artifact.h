/// @file artifact.h
/// @brief Reads an artifact (`NAME.ait`) without Python. `ait_mlir/runtime/artifact.py` writes it and describes the format.
#ifndef AIT_RUNTIME_DEPLOY_ARTIFACT_H_
#define AIT_RUNTIME_DEPLOY_ARTIFACT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deploy/json.h"

namespace ait::runtime {

/// @brief The bytes of an artifact: a file, or memory of the caller's. They are copied before they are checked, so that a file that is written
/// meanwhile is refused, and never used in part.
class ArtifactBytes {
 public:
  explicit ArtifactBytes(const std::string& path);
  ArtifactBytes(const void* data, size_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  ~ArtifactBytes();
  ArtifactBytes(const ArtifactBytes&) = delete;
  ArtifactBytes& operator=(const ArtifactBytes&) = delete;

  size_t size() const { return size_; }
  /// How many bytes of a range take no room on the disk and are read as zeros.
  size_t holes(size_t offset, size_t size) const;
  /// Copies a range. Throws an Error of kind kArtifact if the file is shorter by now, or cannot be read.
  void read(size_t offset, size_t size, void* to) const;
  std::vector<uint8_t> read(size_t offset, size_t size) const;

 private:
  int file_ = -1;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// @brief A constant of an artifact.
struct StoredConstant {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
  const uint8_t* data;
  size_t bytes;
};

/// @brief The constants of an artifact in memory of this process alone.
class StoredConstants {
 public:
  explicit StoredConstants(size_t bytes);
  ~StoredConstants();
  StoredConstants(const StoredConstants&) = delete;
  StoredConstants& operator=(const StoredConstants&) = delete;

  uint8_t* data() const { return data_; }
  const std::vector<StoredConstant>& all() const { return all_; }
  /// Reads the header of a safetensors file. Throws an Error of kind kArtifact if it is malformed.
  void read_header();
  /// Gives the whole pages of a constant back, which is not read any more.
  void release(const StoredConstant& constant) const;

 private:
  uint8_t* data_ = nullptr;
  size_t size_;
  std::vector<StoredConstant> all_;
};

/// @brief A checked artifact. Throws an Error of kind kArtifact if it is damaged or not for this machine.
class Artifact {
 public:
  /// @param verify_weights whether the hash of the constants is checked; all other hashes are always checked
  Artifact(const std::string& path, bool verify_weights);
  Artifact(const void* data, size_t size, bool verify_weights);

  /// The key under which models find constants to share: it identifies their values and places. Empty if they are not
  /// verified.
  const std::string& constants_key() const { return constants_key_; }
  /// Copies the constants. Throws an Error of kind kArtifact unless the copy has the right hash.
  std::unique_ptr<StoredConstants> constants() const;
  /// Checks the hash of the constants, without memory for all of them.
  void check_constants() const;
  /// Writes the library for this machine to a new file that only this user can read, and returns its path.
  std::string extract_library() const;

 private:
  struct Part {
    size_t offset, size;
    std::string hash;
  };

  void open();
  Json read_manifest(size_t* end) const;
  Part find_part(const Json& parts, const std::string& name, size_t* end) const;
  std::vector<uint8_t> read_part(const Part& part, const std::string& name) const;
  /// The name of the part with the library that this machine can run.
  std::string choose_library(const Json& manifest) const;
  /// Refuses a header of the constants that is none, before gigabytes are read.
  void check_constants_header() const;
  /// Reads the constants in pieces, to `to` or, if it is null, to nowhere; checks their hash.
  void read_constants(uint8_t* to) const;
  [[noreturn]] void damaged(const std::string& name) const;

  std::string path_;
  ArtifactBytes bytes_;
  bool verify_weights_;
  std::vector<uint8_t> library_;
  Part constants_{};
  std::string constants_key_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEPLOY_ARTIFACT_H_
