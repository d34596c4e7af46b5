"""No op is forgotten by the tables keyed by op, and no name stands twice in one."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pytest import MonkeyPatch
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, f32, i64
from xdsl.dialects.test import TestOp as SourceOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait import AIT, ops_of, view
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.elementwise import BINARY, UNARY, AddOp, NegOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, IndexOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.syntax import properties_of
from ait_mlir.dialects.ait.traits import Cost, Pure, ScalarLike
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.families import FAMILIES, modules
from ait_mlir.importers.torch import rows
from ait_mlir.lowering import kernels
from ait_mlir.lowering.regions import EXPRESSIONS, NARROW_FORMS
from ait_mlir.reference import RULES, core, reference
from ait_mlir.reference.elementwise import define
from tests import specs

OPS: list[type[Operation]] = [op for op in AIT.operations if op not in (GraphOp, YieldOp, AtOp, FoldOp, IndexOp)]
"""All ops but the one that holds a graph, the terminator of regions, and the parts of ait.loops."""


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_a_meaning(op: type[Operation]) -> None:
    assert op.name in RULES, f"{op.name} has no meaning: write one under @reference in ait_mlir/reference/"


def test_every_meaning_is_of_an_op() -> None:
    assert set(RULES) <= {op.name for op in AIT.operations}


@pytest.mark.parametrize("op", [op for op in OPS if op.has_trait(Pure)], ids=lambda op: op.name)
def test_every_op_that_computes_says_what_it_costs(op: type[Operation]) -> None:
    assert issubclass(op, Cost) or op.name in ("ait.param", "ait.constant"), f"{op.name} is no Cost"


def test_every_op_has_a_text_test() -> None:
    files = (Path(__file__).parents[2] / "lit_tests" / "dialects" / "ait").glob("*.mlir")
    printed = set(re.findall(r"// CHECK.*?\bait\.(\w+)", "\n".join(f.read_text() for f in files)))
    missing = {op.name.removeprefix("ait.") for op in AIT.operations} - printed
    assert not missing, f"no check of the text of ait.{', ait.'.join(sorted(missing))} in lit_tests/dialects/ait"


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
        reference(AddOp)(lambda op, arrays, ev: arrays)


@pytest.mark.parametrize(
    ("package", "names", "attribute"),
    [
        ("ait_mlir.dialects.ait", FAMILIES, "OPS"),
        ("ait_mlir.lowering.kernels", kernels.MODULES, "KERNELS"),
        ("ait_mlir.importers.torch.rows", rows.MODULES, "ROWS"),
        ("tests.specs", specs.NAMES, "SPECS"),
    ],
)
def test_every_file_with_a_table_is_listed(package: str, names: tuple[str, ...], attribute: str) -> None:
    folder = Path(str(import_module(package).__file__)).parent
    found = {f.stem for f in folder.glob("*.py") if f.stem != "__init__" and declares(f, attribute)}
    assert found == set(names)


def declares(file: Path, name: str) -> bool:
    """Whether a file assigns to a name at its top level."""
    return any(line.startswith((f"{name} =", f"{name}:")) for line in file.read_text().splitlines())


def test_every_family_has_a_reference_and_every_reference_a_family() -> None:
    folder = Path(str(core.__file__)).parent
    assert {f.stem for f in folder.glob("*.py") if "\n@reference(" in f.read_text()} == set(FAMILIES)


def test_a_family_without_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lists 'missing', but there is no module ait_mlir.reference.missing"):
        modules("ait_mlir.reference", ["norm", "missing"])


def test_a_family_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ait_mlir.reference lists norm twice; remove one"):
        modules("ait_mlir.reference", ["norm", "view", "norm"])


def test_what_a_file_of_a_family_lacks_is_not_taken_for_the_file(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    (tmp_path / "broken_family.py").write_text("import not_installed\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("ait_mlir.families.import_module", lambda name: import_module(name.removeprefix("folder.")))
    with pytest.raises(ModuleNotFoundError, match="not_installed"):
        modules("folder", ["broken_family"])


def test_only_rows_of_complex_numbers_are_replaced() -> None:
    files = modules("ait_mlir.importers.torch.rows", rows.MODULES)
    count = Counter(name for file in files for names in file.ROWS for name in names.split())
    twice = {name for name, n in count.items() if n > 1}
    assert twice <= set(files[0].ROWS) and rows.MODULES[0] == "complex"


def test_two_rows_of_one_operation_are_refused_with_both_places(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    (tmp_path / "first_rows.py").write_text("ROWS = {}\n")
    (tmp_path / "second_rows.py").write_text('ROWS = {\n    "aten.exp2.default": 1,\n}\n')
    (tmp_path / "third_rows.py").write_text('ROWS = {f"aten.{name}.default": 1 for name in ("exp2",)}\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    files = [import_module(f"{name}_rows") for name in ("first", "second", "third")]
    with pytest.raises(ValueError, match=r"aten.exp2.default: .*second_rows.py:2 and .*third_rows.py:1; remove one"):
        rows.joined(files)
    assert set(rows.joined([files[2], files[1]])) == {"aten.exp2.default"}


def test_an_op_left_out_of_its_table_is_refused_with_both_places() -> None:
    class Left(AddOp):
        name = "ait.left"

    Left.__module__ = "family"
    family = ModuleType("family")
    family.__dict__.update(Left=Left, OPS=(), __file__="family.py")
    with pytest.raises(
        ValueError, match=r"Left \(ait.left\) is defined in family.py, but not in its OPS; add it there"
    ):
        ops_of((family,))


@pytest.mark.parametrize("table", [{}, {"neg": np.negative, "left": np.negative}], ids=["no row", "no op"])
def test_a_meaning_for_each_elementwise_op_and_no_other(table: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"ait.(neg|left).*, but UNARY of .*reference/elementwise.py must have one row"
    ):
        define([NegOp], table, "UNARY")


def test_every_elementwise_op_has_its_function_in_math_h() -> None:
    text = (Path(__file__).parents[2] / "runtime/include/ait/math.h").read_text()
    found = set(re.findall(r"AIT_FN \w+ (\w+)\(", text)) | set(re.findall(r"^AIT_\w+\((\w+)", text, re.M))
    missing = {op.name.removeprefix("ait.") for op in (*UNARY, *BINARY)} - found
    assert not missing, f"runtime/include/ait/math.h has no function for {', '.join(sorted(missing))}"


def test_properties_are_made_of_python_values() -> None:
    x = SourceOp(result_types=[TensorType.get([2, 3], f32)]).results[0]
    op = CumulativeOp("sum", x, 1, reverse=True)
    expected = {"kind": StringAttr("sum"), "dim": IntegerAttr(1, i64), "reverse": UnitAttr()}
    assert op.properties == expected and op.output.type == x.type
    assert properties_of(CumulativeOp, CumulativeOp.SYNTAX, {**expected, "exclusive": None}) == expected
    with pytest.raises(TypeError, match=r"ait.cumulative has no clause for axis=1; it has kind, dim, exclusive, rev"):
        properties_of(CumulativeOp, CumulativeOp.SYNTAX, {"axis": 1})
    with pytest.raises(VerifyException, match="dim 2 is out of range"):
        CumulativeOp("sum", x, 2)
