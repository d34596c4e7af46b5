/// @file json.h
/// @brief JSON text as values: for the manifest of an artifact and the header of its constants.
#ifndef AIT_RUNTIME_DEPLOY_JSON_H_
#define AIT_RUNTIME_DEPLOY_JSON_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ait::runtime {

/// @brief A JSON value. Its functions throw an Error of kind kArtifact if it is of another type.
class Json {
 public:
  /// @brief The value of a text; throws an Error of kind kArtifact, which says where the text is malformed.
  static Json parse(std::string_view text);

  const std::string& string() const;
  int64_t integer() const;  ///< a number without a fraction, from -2^63 to 2^63 - 1
  const std::vector<Json>& list() const;
  const std::map<std::string, Json>& object() const;
  /// @brief The member `name` of an object.
  const Json& at(const std::string& name) const;

 private:
  enum class Type { kNull, kBool, kNumber, kString, kList, kObject };
  friend class JsonParser;

  [[noreturn]] void refuse(const char* expected) const;

  Type type_ = Type::kNull;
  std::string text_;  ///< of a string, or of a number as it is written
  std::vector<Json> list_;
  std::map<std::string, Json> object_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEPLOY_JSON_H_
