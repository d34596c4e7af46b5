"""Boxes of results whose operands lie in other orders of dims: which nests have them, and how a block walks them."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import Operation

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.lowering.kernels import Target, kernel_of
from ait_mlir.lowering.kernels.generated_boxes import nest_in_parts
from ait_mlir.lowering.loops.boxes import Boxes, boxes_of
from ait_mlir.lowering.loops.nest import Nest
from tests.emulator.library import EmulatedLibrary
from tests.kernels import loops
from tests.specs.spec import Spec

CUDA = Target("cuda", "sm_90a")


def parts_of(op: Operation) -> Nest:
    assert isinstance(op, LoopsOp)
    return nest_in_parts(op)


def boxes(text: str, *operands: str, to: str, elements: int = 4096, lanes: int = 1) -> Boxes | None:
    """The boxes of loops with a text."""
    form = loops.nest("given", text, *operands, to=to)
    spec = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",))
    return boxes_of(parts_of(spec.case(form, "f16", few=True).op), elements, lanes)


TURNED = "for (i = 64, j = 48) { %v = ait.at %a_[INDEX] : S ait.yield %v : S }"


def test_operands_that_lie_across_the_results_turn() -> None:
    found = boxes(TURNED.replace("INDEX", "j, i"), "48 x 64 x T", to="64 x 48 x T")
    assert found is not None and len(found.sides) == 1 and found.elements == 64 * 48
    assert [a.name for a in found.sides[0].axes] == [a.name for a in reversed(found.order)]


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        (TURNED.replace("INDEX", "i, j"), ("64 x 48 x T",)),  # lies as the results
        (TURNED.replace("INDEX", "i, 47 - j"), ("64 x 48 x T",)),  # as they, from the end
        (TURNED.replace("INDEX", "i"), ("64 x T",)),  # one element for a row of results
        (TURNED.replace("INDEX", "2 * j, 2 * i"), ("96 x 128 x T",)),  # contiguous along no axis
        ("for (i = 64, j = 48) { %k = ait.at %b_[i] : i64 %v = ait.at %a_[j, %k] : S ait.yield %v : S }",
         ("48 x 64 x T", "64 x i64")),  # an index that is a value
        ("for (i = 64, j = 48) { %s = ait.fold add for (k = 3) { %v = ait.at %a_[j, i + k] : S ait.yield %v : S } : S "
         "ait.yield %s : S }", ("48 x 66 x T",)),  # a fold
    ],
)  # fmt: skip
def test_other_nests_have_no_boxes(text: str, operands: tuple[str, ...]) -> None:
    assert boxes(text, *operands, to="64 x 48 x T") is None


def test_a_pad_turns_what_is_stored_and_not_what_is_read() -> None:
    case = loops.SPEC.drawn("padded-boxes", "f16")
    found = boxes_of(parts_of(case.op), 8192, 4)
    assert found is not None and len(found.sides) == 1
    (side,) = found.sides
    assert len(side.reads) == 2 and len(side.values) == 1 and side.width == 2  # as the sum is stored


def test_short_axes_are_joined_for_wide_stores() -> None:
    """Rows of 13 elements are no multiple of 4: 4 of them together are."""
    found = boxes_of(parts_of(loops.SPEC.drawn("padded-boxes", "f16").op), 4096, 4)
    assert found is not None and len(found.run) == 2 and found.run_elements % 4 == 0
    joined, lane = found.joined()
    assert lane.count.as_int() == 13 * 16 and len(joined.axes) == len(found.order) - 1
    alone = boxes_of(parts_of(loops.SPEC.drawn("padded-boxes", "f16").op), 4096, 1)
    assert alone is not None and len(alone.run) == 1


@pytest.mark.parametrize(
    ("form", "config", "problem"),
    [
        ("three-orders", {"elements": 3000, "lanes": 1}, "'elements' is 3000, expected a power of two"),
        ("three-orders", {"elements": 32768, "lanes": 1}, "'elements' is 32768, expected at most 16384"),
        ("three-orders", {"elements": 4096, "lanes": 16}, "'lanes' is 16, expected at most 8"),
        ("windows-turned", {"elements": 4096, "lanes": 2}, "'lanes' is 2, which does not divide the neighbours"),
        ("three-orders-dynamic", {"elements": 16384, "lanes": 8}, "bytes of shared memory, there are 49152"),
    ],
)
def test_boxes_that_do_not_fit_are_refused(form: str, config: dict[str, int], problem: str) -> None:
    op = loops.SPEC.drawn(form, "f32").op
    found = kernel_of("boxes", op, CUDA).config_problem(op, config, CUDA)
    assert found is not None and problem in found, found


@pytest.mark.parametrize("form", ["three-orders", "padded-boxes", "shuffled-shifted"])
def test_every_configuration_computes_the_same(form: str, tmp_path: Path) -> None:
    case = loops.SPEC.drawn(form, "f16")
    kernel = kernel_of("boxes", case.op, CUDA)
    cases = [loops.on_kernel(case, "boxes", config) for config in kernel.configs(case.op, CUDA)]
    library = EmulatedLibrary(cases, tmp_path, "cuda")
    for each in cases:
        loops.check_loops(library, each, f"{form}-f16")


def test_strides_for_which_nothing_turns(tmp_path: Path) -> None:
    """With the strides of a launch, the operand lies as the result: a thread computes a result alone."""
    text = TURNED.replace("INDEX", "j, i")
    form = loops.nest("unturned", text, "48 x 64 x T", to="64 x 48 x T", strides={0: ("1", "48")})
    spec = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",))
    case = loops.on_kernel(spec.case(form, "f16", few=True), "boxes", {"elements": 4096, "lanes": 4})
    (emission,) = case.emissions(CUDA)
    assert "__shared__" not in emission.definitions
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, "unturned-f16")
