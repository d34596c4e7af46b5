#include "deploy/json.h"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "error.h"

namespace ait::runtime {

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = parse(0);
    space();
    if (at_ != text_.size()) stop("the end");
    return value;
  }

 private:
  static constexpr int kMaxDepth = 64;

  [[noreturn]] void stop(const char* expected) const { fail(ErrorKind::kArtifact, "malformed JSON at byte ", at_, ": expected ", expected); }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json parse(int depth) {
    if (depth > kMaxDepth) stop("fewer nested values");
    Json value;
    if (take('{')) {
      value.type_ = Json::Type::kObject;
      if (take('}')) return value;
      do {
        space();
        std::string name = string();
        if (!take(':')) stop("':'");
        value.object_[std::move(name)] = parse(depth + 1);
      } while (take(','));
      if (!take('}')) stop("',' or '}'");
    } else if (take('[')) {
      value.type_ = Json::Type::kList;
      if (take(']')) return value;
      do value.list_.push_back(parse(depth + 1));
      while (take(','));
      if (!take(']')) stop("',' or ']'");
    } else if (at_ < text_.size() && text_[at_] == '"') {
      value.type_ = Json::Type::kString;
      value.text_ = string();
    } else if (take_word("true") || take_word("false")) {
      value.type_ = Json::Type::kBool;
    } else if (!take_word("null")) {
      value.type_ = Json::Type::kNumber;
      const size_t begin = at_;
      while (at_ < text_.size() && std::string_view("+-.eE0123456789").find(text_[at_]) != std::string_view::npos) ++at_;
      if (at_ == begin) stop("a value");
      value.text_ = std::string(text_.substr(begin, at_ - begin));
    }
    return value;
  }

  uint32_t code_unit() {
    if (at_ + 4 > text_.size()) stop("four hexadecimal digits");
    const std::string digits(text_.substr(at_, 4));
    char* end = nullptr;
    const unsigned long unit = std::strtoul(digits.c_str(), &end, 16);
    if (*end != '\0') stop("four hexadecimal digits");
    at_ += 4;
    return static_cast<uint32_t>(unit);
  }

  static void append(std::string* out, uint32_t code) {
    if (code < 0x80) {
      *out += static_cast<char>(code);
    } else if (code < 0x800) {
      *out += static_cast<char>(0xC0 | code >> 6);
      *out += static_cast<char>(0x80 | (code & 63));
    } else if (code < 0x10000) {
      *out += static_cast<char>(0xE0 | code >> 12);
      *out += static_cast<char>(0x80 | (code >> 6 & 63));
      *out += static_cast<char>(0x80 | (code & 63));
    } else {
      *out += static_cast<char>(0xF0 | code >> 18);
      *out += static_cast<char>(0x80 | (code >> 12 & 63));
      *out += static_cast<char>(0x80 | (code >> 6 & 63));
      *out += static_cast<char>(0x80 | (code & 63));
    }
  }

  std::string string() {
    if (at_ >= text_.size() || text_[at_] != '"') stop("a string");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) stop("'\"'");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escaped = at_ < text_.size() ? text_[at_++] : '\0';
      static constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
      if (const size_t found = kNames.find(escaped); found != std::string_view::npos) {
        out += kValues[found];
      } else if (escaped == 'u') {
        uint32_t code = code_unit();
        if (code >= 0xD800 && code < 0xDC00 && take_word("\\u")) code = 0x10000 + ((code - 0xD800) << 10) + (code_unit() - 0xDC00);
        append(&out, code);
      } else {
        stop("an escape sequence");
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

Json Json::parse(std::string_view text) { return JsonParser(text).whole(); }

void Json::refuse(const char* expected) const {
  static constexpr const char* kTypes[] = {"null", "a truth value", "a number", "a string", "a list", "an object"};
  fail(ErrorKind::kArtifact, "found ", kTypes[static_cast<int>(type_)], ", expected ", expected);
}

const std::string& Json::string() const {
  if (type_ != Type::kString) refuse("a string");
  return text_;
}

int64_t Json::integer() const {
  if (type_ != Type::kNumber) refuse("a whole number");
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text_.c_str(), &end, 10);
  if (errno != 0 || *end != '\0') refuse("a whole number of 64 bits");
  return value;
}

const std::vector<Json>& Json::list() const {
  if (type_ != Type::kList) refuse("a list");
  return list_;
}

const std::map<std::string, Json>& Json::object() const {
  if (type_ != Type::kObject) refuse("an object");
  return object_;
}

const Json& Json::at(const std::string& name) const {
  const auto found = object().find(name);
  if (found == object_.end()) fail(ErrorKind::kArtifact, "there is no '", name, "'");
  return found->second;
}

}  // namespace ait::runtime
