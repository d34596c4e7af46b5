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
#include <stdexcept>
#include <string>
#include <vector>

namespace {

size_t count(const ait::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, [](size_t n, int64_t extent) { return n * static_cast<size_t>(extent); });
}

size_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case AIT_BOOL: case AIT_I8: case AIT_UI8: return 1;
    case AIT_F16: case AIT_BF16: case AIT_I16: return 2;
    case AIT_F64: case AIT_I64: return 8;
    default: return 4;
  }
}

// The value of each dim, from arguments like "batch=2".
ait::Dims dims_of(const ait::Model& model, int argc, char** argv) {
  ait::Dims dims;
  for (const ait::DimInfo& dim : model.dims()) {
    if (dim.kind == AIT_DIM_OF_RUN) continue;
    dims[dim.name] = dim.hi;
    const std::string start = dim.name + "=";
    for (int a = 2; a < argc; ++a) {
      if (std::strncmp(argv[a], start.c_str(), start.size()) == 0) dims[dim.name] = std::atoll(argv[a] + start.size());
    }
  }
  return dims;
}

void run(int argc, char** argv) {
  ait::Model model(argv[1]);
  for (const std::string& name : model.unset_constants()) throw std::runtime_error("the file has no value of constant " + name);
  const ait::Dims dims = dims_of(model, argc, argv);
  const std::vector<ait::Shape> input_shapes = model.input_shapes(dims), output_shapes = model.output_shapes(dims);

  std::vector<std::vector<char>> memory;
  std::vector<ait::TensorView> inputs, outputs;
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    const ait::TensorInfo& tensor = model.inputs()[i];
    memory.emplace_back(count(input_shapes[i]) * element_bytes(tensor.dtype));
    if (tensor.dtype == AIT_F32) {
      auto* const values = reinterpret_cast<float*>(memory.back().data());
      for (size_t n = 0; n < count(input_shapes[i]); ++n) values[n] = static_cast<float>(n % 10) / 10;
    }
    inputs.emplace_back(memory.back().data(), tensor.dtype, input_shapes[i]);
  }
  for (size_t i = 0; i < output_shapes.size(); ++i) {
    const ait::TensorInfo& tensor = model.outputs()[i];
    if (tensor.in_place_of >= 0) {  // a cache: the run updates the memory of the input, and the next run is given the same
      outputs.push_back(inputs[static_cast<size_t>(tensor.in_place_of)]);
      continue;
    }
    memory.emplace_back(count(output_shapes[i]) * element_bytes(tensor.dtype));
    outputs.emplace_back(memory.back().data(), tensor.dtype, output_shapes[i]);
  }

  const std::vector<ait::Shape> shapes = model.run(inputs, outputs);
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::printf("%s [", model.outputs()[i].name.c_str());
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) std::printf(axis == 0 ? "%lld" : ", %lld", static_cast<long long>(shapes[i][axis]));
    std::printf("]");
    const auto* const values = static_cast<const float*>(outputs[i].data);
    for (size_t n = 0; model.outputs()[i].dtype == AIT_F32 && n < count(shapes[i]) && n < 4; ++n) std::printf(" %.6g", values[n]);
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
