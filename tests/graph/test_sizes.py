"""Graphs of one structure: code is made once, with sizes as arguments, and is right for all sizes it is taken for."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph import plans, programs
from ait_mlir.graph.plans import Kept
from tests.graph.cases import Cases

F = torch.nn.functional
ROOT = Path(__file__).parents[2]
INFERENCE = cudnn.norm_forward_phase.INFERENCE
Make = Callable[..., None]


def half(*shape: int) -> torch.Tensor:
    return (torch.randn(shape) * 0.5).half()


def dense(c: Cases, b: int, m: int, k: int, n: int) -> None:
    x, w, bias = half(b, m, k), half(1, k, n), half(1, 1, n)
    y = c.graph.gelu_approx_tanh(c.graph.bias(c.graph.matmul(c.input(x), c.input(w)), c.input(bias)))
    expected = F.gelu(x.float() @ w.float() + bias.float(), approximate="tanh")
    c.output("y", y, expected, torch.empty_like(expected, dtype=torch.half), 2e-3)


def column_major(c: Cases, m: int, k: int, n: int) -> None:
    a, b = half(2, m, k), half(2, n, k).mT
    c.output("y", c.graph.matmul(c.input(a), c.input(b)), a.float() @ b.float(), half(2, m, n), 4e-3)


def long_rows(c: Cases, m: int, n: int, gap: int) -> None:
    x = half(m, n + gap)[:, :n]
    like = torch.empty(m, n + gap, dtype=torch.half)[:, :n]
    c.output("y", c.graph.exp(c.input(x)), x.float().exp(), like, 2e-3)


def convolution(c: Cases, n: int, channels: int, size: int, k: int) -> None:
    last = torch.channels_last
    x, w = half(n, channels, size, size).to(memory_format=last), half(k, channels, 3, 3).to(memory_format=last)
    w = (w.float() / channels).half().to(memory_format=last)
    bias = half(1, k, 1, 1)
    y = c.graph.conv_fprop(c.input(x), c.input(w), padding=[1, 1], stride=[2, 2], dilation=[1, 1])
    expected = torch.relu(F.conv2d(x.float(), w.float(), padding=1, stride=2) + bias.float())
    like = torch.empty_like(expected, dtype=torch.half).to(memory_format=last)
    c.output("y", c.graph.relu(c.graph.bias(y, c.input(bias))), expected, like, 2e-3)


def norm(c: Cases, rows: int, width: int) -> None:
    x, scale, bias = half(rows, width, 1, 1), half(1, width, 1, 1), half(1, width, 1, 1)
    eps = c.graph.tensor_scalar(1e-5)
    given = {"input": c.input(x), "scale": c.input(scale), "bias": c.input(bias), "epsilon": eps}
    y = c.graph.layernorm(norm_forward_phase=INFERENCE, **given)[0]
    expected = F.layer_norm(x.float()[..., 0, 0], (width,), scale.float().flatten(), bias.float().flatten())
    c.output("y", y, expected.reshape(rows, width, 1, 1), x, 4e-3)


def softmax(c: Cases, rows: int, width: int) -> None:
    x = half(2, rows, width)
    c.output("y", c.graph.softmax(c.input(x), axis=2)[0], x.float().softmax(-1), x, 2e-3)


def reduction(c: Cases, rows: int, width: int) -> None:
    x = torch.randn(rows, width, 3)
    t = c.graph.reduction(c.input(x), mode=cudnn.reduction_mode.ADD)
    c.output("y", t, x.double().sum(1, keepdim=True), torch.empty(rows, 1, 3), 1e-4)


def pointwise(c: Cases, rows: int, width: int) -> None:
    x, y, z = torch.randn(rows, width), torch.randn(rows, 1), torch.randn(1, width)
    t = c.graph.mul(c.graph.add(c.input(x), c.input(y)), c.input(z))
    c.output("y", c.graph.sigmoid(t), torch.sigmoid((x + y) * z), torch.empty(rows, width))


def attention(c: Cases, b: int, rows: int, columns: int, causal: bool = False) -> None:
    q, k, v = (half(b, s, h, 16).permute(0, 2, 1, 3) for s, h in ((rows, 4), (columns, 2), (columns, 2)))
    o, _ = c.graph.sdpa(
        c.input(q), c.input(k), c.input(v), attn_scale=0.25, generate_stats=False, use_causal_mask_bottom_right=causal
    )
    mask = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows) if causal else None
    expected = F.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), attn_mask=mask, scale=0.25, enable_gqa=True
    )
    c.output("y", o, expected, torch.empty(b, rows, 4, 16, dtype=torch.half).permute(0, 2, 1, 3), 2e-3)


def causal(c: Cases, b: int, rows: int, columns: int) -> None:
    attention(c, b, rows, columns, causal=True)


def joined(c: Cases, rows: int, first: int, second: int) -> None:
    x, y = torch.randn(rows, first), torch.randn(rows, second)
    c.output(
        "y",
        c.graph.concatenate([c.input(x), c.input(y)], axis=1),
        torch.cat([x, y], 1),
        torch.empty(rows, first + second),
    )


CASES: dict[str, tuple[Make, tuple[int, ...], tuple[int, ...]]] = {
    "matmul bias gelu": (dense, (2, 70, 32, 64), (5, 100, 48, 40)),
    "matmul, column-major": (column_major, (7, 32, 24), (33, 64, 48)),
    "rows in memory longer than a tensor": (long_rows, (5, 16, 8), (9, 48, 8)),
    "conv bias relu": (convolution, (2, 8, 14, 16), (3, 8, 9, 24)),
    "layernorm": (norm, (5, 48), (17, 64)),
    "softmax": (softmax, (5, 48), (17, 64)),
    "reduction": (reduction, (7, 20), (40, 9)),
    "pointwise": (pointwise, (7, 20), (41, 36)),
    "attention": (attention, (2, 9, 21), (3, 33, 17)),
    "causal attention": (causal, (2, 9, 21), (3, 33, 40)),
    "self-attention": (causal, (2, 9, 9), (3, 33, 33)),
    "concatenate": (joined, (3, 5, 7), (9, 11, 2)),
}


def made(device: str, make: Make, sizes: tuple[int, ...]) -> Cases:
    torch.manual_seed(sum(sizes))
    c = Cases(device, io_data_type=cudnn.data_type.HALF)
    make(c, *sizes)
    return c


@pytest.mark.parametrize("name", CASES)
def test_new_sizes_compile_nothing(device: str, name: str, monkeypatch: pytest.MonkeyPatch):
    make, first, second = CASES[name]
    made(device, make, first).run().check("y")

    def refuse(*_: Any) -> None:
        raise AssertionError("a graph of a known structure is compiled")

    monkeypatch.setattr(plans, "emit", refuse)
    monkeypatch.setattr(plans, "run_to_phase", refuse)
    other = made(device, make, second).run()
    other.check("y")
    assert "hints" in other.graph.ir().splitlines()[1]


@pytest.mark.parametrize(("name", "make"), [("layernorm", norm), ("softmax", softmax)])
def test_kernels_of_rows_know_the_length_that_came_first(device: str, name: str, make: Make):
    """There are two programs, one for rows of this length and one for others; both are compiled by the first build."""
    first, alike, other = (made(device, make, sizes).run() for sizes in ((5, 136), (9, 136), (9, 104)))
    for c in (first, alike, other):
        c.check("y")
    assert first.graph.runner.compiled.library is alike.graph.runner.compiled.library
    assert first.graph.runner.compiled.library is not other.graph.runner.compiled.library
    assert "136 x" in alike.graph.ir()
    assert "(8*d" in other.graph.ir()


def test_sizes_of_another_range_and_other_steps_are_other_programs(device: str):
    """Kernels are chosen for a range of sizes, and rows of whole 16-byte pieces are read by pieces."""
    for sizes in ((7, 24), (7, 2000), (7, 23), (1, 24), (7, 24)):
        c = made(device, pointwise, sizes).run()
        c.check("y")
    first = c.graph.ir()
    assert "(8*d" in first
    assert first != made(device, pointwise, (7, 23)).run().graph.ir()


def test_equal_sizes_that_a_node_needs_equal_are_one_dim(device: str):
    c = made(device, column_major, (8, 8, 8)).run()
    c.check("y")
    assert "d0 x d1 x (8*d2)" in c.graph.ir() and "d0 x d1 x d5" in c.graph.ir()  # equal by chance
    other = made(device, column_major, (8, 16, 24)).run()
    other.check("y")
    assert other.graph.runner.compiled.library is c.graph.runner.compiled.library


def test_what_needs_a_size_is_compiled_for_it(device: str):
    """A Python slice is one of constants; the other dims stay arguments."""
    found: list[Any] = []
    for rows, width in ((6, 20), (9, 20), (6, 22)):
        x = torch.randn(rows, width)
        c = Cases(device, io_data_type=cudnn.data_type.FLOAT)
        t = c.graph.slice(c.input(x), slices=[slice(None), slice(2, -3, 2)])
        c.output("y", t, x[:, 2:-3:2], torch.empty(rows, len(range(2, width - 3, 2))))
        c.run().check("y")
        found.append(c.graph.runner.compiled.library)
    assert found[0] is not found[2]


def convolution_ir(device: str, n: int, channels: int, size: int, k: int) -> str:
    """The code of a convolution, for a card that need not be there: nothing is compiled."""
    g = cudnn.pygraph(
        handle=cudnn.create_handle(device=device),
        io_data_type=cudnn.data_type.HALF,
        compute_data_type=cudnn.data_type.FLOAT,
    )
    x, w = ([n, channels, size, size], [k, channels, 3, 3])
    image, weight = (g.tensor(dims, [math.prod(dims[1:]), 1, dims[1] * dims[2], dims[1]]) for dims in (x, w))
    g.conv_fprop(image, weight, padding=[1, 1], stride=[1, 1], dilation=[1, 1]).set_output(True)
    g.validate()
    g.build_operation_graph()
    return g.ir()


@pytest.fixture
def on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are chosen for sm_90a, and no program is known."""
    monkeypatch.setattr(plans, "default_arch", lambda kind: "sm_90a")
    monkeypatch.setattr(programs, "_known", Kept(8))


FEW_CHANNELS, SAME_CHANNELS, OTHER_CHANNELS = (2, 8, 14, 16), (3, 8, 9, 24), (3, 16, 9, 24)
MANY_CHANNELS, MORE_CHANNELS = (8, 64, 56, 64), (8, 56, 56, 64)
"""With many, the kernel for few channels is no faster."""


@pytest.mark.usefixtures("on_a_card")
@pytest.mark.parametrize("before", [(), (MANY_CHANNELS,)], ids=["first", "after code for any channels"])
def test_channels_are_known_where_kernels_for_few_are_faster(before: tuple[tuple[int, ...], ...]):
    """Other images and filters share that code, other channels do not."""
    general = [convolution_ir("cuda:0", *sizes) for sizes in before]
    few, same, other, again = (
        convolution_ir("cuda:0", *sizes) for sizes in (FEW_CHANNELS, SAME_CHANNELS, OTHER_CHANNELS, FEW_CHANNELS)
    )
    assert few == same == again != other
    assert "x 8 x f16" in few and "x 16 x f16" in other
    assert not {few, other} & set(general)


@pytest.mark.usefixtures("on_a_card")
def test_channels_are_a_dim_where_kernels_for_few_are_no_faster():
    few, many, more, again = (
        convolution_ir("cuda:0", *sizes) for sizes in (FEW_CHANNELS, MANY_CHANNELS, MORE_CHANNELS, FEW_CHANNELS)
    )
    assert few == again != many == more
    assert "x 64 x f16" not in many


def test_channels_are_a_dim_on_the_cpu():
    assert convolution_ir("cpu", *FEW_CHANNELS) == convolution_ir("cpu", *OTHER_CHANNELS)


def test_convolutions_of_any_channels_are_right(device: str):
    for sizes in (FEW_CHANNELS, MANY_CHANNELS, OTHER_CHANNELS, MORE_CHANNELS, SAME_CHANNELS, FEW_CHANNELS):
        made(device, convolution, sizes).run().check("y")


def test_heuristic_b_times_kernels_for_the_sizes_alone():
    c = made("cpu", dense, (2, 70, 32, 64))
    c.run(cudnn.heur_mode.B).check("y")
    assert c.graph.runner.compiled.dims == ()


def test_a_serialized_graph_keeps_its_sizes(device: str):
    for sizes in ((2, 70, 32, 64), (5, 100, 48, 40)):
        c = made(device, dense, sizes).run()
        data = c.graph.serialize()
        other = cudnn.pygraph()
        other.deserialize(c.handle, data)
        pack = {t.get_uid(): value for t, value in c.pack.items()}
        c.expected["y"][0].fill_(float("nan"))
        space = torch.empty(other.get_workspace_size(), dtype=torch.uint8, device=c.device)
        other.execute(pack, space, handle=c.handle)
        if c.device != "cpu":
            torch.cuda.synchronize()
        c.check("y")


IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import ait_mlir.graph as cudnn
from tests.graph.test_sizes import CASES, made

def build(name):
    make, first, _ = CASES[name]
    made("cpu", make, first).graph.build([cudnn.heur_mode.A])

with ThreadPoolExecutor(8) as pool:
    print(len(list(pool.map(build, list(CASES)[::3]))))
"""


def test_threads_build_graphs_in_a_new_process():
    done = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == f"{len(list(CASES)[::3])}\n", done.stderr


def test_the_process_keeps_few_values():
    kept: Kept[int] = Kept(2)
    assert [kept.keep(k, v) for k, v in (("a", 1), ("a", 2), ("b", 3))] == [1, 1, 3]
    kept.get("a")
    kept.keep("c", 4)
    assert [kept.get(k) for k in "abc"] == [1, None, 4]
