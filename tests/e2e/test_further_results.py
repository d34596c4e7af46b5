"""Products and convolutions with several results, compiled for the CPU: which launches write them, and their values."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp
from tests.e2e.support import Compiled, compile_graph

TYPES = ("f32", "f16", "bf16")


class Writer:
    """The text of a graph: `add` writes an op of one result, and returns its name."""

    def __init__(self, t: str) -> None:
        self.t, self.body, self.count = t, "", 0

    def add(self, text: str, shape: str) -> str:
        self.count += 1
        name = f"%{self.t}{self.count}"
        self.body += f"  {name} = ait.{text} : !ait.tensor<{shape} x {self.t}>\n"
        return name

    def param(self, name: str, shape: str) -> str:
        return self.add(f'param "{self.t}.{name}"', shape)

    def activated(self, z: str, shape: str, channels: int, name: str) -> str:
        """relu(z * scale + shift), as a batch norm leaves it."""
        scale, shift = (self.param(f"{name}.{kind}", str(channels)) for kind in ("scale", "shift"))
        scaled = self.add(f"mul {z}, {scale}", shape)
        shifted = self.add(f"add {scaled}, {shift}", shape)
        return self.add(f"relu {shifted}", shape)

    def output(self, name: str, value: str, shape: str) -> None:
        self.body += f'  ait.output "{self.t}.{name}" {value} : !ait.tensor<{shape} x {self.t}>\n'


def convolutions(w: Writer) -> None:
    """Two blocks whose sums are read as they are and activated; the second sum is an output, too."""
    shape = "b x h x 7 x 24"
    z = w.add(f"conv %x{w.t}, {w.param('stem', '24 x 3 x 2 x 5')} pad [1, 0]", "b x h x 7 x 24")
    for block in range(2):
        h = w.activated(z, shape, 24, f"block{block}")
        a = w.add(f"conv {h}, {w.param(f'first{block}', '32 x 1 x 1 x 24')}", "b x h x 7 x 32")
        a = w.add(f"relu {a}", "b x h x 7 x 32")
        c = w.add(f"conv {a}, {w.param(f'second{block}', '24 x 3 x 3 x 32')} pad [1, 1]", shape)
        z = w.add(f"add {c}, {z}", shape)
    w.output("sum", z, shape)
    w.output("last", w.activated(z, shape, 24, "last"), shape)


def products(w: Writer) -> None:
    """A product whose sum is a part of a concat and activated; a product without a weight; one with three results."""
    y = w.add(f"gemm rcr %p{w.t}, {w.param('gemm', '40 x 33')}", "b x h x 40")
    z = w.add(f"add {y}, %r{w.t}", "b x h x 40")
    w.output("activated", w.activated(z, "b x h x 40", 40, "after"), "b x h x 40")
    w.output("joined", w.add(f"concat {z}, %r{w.t} dim 2", "b x h x 80"), "b x h x 80")
    y = w.add(f"bmm rcr %p{w.t}, %p{w.t}", "b x h x h")
    w.output("scores", y, "b x h x h")
    w.output("scaled", w.add(f"mul {w.add(f'tanh {y}', 'b x h x h')}, %m{w.t}", "b x h x h"), "b x h x h")
    y = w.add(f"gemm rrr %r{w.t}, {w.param('wide', '40 x 130')}", "b x h x 130")
    w.output("plain", y, "b x h x 130")
    w.output("relu", w.add(f"relu {y}", "b x h x 130"), "b x h x 130")
    w.output("abs", w.add(f"abs {y}", "b x h x 130"), "b x h x 130")


def graph() -> str:
    inputs, body = "", ""
    for t in TYPES:
        w = Writer(t)
        convolutions(w)
        products(w)
        shapes = {"x": "b x h x 8 x 5", "p": "b x h x 33", "r": "b x h x 40", "m": "b x h x 1"}
        inputs += ", ".join(f"%{name}{t}: !ait.tensor<{shape} x {t}>" for name, shape in shapes.items()) + ", "
        body += w.body
    return f"ait.graph @g({inputs.removesuffix(', ')}) dims {{b = 0 to 3, h = 1 to 70}} {{\n{body}}}\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(graph(), tmp_path_factory.mktemp("results"))


def test_no_launch_reads_a_result_to_activate_it(compiled: Compiled) -> None:
    kernels = {op.sym_name.data: op for op in compiled.planned.walk() if isinstance(op, KernelOp)}
    launched = [kernels[op.kernel.string_value()] for op in compiled.planned.walk() if isinstance(op, LaunchOp)]
    several = [len(k.compute_op().results) for k in launched if k.compute_op().name != "ait.fused_elementwise"]
    assert sorted(n for n in several if n > 1) == sorted([2, 2, 2, 2, 2, 3] * len(TYPES))
    assert all(k.compute_op().name != "ait.fused_elementwise" for k in launched)


@pytest.mark.parametrize("h", [1, 2, 9, 70])
@pytest.mark.parametrize("b", [0, 1, 3])
def test_results_are_those_of_the_reference(compiled: Compiled, b: int, h: int) -> None:
    assert compiled.problems({"b": b, "h": h}) == []
