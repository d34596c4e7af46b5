"""The code of AITemplate's runtime documentation, on the CPU and on a card: the package's name and
the devices are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ait_mlir.compiler import compile_model, ops
from ait_mlir.compiler.base import IntVar, Tensor
from ait_mlir.compiler.model import AITData, Model, torch_to_ait_data
from ait_mlir.compiler.ops.common.epilogue import FuncEnum
from ait_mlir.errors import InputError

TORCH = {"float16": torch.float16, "float32": torch.float32, "int32": torch.int32, "int64": torch.int64}


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """output0 = (input0 + input1) * my_constant and output1 = input0 * input1, of shape [0 to 8, 4], with a bound and an
    unbound constant."""
    target = request.param
    batch = IntVar([0, 8], "batch")
    input0 = Tensor([batch, 4], name="input0", dtype="float16", is_input=True)
    input1 = Tensor([batch, 4], name="input1", dtype="float16", is_input=True)
    unbound = Tensor([4], name="my_constant", dtype="float16")
    bound = Tensor([4], name="bound_constant", dtype="float16")
    total = ops.elementwise(FuncEnum.ADD)(input0, input1)
    output0 = ops.elementwise(FuncEnum.MUL)(total, unbound)
    output1 = ops.elementwise(FuncEnum.MUL)(ops.elementwise(FuncEnum.MUL)(input0, input1), bound)
    for i, output in enumerate((output0, output1)):
        output._attrs["name"], output._attrs["is_output"] = f"output{i}", True
    data = {"bound_constant": torch.full((4,), 2.0).half()}
    folder = tmp_path_factory.mktemp("documented")
    with compile_model([output0, output1], target, folder, "documented", constants=data, num_runtimes=2) as module:
        yield SimpleNamespace(module=module, device="cpu" if target == "cpu" else "cuda")


@pytest.fixture
def module(made: SimpleNamespace) -> Model:
    made.module.set_constant_with_tensor("my_constant", torch.ones(4).half())
    return made.module


def tensors(device: str, batch: int = 3) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Inputs, outputs, and the expected results."""
    given = [torch.randn(batch, 4).half().to(device) for _ in range(2)]
    outputs = [torch.empty(8, 4, device=device).half() for _ in range(2)]
    return given, outputs, [given[0] + given[1], (given[0].float() * given[1].float() * 2).half()]


def check(result: dict[str, Any], buffers: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for i, (buffer, want) in enumerate(zip(buffers, expected, strict=True)):
        found = result[f"output{i}"]
        assert list(found.shape) == list(want.shape), "the actual shape"
        torch.testing.assert_close(buffer.reshape(-1)[: want.numel()].reshape(want.shape), want, rtol=2e-3, atol=2e-3)


def test_ait_data(made: SimpleNamespace) -> None:
    x = torch.randn(3, 3, 3).half().to(made.device)
    # Equivalent to AITData(x.data_ptr(), [3, 3, 3], "float16")
    x_ait = torch_to_ait_data(x)
    assert x_ait == AITData(x.data_ptr(), [3, 3, 3], "float16")
    for name, dtype in TORCH.items():
        assert torch_to_ait_data(torch.zeros(2, dtype=dtype)).dtype == name


def test_run_with_dictionaries(made: SimpleNamespace, module: Model) -> None:
    given, outputs, expected = tensors(made.device)
    in0_ait, in1_ait = map(torch_to_ait_data, given)
    out0_ait, out1_ait = map(torch_to_ait_data, outputs)
    # Arguments as a dictionary
    result = module.run(
        {"input0": in0_ait, "input1": in1_ait},
        {"output0": out0_ait, "output1": out1_ait},
    )
    assert all(isinstance(value, AITData) for value in result.values())
    check(result, outputs, expected)


def test_run_with_ordered_lists(made: SimpleNamespace, module: Model) -> None:
    given, buffers, expected = tensors(made.device)
    ait_inputs = {f"input{i}": torch_to_ait_data(t) for i, t in enumerate(given)}
    ait_outputs = {f"output{i}": torch_to_ait_data(t) for i, t in enumerate(buffers)}
    # Arguments as an ordered list. Note that you might need to query
    # the index mapping.
    input_name_to_idx = module.get_input_name_to_index_map()
    output_name_to_idx = module.get_output_name_to_index_map()

    inputs: list[Any] = [None] * len(input_name_to_idx)
    outputs: list[Any] = [None] * len(output_name_to_idx)

    for name in input_name_to_idx:
        inputs[input_name_to_idx[name]] = ait_inputs[name]

    for name in output_name_to_idx:
        outputs[output_name_to_idx[name]] = ait_outputs[name]

    result = module.run(inputs, outputs)
    check(result, buffers, expected)


def test_maximum_shapes(module: Model) -> None:
    # Can use either name or index.
    name_to_idx = module.get_output_name_to_idx()
    for output in ("output0", "output1"):
        max_shape = module.get_output_maximum_shape(name_to_idx[output])
        assert max_shape == [8, 4]
        max_shape = module.get_output_maximum_shape(output)
        assert max_shape == [8, 4]


def test_null_pointers_are_for_tensors_without_elements(made: SimpleNamespace, module: Model) -> None:
    empty = [torch.empty(0, 4).half().to(made.device) for _ in range(2)]
    assert empty[0].data_ptr() == 0
    given, outputs, _ = tensors(made.device)
    result = module.run([torch_to_ait_data(t) for t in empty], [torch_to_ait_data(t) for t in outputs])
    assert [list(value.shape) for value in result.values()] == [[0, 4], [0, 4]]
    result = module.run([torch_to_ait_data(t) for t in empty], [torch_to_ait_data(t) for t in empty])
    assert [list(value.shape) for value in result.values()] == [[0, 4], [0, 4]]
    nulls = [AITData(0, list(t.shape), "float16") for t in outputs]
    assert [value.shape for value in module.run([torch_to_ait_data(t) for t in empty], nulls).values()] == [[0, 4]] * 2
    for output in outputs:
        output.fill_(7)
    null, places = AITData(0, [3, 4], "float16"), [torch_to_ait_data(t) for t in outputs]
    for name, inputs, into in (
        ("input 'input1'", [torch_to_ait_data(given[0]), null], places),
        ("output 'output0'", [torch_to_ait_data(t) for t in given], [null, places[1]]),
    ):
        with pytest.raises(InputError, match=f"{name} is a null pointer, expected data of shape"):
            module.run(inputs, into)
    assert all((output == 7).all() for output in outputs), "nothing was launched"


def test_constants(made: SimpleNamespace, module: Model) -> None:
    given, outputs, expected = tensors(made.device)
    assert module.get_constant_names() == ["my_constant"]
    assert sorted(module.get_constant_names(unbound_constants_only=False)) == ["bound_constant", "my_constant"]
    value = torch.full((4,), 3.0).half().to(made.device)
    module.set_constant("my_constant", torch_to_ait_data(value))
    # The pointer in the the tensor must live for the entire duration of run()
    result = module.run([torch_to_ait_data(t) for t in given], [torch_to_ait_data(t) for t in outputs])
    check(result, outputs, [expected[0] * 3, expected[1]])


def test_unbound_constants_must_be_set(made: SimpleNamespace, module: Model) -> None:
    given, outputs, _ = tensors(made.device)
    folder = module._path
    assert folder is not None
    with Model(folder) as fresh, pytest.raises(InputError, match="1 constant has no value, first 'my_constant'"):
        fresh.run_with_tensors(given, outputs)


def test_run_with_tensors(made: SimpleNamespace, module: Model) -> None:
    (input0, input1), _, expected = tensors(made.device)
    output0 = torch.empty(8, 4).to(made.device).half()
    output1 = torch.empty(8, 4).to(made.device).half()
    # Returns a dictionary of reshaped outputs
    result = module.run_with_tensors([input0, input1], [output0, output1])
    assert [tuple(value.shape) for value in result.values()] == [(3, 4), (3, 4)]
    torch.testing.assert_close(result["output0"], expected[0], rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(result["output1"], expected[1], rtol=2e-3, atol=2e-3)


def test_streams_and_asynchronous_predictions(made: SimpleNamespace, module: Model) -> None:
    assert module.get_num_runtimes() == 2
    given, outputs, expected = tensors(made.device)
    if made.device == "cpu":
        result = module.run_with_tensors(given, outputs, sync=False)
        return check(result, outputs, expected)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(3)]
    buffers = [[torch.empty_like(o) for o in outputs] for _ in streams]
    results = [
        module.run_with_tensors(given, into, stream_ptr=stream.cuda_stream, sync=False)
        for stream, into in zip(streams, buffers, strict=True)
    ]
    torch.cuda.synchronize()
    for result, into in zip(results, buffers, strict=True):
        check(result, into, expected)


def test_cuda_graphs(made: SimpleNamespace, module: Model) -> None:
    given, outputs, expected = tensors(made.device)
    if made.device == "cpu":
        with pytest.raises(InputError, match="graph mode is not there on target cpu, which has no graphs"):
            module.run_with_tensors(given, outputs, graph_mode=True)
        return
    before = module.graph_stats()
    for _ in range(3):
        result = module.run_with_tensors(given, outputs, graph_mode=True)
    check(result, outputs, expected)
    after = module.graph_stats()
    assert (after["captures"] - before["captures"], after["hits"] - before["hits"]) == (1, 1)
