"""Which ops `form-loops` joins, without a target: everywhere where it may; and that random graphs compute the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import ait_mlir
from ait_mlir.dialects.ait.loops import FoldOp, LoopsOp
from ait_mlir.dialects.ait.traits import ChecksIndices
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import RunError
from ait_mlir.importers.torch import from_torch
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.passes.form_loops import FormLoopsPass
from ait_mlir.passes.loop_groups import all_is_read
from tests.fuzz.run import checked
from tests.generator import random_graph
from tests.importers.blind import Function
from tests.tiers import params

T = "!ait.tensor<b x s x f32>"


def formed(body: str, dims: str = "b = 0 to 4, s = 1 to 9", inputs: str = f"%x: {T}, %z: {T}") -> list[str]:
    """The names of the ops of a graph after the pass, without outputs; a nest of loops with the ops in its region."""
    module = parse_text(context(), f"ait.graph @g({inputs}) dims {{{dims}}} {{\n{body}\n}}")
    FormLoopsPass().apply(context(), module)
    check(module)
    graph = next(iter(module.ops))
    return [described(op) for op in graph.regions[0].block.ops if op.name != "ait.output"]


def described(op: object) -> str:
    if isinstance(op, LoopsOp | FoldOp):
        name = "loops" if isinstance(op, LoopsOp) else op.kind.data
        inner = [described(i) for i in op.body.block.ops if i.name not in ("ait.yield", "ait.at", "ait.constant")]
        return f"{name}({' '.join(inner)})"
    return getattr(op, "name", "").removeprefix("ait.")


def output(value: str, t: str = T) -> str:
    return f'ait.output "{value}" %{value} : {t}\n'


SOFTMAX = "loops(max() add(sub exp) sub exp div)"


def test_a_chain_is_one() -> None:
    body = f"%e = ait.exp %x : {T}\n%y = ait.softmax %e dim 1 : {T}\n"
    assert formed(body + output("y")) == ["loops(max(exp) add(exp sub exp) exp sub exp div)"]


def test_what_others_read_too_stays() -> None:
    body = f"%e = ait.exp %x : {T}\n%y = ait.neg %e : {T}\n%w, %p = ait.sort %e dim 1 : {T}, !ait.tensor<b x s x i64>\n"
    assert formed(body + output("y") + output("w")) == ["loops(exp)", "loops(neg)", "sort"]


def test_an_output_is_stored() -> None:
    body = f"%e = ait.exp %x : {T}\n%y = ait.neg %e : {T}\n"
    assert formed(body + output("y") + output("e")) == ["loops(exp)", "loops(neg)"]


def test_two_members_that_read_a_third_are_no_other_users() -> None:
    body = f"%e = ait.exp %x : {T}\n%n = ait.neg %e : {T}\n%y = ait.mul %e, %n : {T}\n"
    assert formed(body + output("y")) == ["loops(exp neg mul)"]


def test_a_view_joins_all_its_users() -> None:
    t = "!ait.tensor<s x b x f32>"
    body = f"%p = ait.permute %x [1, 0] : {t}\n%y = ait.exp %p : {t}\n%w, %i = ait.sort %p dim 0 : {t}, !ait.tensor<s x b x i64>\n"
    assert formed(body + output("y", t) + output("w", t)) == ["loops()", "loops(exp)", "sort"]
    both = f"%p = ait.permute %x [1, 0] : {t}\n%y = ait.exp %p : {t}\n%w = ait.sin %p : {t}\n"
    assert formed(both + output("y", t) + output("w", t)) == ["loops(exp)", "loops(sin)"]


def test_folds_are_not_computed_again_for_each_window() -> None:
    """A pool with windows that overlap would compute the softmax of a row nine times."""
    t = "!ait.tensor<b x 8 x 8 x 4 x f32>"
    softmax = f"%p = ait.softmax %x dim 2 : {t}\n"
    pool = f"%y = ait.pool max %p window [3, 3] pad [1, 1] : {t}\n"
    assert formed(softmax + pool + output("y", t), inputs=f"%x: {t}") == [SOFTMAX, "loops(max())"]
    add = f"%p = ait.add %x, %x : {t}\n"
    assert len(formed(add + pool + output("y", t), inputs=f"%x: {t}")) == 1


def test_columns_of_a_softmax_are_not_folded_again_for_each_row() -> None:
    """The sum over a column of softmax needs all rows: the folds of a row are then inside of that over rows."""
    body = f"%p = ait.softmax %x dim 1 : {T}\n%y = ait.reduce sum %p dims [0] : !ait.tensor<s x f32>\n"
    found = formed(body + output("y", "!ait.tensor<s x f32>"), dims="b = 64 to 64, s = 64 to 64")
    assert found == [SOFTMAX, "loops(add())"]


def test_a_new_state_stays() -> None:
    body = f'%y = ait.add %x, %z : {T}\nait.output "y" %y in place of %x : {T}\n'
    assert formed(body, inputs=f"%x: {T} donated, %z: {T}") == ["add"]


def test_sizes_that_ops_bind_stay() -> None:
    t = "!ait.tensor<n x s x f32>"
    body = f"%p, %c = ait.masked_select %x, %m : {t}, !ait.tensor<i64>\n%y = ait.exp %p : {t}\n"
    inputs = f"%x: {T}, %m: !ait.tensor<b x i1>"
    found = formed(body + output("y", t), "b = 0 to 4, s = 1 to 9, n = 0 to b bound", inputs)
    assert found == ["masked_select", "exp"]


def test_a_chosen_kernel_stays() -> None:
    body = f'%e = ait.exp %x {{kernel = #ait.kernel<"native", {{}}>}} : {T}\n%y = ait.neg %e : {T}\n'
    assert formed(body + output("y")) == ["exp", "loops(neg)"]


def test_the_other_results_of_an_op() -> None:
    """Of a norm that also gives the sum that it normalises, both are needed: it stays; one alone joins."""
    norm = f"""%n, %r = ait.rms_norm %x axes 1 eps 1e-05 prologue(%z) {{
    ^bb0(%0: f32, %1: f32):
      %2 = ait.add %0, %1 : f32
      ait.yield %2, %2 : f32, f32
    }} : {T}, {T}
    %y = ait.exp %n : {T}
    """
    assert formed(norm + output("y") + output("r")) == ["rms_norm", "loops(exp)"]
    assert len(formed(norm + output("y"))) == 1


def test_groups_have_limits() -> None:
    chain = "".join(f"%e{i + 1} = ait.sin %e{i} : {T}\n" for i in range(40)).replace("%e0 ", "%x ")
    found = formed(chain + f'ait.output "y" %e40 : {T}\n')
    assert len(found) == 2
    sums = "".join(f"%s{i + 1} = ait.add %s{i}, %a{i} : {T}\n" for i in range(20)).replace("%s0,", "%x,")
    inputs = ", ".join([f"%x: {T}", *(f"%a{i}: {T}" for i in range(20))])
    assert len(formed(sums + f'ait.output "y" %s20 : {T}\n', inputs=inputs)) == 2


@pytest.mark.parametrize("batch", params(range(20), [0, 1]))
def test_random_graphs(batch: int) -> None:
    checks = 0
    for seed in range(20 * batch, 20 * batch + 20):
        text = random_graph(seed)
        try:
            checks += checked(text, "form-loops")
        except BaseException as e:
            raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\n{text}") from e
    assert checks > 20


class Called(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


def scaled(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Rows divided by their scales, these, and the rows."""
    scale = a.abs().amax(1, keepdim=True) / 127
    return a / scale, scale, a


ROWS, LABELS = torch.zeros(512, 4096), torch.zeros(512, dtype=torch.long)
MATRIX = torch.zeros(282, 35329, dtype=torch.bfloat16)
HALVES = torch.zeros(16, 1024, 1024, dtype=torch.float16)
IMAGE = torch.zeros(64, 64, 112, 112, dtype=torch.float16)


@pytest.mark.parametrize(
    ("function", "inputs", "launches"),
    [
        (lambda a: torch.logsumexp(a, 1), (ROWS,), 1),
        (lambda a, b: functional.cosine_similarity(a, b, dim=1), (ROWS, ROWS), 1),
        (lambda a: functional.log_softmax(a, 1), (ROWS,), 1),
        (lambda a: torch.var(a, 1), (ROWS,), 1),
        (lambda a: (a - a.mean(1, keepdim=True)) / a.std(1, keepdim=True), (ROWS,), 1),
        (lambda a, b: functional.mse_loss(a, b, reduction="none").mean(1), (ROWS, ROWS), 1),
        (functional.cross_entropy, (ROWS, LABELS), 2),
        (lambda a, b, v, c: torch.mv(a + b, v) + c, (MATRIX, MATRIX, MATRIX[0], MATRIX[:, 0]), 1),
        (lambda a, b, v: torch.matmul(v, torch.relu(a + b)), (MATRIX, MATRIX, MATRIX[:, 0]), 1),
        (lambda a: functional.max_pool2d(a, 2), (IMAGE,), 1),
        (lambda a: functional.interpolate(functional.relu(a), scale_factor=2), (IMAGE,), 1),
        (lambda a: functional.layer_norm(functional.pad(a, (1, 1)), (4098,)), (ROWS,), 1),
        (lambda a, b: functional.kl_div(a.log_softmax(1), b.softmax(1), reduction="sum"), (ROWS, ROWS), 2),
        (lambda a, b: torch.stack(torch.var_mean(a + b, 0)), (ROWS, ROWS), 1),  # elements are read once
        (lambda a: torch.stack((a.amax(1), a.mean(1))), (ROWS,), 1),
        (lambda a: torch.cat((a.amax(1), a.mean(0))), (ROWS,), 2),  # not of the same rows
        (lambda a: scaled(functional.layer_norm(a, (4096,))), (ROWS,), 1),  # the row and its scale
        # results across rows of which a block has several turn in shared memory
        (lambda a: functional.layer_norm(a.transpose(1, 2), (1024,)), (HALVES,), 1),
        (lambda a: functional.softmax(a, 2).transpose(1, 2).contiguous(), (HALVES,), 1),
        # a block has no registers for several rows, or stores across rows would fill a part of each sector
        (lambda a: functional.softmax(a + 1, 1).permute(1, 3, 0, 2).contiguous(), (IMAGE,), 2),
        (lambda a: functional.layer_norm(a, (4096,)).t().contiguous(), (ROWS,), 2),
        # rows that lie across the memory, or whose elements are read many times, are turned first
        (lambda a: functional.group_norm(a.permute(3, 2, 0, 1), 4), (torch.zeros(56, 14, 96, 260),), 2),
        (lambda a: functional.unfold(a.permute(3, 2, 0, 1), 4), (IMAGE[:1].reshape(112, 112, 64, 1),), 1),
    ],
)
def test_launches_on_a_card(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], launches: int
) -> None:
    module = from_torch(Called(function).eval(), inputs).module
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    found = str(module)
    assert " says " not in found  # a GPU has no errors
    assert found.count("ait_rt.launch") + found.count("ait_rt.copy") == launches, found


BIG = torch.zeros(8, 64, 128, 128, dtype=torch.float16)


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (
            lambda a: functional.fold(a.reshape(8, 256, 4096), (126, 126), 4, stride=2, padding=2),
            "d2 mod 2",
        ),
        (lambda a: functional.pixel_shuffle(a, 4), "d2 floordiv 4, d3 floordiv 4]"),
        (lambda a: functional.unfold(a, 3, padding=1), "d1 mod 3 + d2 mod 128 - 1] else 0.0"),
        (lambda a: functional.interpolate(a.transpose(2, 3), scale_factor=0.5, mode="area"), '"tiles" {across'),
        (lambda a: torch.sigmoid(a.roll((3, -5), (1, 3))), "(d1 + 61) mod 64, d2, (d3 + 5) mod 128]"),
    ],
)
def test_moves_are_one_launch_of_loops_on_a_card(function: Callable[..., torch.Tensor], place: str) -> None:
    """Places that are constants are formulas, and no copy is left whose tiles would be nearly empty."""
    module = from_torch(Called(function).eval(), (BIG,)).module
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    found = str(module)
    assert found.count("ait_rt.launch") == found.count("ait.loops") == 1 and "ait_rt.copy" not in found, found
    assert place in found, found


def test_a_sampled_image_is_turned_first_on_a_card() -> None:
    """The kernel reads neighbouring channels: in an image with channels first each is a sector of its own."""
    grid = torch.zeros(8, 128, 128, 2, dtype=torch.float16)
    module = from_torch(Called(functional.grid_sample).eval(), (BIG, grid)).module
    run_to_phase(module, "selected", CompileOptions("cuda", "sm_90a"))
    assert str(module).count("ait.loops") == 1, module


@pytest.mark.parametrize(("size", "launches"), [(14, 1), (128, 2)])
def test_an_image_of_small_channels_is_sampled_as_it_is(size: int, launches: int) -> None:
    x, grid = torch.zeros(60, 32, size, size), torch.zeros(60, size, size, 2)
    module = from_torch(Called(functional.grid_sample).eval(), (x, grid)).module
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    assert str(module).count("ait_rt.launch") == launches, module


@pytest.mark.parametrize(("user", "all_read"), [("neg %e", True), ("slice %e offsets [0, 0]", False)])
def test_on_a_cpu_a_gather_joins_only_where_all_its_indices_are_checked(user: str, all_read: bool) -> None:
    t, ids, z = ("!ait.tensor<4 x 6 x f32>", "!ait.tensor<4 x i64>", "!ait.tensor<3 x 6 x f32>")
    result = t if all_read else z
    body = f"%e = ait.embedding %x, %i : {t}\n%u = ait.{user} : {result}\n%y = ait.exp %u : {result}\n"
    module = parse_text(context(), f"ait.graph @g(%x: {t}, %i: {ids}) {{\n{body}{output('y', result)}}}")
    rows, *others = next(iter(module.ops)).regions[0].block.ops
    assert isinstance(rows, ChecksIndices) and rows.checks_indices
    assert all_is_read(rows, others[:2]) == all_read


@pytest.mark.parametrize(
    "function",
    [
        lambda t, i, x: torch.cat([t[:5][i] * 2, x]).relu(),
        lambda t, i, x: functional.pad(t[:5][i] * 2, (0, 0, 1, 1)).relu(),
        lambda t, i, x: t[:5][i].softmax(-1) * x,
        lambda t, i, x: t[:5][i] * x + 1,
    ],
)
def test_an_index_outside_of_its_dim_is_an_error_in_any_group(function: Callable[..., torch.Tensor]) -> None:
    table, x = torch.randn(10, 64), torch.randn(4, 64)
    compiled = ait_mlir.compile(Function(function).eval(), (table, torch.arange(4), x), target="cpu")
    torch.testing.assert_close(compiled(table, torch.arange(4), x), function(table, torch.arange(4), x))
    for bad in (torch.tensor([0, 1, 2, 7]), torch.tensor([0, -7, 2, 3])):
        named = f"gather: index {int(bad[bad.abs().argmax()])} of index tensor 0 is outside of its dim, which has 5"
        with pytest.raises(RunError, match=re.escape(named)):
            compiled(table, bad, x)


def test_a_joined_embedding_names_the_id() -> None:
    embedding = torch.nn.Embedding(10, 64).eval()
    module = torch.nn.Sequential(embedding, torch.nn.GELU(), torch.nn.LayerNorm(64)).eval()
    compiled = ait_mlir.compile(module, (torch.arange(4),), target="cpu")
    with pytest.raises(RunError, match=r"embedding: id 10 .*is outside of the table, which has 10 rows"):
        compiled(torch.tensor([0, 1, 10, 3]))
