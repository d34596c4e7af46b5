"""No op is forgotten by the tables keyed by op, and no name stands twice in one."""

from __future__ import annotations

from types import ModuleType

import pytest
from xdsl.ir import Operation

from ait_mlir.dialects.ait import AIT, ops_of, view
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.elementwise import AddOp, YieldOp
from ait_mlir.dialects.ait.traits import Cost, Pure, ScalarLike
from ait_mlir.lowering.regions import EXPRESSIONS, NARROW_FORMS
from ait_mlir.reference import RULES, reference

OPS: list[type[Operation]] = [op for op in AIT.operations if op not in (GraphOp, YieldOp)]
"""All ops but the one that holds a graph and the terminator of regions."""


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_a_meaning(op: type[Operation]) -> None:
    assert op.name in RULES, f"{op.name} has no meaning: write one under @reference in ait_mlir/reference/"


def test_every_meaning_is_of_an_op() -> None:
    assert set(RULES) <= {op.name for op in AIT.operations}


@pytest.mark.parametrize("op", [op for op in OPS if op.has_trait(Pure)], ids=lambda op: op.name)
def test_every_op_that_computes_says_what_it_costs(op: type[Operation]) -> None:
    assert issubclass(op, Cost) or op.name in ("ait.param", "ait.constant"), f"{op.name} is no Cost"


def test_every_scalar_op_has_a_cpp_expression() -> None:
    missing = [op.name for op in OPS if issubclass(op, ScalarLike) and op not in EXPRESSIONS]
    assert not missing, f"no row in EXPRESSIONS of lowering/regions.py for {', '.join(missing)}"
    assert all(issubclass(op, ScalarLike) for op in EXPRESSIONS) and set(NARROW_FORMS) <= set(EXPRESSIONS)


def test_two_ops_of_one_name_are_refused() -> None:
    more = ModuleType("families.more")
    more.OPS = (AddOp, *view.OPS[:1])  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"ait.reshape: ReshapeOp in .*view.OPS and ReshapeOp in families.more.OPS"):
        ops_of((view, more))


def test_two_meanings_of_one_op_are_refused() -> None:
    with pytest.raises(ValueError, match=r"ait.add has two meanings, in .*elementwise.py:\d+ and .*test_registries.py"):
        reference("ait.add")(lambda op, arrays, ev: arrays)
