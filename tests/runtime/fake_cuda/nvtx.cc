// What a profiler is to NVTX (NVTX_INJECTION64_PATH): keeps the ranges that are opened and closed, as a text.
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace {

std::string& text() {
  static std::string kept;
  return kept;
}

int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  text() += "open " + std::string(attributes->message.ascii) + "\n";
  return 0;
}

int pop(nvtxDomainHandle_t) {
  text() += "close\n";
  return 0;
}

nvtxDomainHandle_t make_domain(const char* name) {
  text() += "domain " + std::string(name) + "\n";
  return reinterpret_cast<nvtxDomainHandle_t>(&text());
}

template <class Function>
void replace(NvtxFunctionTable table, unsigned which, Function* function) {
  *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  replace(table, NVTX_CBID_CORE2_DomainCreateA, make_domain);
  replace(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  replace(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

/// The text so far, which is forgotten.
extern "C" __attribute__((visibility("default"))) const char* taken() {
  static std::string given;
  given.swap(text());
  text().clear();
  return given.c_str();
}
