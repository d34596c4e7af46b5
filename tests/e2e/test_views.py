"""Views, copies and outputs that share memory: concat, slice, split, reshape, permute and expand in each other's way."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import run_to_phase
from ait_mlir.errors import InputError
from tests.e2e.support import Compiled, compile_graph, joined, parse_graph

GRAPHS = {
    "a value twice in one concat": """
  %0 = ait.relu %x : !ait.tensor<b x s x 4 x f32>
  %1 = ait.concat %0, %0 dim 2 : !ait.tensor<b x s x 8 x f32>
  ait.output "y" %1 : !ait.tensor<b x s x 8 x f32>
  ait.output "z" %0 : !ait.tensor<b x s x 4 x f32>
""",
    "one value in two concats": """
  %0 = ait.relu %x : !ait.tensor<b x s x 4 x f32>
  %1 = ait.neg %x : !ait.tensor<b x s x 4 x f32>
  %2 = ait.concat %0, %1 dim 2 : !ait.tensor<b x s x 8 x f32>
  %3 = ait.concat %1, %0, %1 dim 1 : !ait.tensor<b x (3*s) x 4 x f32>
  %4 = ait.softmax %3 dim 2 : !ait.tensor<b x (3*s) x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x s x 8 x f32>
  ait.output "z" %4 : !ait.tensor<b x (3*s) x 4 x f32>
""",
    "a concat of concats": """
  %0 = ait.relu %x : !ait.tensor<b x s x 4 x f32>
  %1 = ait.concat %0, %x dim 2 : !ait.tensor<b x s x 8 x f32>
  %2 = ait.concat %1, %0 dim 2 : !ait.tensor<b x s x 12 x f32>
  %3 = ait.concat %2, %2 dim 0 : !ait.tensor<(2*b) x s x 12 x f32>
  %4 = ait.exp %1 : !ait.tensor<b x s x 8 x f32>
  ait.output "y" %3 : !ait.tensor<(2*b) x s x 12 x f32>
  ait.output "z" %4 : !ait.tensor<b x s x 8 x f32>
""",
    "halves changed over": """
  %0 = ait.relu %x : !ait.tensor<b x s x 4 x f32>
  %1, %2 = ait.split %0 dim 2 : !ait.tensor<b x s x 1 x f32>, !ait.tensor<b x s x 3 x f32>
  %3 = ait.concat %2, %1 dim 2 : !ait.tensor<b x s x 4 x f32>
  %4, %5 = ait.split %3 dim 2 : !ait.tensor<b x s x 2 x f32>, !ait.tensor<b x s x 2 x f32>
  %6 = ait.add %4, %5 : !ait.tensor<b x s x 2 x f32>
  ait.output "y" %3 : !ait.tensor<b x s x 4 x f32>
  ait.output "z" %6 : !ait.tensor<b x s x 2 x f32>
""",
    "gemms into a concat, turned": """
  %w = ait.param "w" : !ait.tensor<6 x 4 x f32>
  %v = ait.param "v" : !ait.tensor<2 x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x s x 6 x f32>
  %1 = ait.gemm rcr %x, %v : !ait.tensor<b x s x 2 x f32>
  %2 = ait.concat %1, %0 dim 2 : !ait.tensor<b x s x 8 x f32>
  %3 = ait.reshape %2 : !ait.tensor<b x s x 2 x 4 x f32>
  %4 = ait.permute %3 [0, 2, 1, 3] : !ait.tensor<b x 2 x s x 4 x f32>
  %5 = ait.softmax %4 dim 3 : !ait.tensor<b x 2 x s x 4 x f32>
  %6 = ait.permute %5 [2, 0, 3, 1] : !ait.tensor<s x b x 4 x 2 x f32>
  %7 = ait.reshape %6 : !ait.tensor<(b*s) x 8 x f32>
  ait.output "y" %7 : !ait.tensor<(b*s) x 8 x f32>
  ait.output "half" %0 : !ait.tensor<b x s x 6 x f32>
""",
    "rows cut and joined": """
  %0 = ait.slice %x offsets [0, 1, 0] : !ait.tensor<b x (s - 1) x 4 x f32>
  %1 = ait.slice %x offsets [0, 0, 0] : !ait.tensor<b x 1 x 4 x f32>
  %2 = ait.concat %0, %1 dim 1 : !ait.tensor<b x s x 4 x f32>
  %3 = ait.sub %2, %x : !ait.tensor<b x s x 4 x f32>
  %4 = ait.slice %3 offsets [0, s - 1, 1] : !ait.tensor<b x 1 x 2 x f32>
  ait.output "y" %3 : !ait.tensor<b x s x 4 x f32>
  ait.output "last" %4 : !ait.tensor<b x 1 x 2 x f32>
""",
    "an output that is read": """
  %0 = ait.exp %x : !ait.tensor<b x s x 4 x f32>
  ait.output "first" %0 : !ait.tensor<b x s x 4 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x s x 4 x f32>
  %2 = ait.mul %1, %0 : !ait.tensor<b x s x 4 x f32>
  ait.output "second" %2 : !ait.tensor<b x s x 4 x f32>
""",
    "one value as three outputs": """
  %0 = ait.exp %x : !ait.tensor<b x s x 4 x f32>
  ait.output "a" %0 : !ait.tensor<b x s x 4 x f32>
  ait.output "b" %0 : !ait.tensor<b x s x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<(4*b*s) x f32>
  ait.output "c" %1 : !ait.tensor<(4*b*s) x f32>
""",
    "nothing but an input": """
  ait.output "y" %x : !ait.tensor<b x s x 4 x f32>
""",
    "views of an input": """
  %0 = ait.permute %x [2, 1, 0] : !ait.tensor<4 x s x b x f32>
  %1 = ait.expand %x : !ait.tensor<3 x b x s x 4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x s x b x f32>
  ait.output "z" %1 : !ait.tensor<3 x b x s x 4 x f32>
  ait.output "x" %x : !ait.tensor<b x s x 4 x f32>
""",
    "params and constants": """
  %w = ait.param "w" : !ait.tensor<5 x 3 x f16>
  %c = ait.constant 2.5 : !ait.tensor<b x s x bf16>
  %i = ait.constant [1, -2, 9007199254740993] : !ait.tensor<3 x i64>
  %p = ait.constant true : !ait.tensor<i1>
  %t = ait.permute %w [1, 0] : !ait.tensor<3 x 5 x f16>
  ait.output "w" %w : !ait.tensor<5 x 3 x f16>
  ait.output "t" %t : !ait.tensor<3 x 5 x f16>
  ait.output "c" %c : !ait.tensor<b x s x bf16>
  ait.output "i" %i : !ait.tensor<3 x i64>
  ait.output "p" %p : !ait.tensor<i1>
""",
    "params of one concat and alone": """
  %w = ait.param "w" : !ait.tensor<5 x 4 x f32>
  %v = ait.param "v" : !ait.tensor<3 x 4 x f32>
  %c = ait.concat %w, %v, %w dim 0 : !ait.tensor<13 x 4 x f32>
  %d = ait.concat %v, %w dim 0 : !ait.tensor<8 x 4 x f32>
  %0 = ait.gemm rcr %x, %c : !ait.tensor<b x s x 13 x f32>
  %1 = ait.gemm rcr %x, %v : !ait.tensor<b x s x 3 x f32>
  ait.output "y" %0 : !ait.tensor<b x s x 13 x f32>
  ait.output "z" %1 : !ait.tensor<b x s x 3 x f32>
  ait.output "d" %d : !ait.tensor<8 x 4 x f32>
""",
    "rank 0": """
  %0 = ait.slice %x offsets [0, 0, 3] : !ait.tensor<b x s x 1 x f32>
  %c = ait.constant 3.0 : !ait.tensor<f32>
  %d = ait.param "scalar" : !ait.tensor<f32>
  %1 = ait.mul %c, %d : !ait.tensor<f32>
  %2 = ait.add %0, %1 : !ait.tensor<b x s x 1 x f32>
  %3 = ait.permute %1 [] : !ait.tensor<f32>
  %4 = ait.expand %1 : !ait.tensor<b x 2 x f32>
  ait.output "y" %2 : !ait.tensor<b x s x 1 x f32>
  ait.output "z" %3 : !ait.tensor<f32>
  ait.output "e" %4 : !ait.tensor<b x 2 x f32>
""",
    "empty tensors": """
  %0 = ait.slice %x offsets [0, 0, 4] : !ait.tensor<b x s x 0 x f32>
  %1 = ait.exp %0 : !ait.tensor<b x s x 0 x f32>
  %2 = ait.concat %x, %1, %x dim 2 : !ait.tensor<b x s x 8 x f32>
  %w = ait.param "w" : !ait.tensor<3 x 0 x f32>
  %3 = ait.gemm rcr %1, %w : !ait.tensor<b x s x 3 x f32>
  %4 = ait.softmax %1 dim 2 : !ait.tensor<b x s x 0 x f32>
  %5 = ait.permute %4 [2, 0, 1] : !ait.tensor<0 x b x s x f32>
  ait.output "y" %2 : !ait.tensor<b x s x 8 x f32>
  ait.output "zeros" %3 : !ait.tensor<b x s x 3 x f32>
  ait.output "nothing" %5 : !ait.tensor<0 x b x s x f32>
""",
    "no inputs in use": """
  %c = ait.constant [1.0, 2.0, 3.0] : !ait.tensor<3 x f32>
  %0 = ait.exp %c : !ait.tensor<3 x f32>
  ait.output "y" %0 : !ait.tensor<3 x f32>
""",
    "no output": """
  %0 = ait.exp %x : !ait.tensor<b x s x 4 x f32>
""",
    "results permuted into outputs and a concat": """
  %w = ait.param "w" : !ait.tensor<6 x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x s x 6 x f32>
  %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<s x b x 6 x f32>
  %2 = ait.softmax %x dim 2 : !ait.tensor<b x s x 4 x f32>
  %3 = ait.permute %2 [1, 0, 2] : !ait.tensor<s x b x 4 x f32>
  %4 = ait.concat %1, %3 dim 2 : !ait.tensor<s x b x 10 x f32>
  %5 = ait.relu %x : !ait.tensor<b x s x 4 x f32>
  %6 = ait.reshape %5 : !ait.tensor<b x s x 2 x 2 x f32>
  %7 = ait.permute %6 [2, 1, 0, 3] : !ait.tensor<2 x s x b x 2 x f32>
  ait.output "y" %4 : !ait.tensor<s x b x 10 x f32>
  ait.output "z" %7 : !ait.tensor<2 x s x b x 2 x f32>
""",
}


def graph(body: str) -> str:
    return f"ait.graph @g(%x: !ait.tensor<b x s x 4 x f32>) dims {{b = 0 to 3, s = 1 to 5}} {{{body}}}\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """All graphs side by side in one library; their outputs and params have their numbers in front."""
    return compile_graph(joined([graph(body) for body in GRAPHS.values()]), tmp_path_factory.mktemp("views"))


POINTS = [(0, 1), (1, 1), (2, 1), (1, 5), (3, 5), (2, 3)]


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_against_the_reference(compiled: Compiled, point: tuple[int, int]) -> None:
    rng = random.Random(0)
    for seed in range(3):
        dims: dict[str, int] = {}
        for i in range(len(GRAPHS)):  # one point for all, then any
            b, s = point if not seed else rng.choice(POINTS)
            dims |= {f"b{i}": b, f"s{i}": s}
        problems = compiled.problems(dims, seed)
        assert not problems, "\n".join(problems)


def test_buffers_may_be_larger_and_results_are_their_leading_elements(compiled: Compiled) -> None:
    small = {name: 1 for name in compiled.model.dims}
    inputs = compiled.inputs(small)
    outputs = [
        np.full(compiled.model.get_output_maximum_shape(i), -1).astype(o.dtype)
        for i, o in enumerate(compiled.model.make_outputs(inputs))
    ]
    found = compiled.model.run(inputs, outputs)
    exact = compiled.run(inputs)
    for name, array in found.items():
        np.testing.assert_array_equal(array, exact[name], err_msg=name)


def test_outputs_may_not_share_memory_with_inputs(compiled: Compiled) -> None:
    inputs = compiled.inputs({name: 1 for name in compiled.model.dims})
    outputs = dict(zip(compiled.model.get_output_name_to_index_map(), compiled.model.make_outputs(inputs), strict=True))
    before = {name: array.copy() for name, array in inputs.items()}
    with pytest.raises(InputError, match="output 'g8_y' overlaps the memory of input 'g8_x': pass a buffer of its own"):
        compiled.model.run(inputs, outputs | {"g8_y": inputs["g8_x"]})
    compiled.model.run(inputs, outputs)
    for name, array in inputs.items():
        np.testing.assert_array_equal(array, before[name])


def test_permuted_results_are_written_in_place() -> None:
    """By the kernels that compute them; the one that a reshape cuts before is computed in its order, by loops."""
    module, _ = parse_graph(graph(GRAPHS["results permuted into outputs and a concat"]))
    text = str(run_to_phase(module, "planned"))
    assert re.findall(r"launch @(\w+)_\d ins\(%x", text) == ["gemm_rcr", "softmax", "loops"]
    assert "arena (0)" in text and text.count("ait_rt.launch") == 3


def test_many_outputs(tmp_path: Path) -> None:
    """Each of 300 values of a chain, so that none can be placed over another."""
    lines = ["%c = ait.constant 1.0 : !ait.tensor<f32>", "%v0 = ait.add %x, %c : !ait.tensor<b x 4 x f32>"]
    lines += [f"%v{i} = ait.add %v{i - 1}, %c : !ait.tensor<b x 4 x f32>" for i in range(1, 300)]
    lines += [f'ait.output "y{i}" %v{i} : !ait.tensor<b x 4 x f32>' for i in range(300)]
    body = "\n".join(lines)
    compiled = compile_graph(
        f"ait.graph @many(%x: !ait.tensor<b x 4 x f32>) dims {{b = 1 to 8}} {{\n{body}\n}}", tmp_path
    )
    x = np.zeros((5, 4), np.float32)
    for name, array in compiled.run({"x": x}).items():
        assert (array == int(name[1:]) + 1).all(), name
