#include "dynamic_library.h"

#include <map>
#include <utility>

namespace ait::runtime {
namespace {

std::map<std::string, std::vector<std::string>>& all_candidates() {
  static std::map<std::string, std::vector<std::string>> lists;
  return lists;
}

}  // namespace

const std::vector<std::string>& library_candidates(const std::string& key) { return all_candidates()[key]; }
void set_library_candidates(const std::string& key, std::vector<std::string> paths) { all_candidates()[key] = std::move(paths); }

}  // namespace ait::runtime
