"""Caches of keys and values that belong to the caller: written in place, and refused where rows do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import RunError
from ait_mlir.frontend import IntVar, Tensor, build_module, ops
from ait_mlir.reference import evaluate_graph
from tests.e2e.support import Compiled, compile_graph

SHAPES = {
    "q": [IntVar([1, 3], name="b"), 4, 1, 8],
    "row": [IntVar([1, 3], name="b"), 2, 1, 8],
    "cache": [IntVar([1, 3], name="b"), 2, 6, 8],
    "pool": [5, 4, 2, 8],
}
NUMBERS = {"to": ("b", 1), "slot": ("b", 1), "lengths": ("b",), "table": ("b", 2), "offsets": (4,)}


def step() -> list[Tensor]:
    """A row for each sequence into a contiguous and a paged cache, attention over both, and over packed rows."""
    given = {n: Tensor(shape=s, dtype="float32", name=n, is_input=True) for n, s in SHAPES.items()}
    batch = SHAPES["q"][0]
    for name, dims in NUMBERS.items():
        shape = [batch if d == "b" else d for d in dims]
        given[name] = Tensor(shape=shape, dtype="int64", name=name, is_input=True)
    given["x"] = Tensor(shape=[7, 3, 2, 8], dtype="float32", name="x", is_input=True)
    cache = ops.update_cache()(given["cache"], given["row"], given["to"])
    rows = ops.permute()(given["row"], [0, 2, 1, 3])
    pool = ops.update_cache(paged=True)(given["pool"], rows, given["slot"])
    paged = ops.permute()(pool, [0, 2, 1, 3])
    attend = ops.ragged_attention(causal=True)
    return [
        attend(given["q"], cache, cache, given["lengths"]).mark_as_output("contiguous"),
        attend(given["q"], paged, paged, given["lengths"], pages=given["table"]).mark_as_output("paged"),
        ops.flash_attention(3, 0, 7, True)(given["x"], given["offsets"]).mark_as_output("packed"),
        cache.mark_as_output("cache", in_place_of=given["cache"]),
        pool.mark_as_output("pool", in_place_of=given["pool"]),
    ]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(str(build_module(step())), tmp_path_factory.mktemp("cache"))


def inputs(compiled: Compiled) -> dict[str, np.ndarray]:
    numbers = {
        "to": [[2], [5]],
        "slot": [[9], [16]],
        "lengths": [3, 6],
        "table": [[2, 3], [1, 4]],
        "offsets": [0, 3, 3, 6],
    }
    return compiled.inputs({"b": 2}) | {name: np.array(value) for name, value in numbers.items()}


def test_rows_are_written_where_they_belong_and_nothing_is_copied(compiled: Compiled) -> None:
    given = inputs(compiled)
    before = {name: given[name].copy() for name in ("cache", "pool")}
    expected = evaluate_graph(compiled.graph, given, compiled.params, {"b": 2})
    found = compiled.model.run_with_tensors(given)
    for name, want in expected.items():
        np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=1e-5)
    assert found["cache"] is given["cache"] and found["pool"] is given["pool"]
    before["cache"][0, :, 2], before["cache"][1, :, 5] = given["row"][:, :, 0]
    before["pool"][2, 1], before["pool"][4, 0] = given["row"][:, :, 0]
    for name, want in before.items():
        np.testing.assert_array_equal(given[name], want)
    module = run_to_phase(build_module([y for y in step() if y.name != "packed"]), "planned")
    launches = [op.kernel_name for op in module.walk() if isinstance(op, LaunchOp)]
    assert not [name for name in launches if "copy" in name], launches


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("to", [[2], [6]], "index 6 .*6"),
        ("slot", [[9], [20]], "place 20 of row 1 is outside of the dim, which has 20"),
        ("lengths", [3, 7], "ragged_attention: length of keys 7 at 1 is outside of 0 to 6"),
        ("lengths", [-1, 6], "ragged_attention: length of keys -1 at 0 is outside of 0 to 6"),
        ("table", [[2, 3], [1, 5]], "ragged_attention: page 5 at 1 is outside of 0 to 4"),
        ("offsets", [0, 3, 2, 6], "ragged_attention: offset 2 at 2 is below the one before it, 3"),
        ("offsets", [0, 3, 3, 8], "ragged_attention: offset 8 at 3 is outside of 0 to 7"),
    ],
)
def test_what_does_not_fit_is_refused(compiled: Compiled, name: str, value: list[object], message: str) -> None:
    given = inputs(compiled) | {name: np.array(value)}
    before = {n: given[n].copy() for n in ("cache", "pool")}
    with pytest.raises(RunError, match=message):
        compiled.model.run_with_tensors(given)
    if name in ("to", "slot"):  # the cache that is full is as it was
        written = {"to": "cache", "slot": "pool"}[name]
        np.testing.assert_array_equal(given[written], before[written])


def test_pages_that_are_not_in_use_are_not_looked_at(compiled: Compiled) -> None:
    given = inputs(compiled) | {"table": np.array([[2, -7], [1, 4]])}
    again = inputs(compiled)
    np.testing.assert_array_equal(
        compiled.model.run_with_tensors(given)["paged"], compiled.model.run_with_tensors(again)["paged"]
    )
