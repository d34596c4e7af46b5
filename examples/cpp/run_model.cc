// Loads a compiled model and runs it, without Python.
//
//   ait compile examples/bert_layer.mlir --target cpu -o bert.ait --weights random
//   build/cpp/run_model bert.ait batch=2 seq=16
//
// Dims that are not given have their largest value. Float inputs hold 0, 0.1, 0.2, ... 0.9 again and again, others zeros.
#include <ait/model.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

namespace {

size_t count(const ait::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, [](size_t n, int64_t extent) { return n * static_cast<size_t>(extent); });
}

size_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case AIT_BOOL: case AIT_I8: return 1;
    case AIT_F16: case AIT_BF16: return 2;
    case AIT_F64: case AIT_I64: return 8;
    default: return 4;
  }
}

// The value of each dim, from arguments like "batch=2".
std::vector<int64_t> dims_of(const ait_model_v1& table, int argc, char** argv) {
  std::vector<int64_t> dims;
  for (int32_t i = 0; i < table.num_dims; ++i) {
    dims.push_back(table.dims[i].hi);
    const std::string start = std::string(table.dims[i].name) + "=";
    for (int a = 2; a < argc; ++a) {
      if (std::strncmp(argv[a], start.c_str(), start.size()) == 0) dims.back() = std::atoll(argv[a] + start.size());
    }
  }
  return dims;
}

void run(int argc, char** argv) {
  ait::Model model(argv[1]);
  const ait_model_v1& table = model.table();
  std::vector<int64_t> dims = dims_of(table, argc, argv);

  // The table computes all shapes from the dims: of the inputs, then of the outputs, one after another.
  size_t ranks = 0;
  for (int32_t i = 0; i < table.num_inputs; ++i) ranks += static_cast<size_t>(table.inputs[i].rank);
  for (int32_t i = 0; i < table.num_outputs; ++i) ranks += static_cast<size_t>(table.outputs[i].rank);
  std::vector<int64_t> extents(ranks);
  table.shapes(dims.data(), extents.data());

  std::vector<std::vector<char>> memory;
  std::vector<ait::TensorView> inputs, outputs;
  auto extent = extents.begin();
  for (int32_t i = 0; i < table.num_inputs + table.num_outputs; ++i) {
    const bool is_input = i < table.num_inputs;
    const ait_tensor_v1& tensor = is_input ? table.inputs[i] : table.outputs[i - table.num_inputs];
    const ait::Shape shape(extent, extent + tensor.rank);
    extent += tensor.rank;
    memory.emplace_back(count(shape) * element_bytes(tensor.dtype));
    if (is_input && tensor.dtype == AIT_F32) {
      auto* const values = reinterpret_cast<float*>(memory.back().data());
      for (size_t n = 0; n < count(shape); ++n) values[n] = static_cast<float>(n % 10) / 10;
    }
    (is_input ? inputs : outputs).emplace_back(memory.back().data(), tensor.dtype, shape);
  }

  const std::vector<ait::Shape> shapes = model.run(inputs, outputs);
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::printf("%s [", table.outputs[i].name);
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) std::printf(axis == 0 ? "%lld" : ", %lld", static_cast<long long>(shapes[i][axis]));
    std::printf("]");
    const auto* const values = static_cast<const float*>(outputs[i].data);
    for (size_t n = 0; table.outputs[i].dtype == AIT_F32 && n < count(shapes[i]) && n < 4; ++n) std::printf(" %.6g", values[n]);
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: run_model MODEL.ait [DIM=SIZE ...]\n");
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
