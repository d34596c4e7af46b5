"""Words of neighbours that a thread reads where values turn: how wide they may be."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.lowering.kernels.generated import nest_known
from ait_mlir.lowering.loops.nest import neighbours_of_word
from ait_mlir.lowering.loops.turned import turned_axis, turned_values
from tests.kernels import loops
from tests.specs.spec import Spec

TURNED = "for (i = COUNT, j = 48) { %v = ait.at %a_[j, INDEX] else FILL : S ait.yield %v : S }"


def word(count: int, size: object, index: str, fill: str = "0.0") -> int:
    """The neighbours of a word along the first axis of a result of `count` rows, read from rows of `size` elements."""
    text = TURNED.replace("COUNT", str(count)).replace("INDEX", index).replace("FILL", fill)
    form = loops.nest("given", text, f"48 x {size} x T", to=f"{count} x 48 x T")
    op = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",)).case(form, "f16", True).op
    assert isinstance(op, LoopsOp)
    nest = nest_known(op)
    return neighbours_of_word(nest, nest.reads(), nest.axes[0], 8)


@pytest.mark.parametrize(
    ("count", "size", "index", "expected"),
    [
        (64, 64, "i", 8),
        (28, 28, "i", 4),  # rows of 28
        (30, 30, "i", 2),
        (31, 31, "i", 1),  # rows begin on odd places
        (36, 28, "i - 4", 4),  # a pad of whole words
        (34, 28, "i - 2", 2),
        (33, 28, "i - 4", 4),  # the last word is outside as a whole
        (36, 28, "i - 3", 1),  # words would lie across the border
        (29, 32, "i", 1),  # the last word would have elements of the next row
        (32, 64, "2 * i", 1),  # no neighbours
        (32, 32, "31 - i", 1),
    ],
)
def test_words_are_aligned_and_inside_or_outside_as_a_whole(count: int, size: int, index: str, expected: int) -> None:
    assert word(count, size, index) == expected


def test_words_of_unknown_rows_have_one_element() -> None:
    assert word(32, "s", "i") == 1


def test_all_reads_share_a_width() -> None:
    text = "for (i = 28, j = 48) { %v = ait.at %a_[j, i] : S %w = ait.at %b_[j, i + 2] : S "
    text += "%s = ait.add %v, %w : S ait.yield %s : S }"
    form = loops.nest("given", text, "48 x 28 x T", "48 x 30 x T", to="28 x 48 x T")
    op = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",)).case(form, "f16", True).op
    assert isinstance(op, LoopsOp)
    nest = nest_known(op)
    reads, axis = list(nest.reads()), nest.axes[0]
    assert neighbours_of_word(nest, reads[:1], axis, 8) == 4
    assert neighbours_of_word(nest, reads, axis, 8) == 2


def test_values_turn_as_they_are_stored_where_that_is_exact() -> None:
    for fill, expected in (("0.0", "f16"), ("0.5", "f32")):
        text = TURNED.replace("COUNT", "36").replace("INDEX", "i - 4").replace("FILL", fill)
        form = loops.nest("given", text, "48 x 28 x T", to="36 x 48 x T")
        spec = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",))
        op = spec.case(form, "f16", True).op
        assert isinstance(op, LoopsOp)
        nest = nest_known(op)
        turn = turned_axis(nest)
        assert turn is not None
        assert [str(t) for t in turned_values(nest, nest.axes[-1].name, turn.name, 8).types] == [expected]
