/// @file dynamic_library.h
/// @brief Functions of libraries that are found at run time: OpenBLAS, cuBLASLt, hipBLASLt, cuDNN. Building needs none of them.
#ifndef AIT_RUNTIME_DYNAMIC_LIBRARY_H_
#define AIT_RUNTIME_DYNAMIC_LIBRARY_H_

#include <dlfcn.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace ait::runtime {

/// @brief A library as it is looked for.
struct LibraryName {
  const char* name;                  ///< "cuBLASLt", for errors
  const char* key;                   ///< "cublaslt": Python gives the paths where it may be under this name
  const char* variable;              ///< the environment variable with its path, tried first
  const char* advice;                ///< what to do where there is none, as "install nvidia-cublas"
  std::vector<const char*> sonames;  ///< tried last
};

/// @brief A function to look for, and where its address goes.
struct Symbol {
  template <class Function>
  Symbol(const char* symbol_name, Function*& pointer) : name(symbol_name), address(reinterpret_cast<void**>(&pointer)) {}
  const char* name;
  void** address;
};

/// @brief Where a library may be, best first, as Python said before the first model was made.
const std::vector<std::string>& library_candidates(const std::string& key);
void set_library_candidates(const std::string& key, std::vector<std::string> paths);

/// @brief All places of a library in the order in which they are tried.
inline std::vector<std::string> places_of(const LibraryName& library) {
  std::vector<std::string> places;
  if (const char* named = std::getenv(library.variable); named != nullptr && *named != 0) places.emplace_back(named);
  for (const std::string& path : library_candidates(library.key)) places.push_back(path);
  for (const char* name : library.sonames) places.emplace_back(name);
  return places;
}

/// @brief Loads the first of `places` that has every symbol and of which `refuse`, called with the addresses set, says nothing.
/// @param prefixes of all symbols, tried one after the other in each library.
/// @return whether there is one; if not, `error` lists the libraries that were tried, each with the reason of its refusal.
inline bool load_functions(const LibraryName& library, const std::vector<std::string>& places, const std::vector<Symbol>& symbols,
                           std::string* error, const std::function<std::string()>& refuse = nullptr,
                           const std::vector<const char*>& prefixes = {""}) {
  std::string tried;
  for (const std::string& path : places) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      tried += "\n  " + path + ": " + (reason != nullptr ? reason : "cannot be loaded");
      continue;
    }
    std::string why;
    for (const char* prefix : prefixes) {
      why.clear();
      for (const Symbol& symbol : symbols) {
        *symbol.address = dlsym(handle, (std::string(prefix) + symbol.name).c_str());
        if (*symbol.address == nullptr && why.empty()) why = std::string("has no ") + symbol.name;
      }
      if (why.empty() && refuse != nullptr) why = refuse();
      if (why.empty()) return true;
    }
    tried += "\n  " + path + ": " + why;
    dlclose(handle);
  }
  *error = std::string(library.name) + " cannot be loaded: " + library.advice + ", or set " + library.variable +
           " to the path of the library; tried:" + tried;
  return false;
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DYNAMIC_LIBRARY_H_
