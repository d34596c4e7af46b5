// The C++ interface as a program meets it: each check names itself when it fails.
//
//   cpp_interface f.ait big.ait LIBRARY
#include <ait/model.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace {

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

/// The message of the `ModelError` that `body` throws.
template <class Body>
std::string refusal(Body&& body) {
  try {
    body();
  } catch (const ait::ModelError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

long resident_pages() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

void shapes_and_constants(ait::Model& model) {
  check(model.name() == "f" && model.inputs().size() == 2 && model.outputs()[1].name == "j", "names");
  check(model.inputs()[0].dtype == AIT_F16 && model.inputs()[0].rank == 2 && model.outputs()[0].in_place_of == -1, "tensors");
  check(model.dims().size() == 1 && model.dims()[0].name == "n" && model.dims()[0].hi == 4 && model.dims()[0].kind == AIT_DIM_OF_INPUTS, "dims");
  check(model.input_shapes({{"n", 3}}) == std::vector<ait::Shape>{{3, 4}, {3}}, "input shapes");
  check(model.output_shapes({{"n", 2}}) == std::vector<ait::Shape>{{2, 4}, {2}}, "output shapes");
  check(has(refusal([&] { model.input_shapes({}); }), "dim 'n' has no value"), "a dim that is missing");
  check(has(refusal([&] { model.input_shapes({{"n", 2}, {"m", 2}}); }), "no dim 'm'"), "a dim that there is not");
  check(has(refusal([&] { model.input_shapes({{"n", 5}}); }), "n"), "a dim out of its range");
  check(model.unset_constants() == std::vector<std::string>{"v"}, "constants without a value");
  for (const ait::ConstantInfo& constant : model.constants()) {
    check(constant.is_bound == (constant.name == "w") && constant.shape == ait::Shape{4}, "constant " + constant.name);
  }
}

void runs(ait::Model& model) {
  std::vector<_Float16> v(4, 2), x(2 * 8, 1), y(2 * 4);
  std::vector<long long> i{5, 0, 6, 0}, j(2);
  model.set_constant("v", {v.data(), {4}});
  check(model.unset_constants().empty(), "a constant that was set");
  model.run({{x.data(), {2, 4}, {8, 1}}, {i.data(), {2}, {2}}}, {{y.data(), {2, 4}}, {j.data(), {2}}});
  for (int k = 0; k < 8; ++k) check(y[static_cast<size_t>(k)] == static_cast<_Float16>(2 * (1 + k % 4)), "f16 at strides");
  check(j == std::vector<long long>{10, 12}, "long long at strides");
  check(has(refusal([&] { ait::TensorView(x.data(), {2, 4}, {1}); }), "2 dims and 1 strides"), "too few strides");
}

void moved(const std::string& path) {
  ait::Model first(path), second = std::move(first);
  const std::string told = "this ait::Model is empty, because it was moved";
  check(second.name() == "f", "the model that was moved to");
  check(has(refusal([&] { (void)first.name(); }), told), "name of a moved model");
  check(has(refusal([&] { (void)first.inputs(); }), told), "inputs of a moved model");
  check(has(refusal([&] { (void)first.table(); }), told), "table of a moved model");
  check(has(refusal([&] { (void)first.maximum_shapes(); }), told), "shapes of a moved model");
  check(has(refusal([&] { first.run({}, {}); }), told), "run of a moved model");
  check(has(refusal([&] { first.swap_constants(); }), told), "swap of a moved model");
  first = std::move(second);
  check(first.name() == "f", "a model that is moved back");
  check(ait_model_table(nullptr) == nullptr, "the table of no model");
  ait_model_maximum_shapes(nullptr, nullptr);
}

void limits(const std::string& path) {
  for (const int count : {-1, 4097, 1000000000}) {
    const std::string told = refusal([&] { ait::Model(path, count); });
    check(has(told, "num_runtimes is " + std::to_string(count) + ", expected a number from 1 to 4096"), told);
  }
}

void sharing(const std::string& path) {
  const ait::Model first(path);
  const long before = resident_pages();
  const ait::Model second(path), third(path), fourth(path);
  check(first.bytes() >= 64 << 20, "the first model holds the constants");
  check(second.bytes() == 0 && third.bytes() == 0 && fourth.bytes() == 0, "the others hold none");
  check((resident_pages() - before) * 4096 < 64 << 20, "four models have the memory of one");
}

void memory(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ait::Model model = ait::Model::from_memory(content.data(), content.size());
  std::fill(content.begin(), content.end(), 0);
  runs(model);
  check(has(refusal([&] { ait::Model::from_memory(content.data(), content.size()); }), "the artifact in memory: it is no artifact"), "zeros");
}

struct Arena {
  size_t now = 0, most = 0;
};

void allocator(const std::string& path) {
  Arena arena;
  const auto allocate = [](void* self, size_t bytes) -> void* {
    auto& found = *static_cast<Arena*>(self);
    found.most = std::max(found.most, found.now += bytes);
    return std::malloc(bytes);
  };
  const auto release = [](void* self, void* data, size_t bytes) {
    static_cast<Arena*>(self)->now -= bytes;
    std::free(data);
  };
  const ait_allocator own{sizeof(ait_allocator), &arena, allocate, release};
  {
    ait::LoadOptions options;
    options.allocator = &own;
    const ait::Model model(path, options), other(path, options);
    check(arena.now >= 128 << 20, "constants are in the allocator's memory");
  }
  check(arena.now == 0 && arena.most > 0, "all memory went back to the allocator");
  const auto none = [](void*, size_t) -> void* { return nullptr; };
  const ait_allocator empty{sizeof(ait_allocator), nullptr, none, release};
  ait::LoadOptions options;
  options.allocator = &empty;
  check(has(refusal([&] { ait::Model(path, options); }), "the allocator of the caller has no"), "an allocator without memory");
}

void versions(const std::string& path, const std::string& library) {
  ait_load_options options{};
  options.size = sizeof options;
  options.api_version = 99;
  ait_model* model = nullptr;
  check(ait_model_load(path.c_str(), &options, &model) == AIT_ARTIFACT_ERROR, "a later header");
  const std::string numbers = " has API version " + std::to_string(AIT_API_VERSION) + ", but this program was compiled with the header of version 99";
  check(has(ait_last_error(), library + numbers), ait_last_error());
  const std::string told = refusal([] { ait::detail::check_version(99); });
  check(has(told, library + numbers), told);
  struct {
    size_t size;
    const char* name;
  } start{sizeof start, nullptr};
  check(ait_model_load(path.c_str(), nullptr, &model) == AIT_OK, "no options");
  check(ait_model_about(model, reinterpret_cast<ait_model_info*>(&start)) == AIT_OK && std::string(start.name) == "f", "an earlier, shorter struct");
  ait_tensor_info info{};
  check(ait_model_input(model, 0, &info) == AIT_INPUT_ERROR && has(ait_last_error(), "set it to sizeof"), "a struct without its size");
  info.size = sizeof info;
  check(ait_model_input(model, 7, &info) == AIT_INPUT_ERROR && has(ait_last_error(), "there is no input 7: the model has 2"), "an index");
  ait_model_free(model);
}

}  // namespace

int main(int, char** argv) {
  ait::Model model(argv[1]);
  shapes_and_constants(model);
  runs(model);
  moved(argv[1]);
  limits(argv[1]);
  sharing(argv[2]);
  memory(argv[1]);
  allocator(argv[2]);
  versions(argv[1], argv[3]);
  std::puts("all right");
}
