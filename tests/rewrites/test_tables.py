"""The tables of families, passes and phases leave nothing out, and refuse two rows of one name."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

import ait_mlir
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.patterns import AssumingPatternPass, PatternPass, TargetPatternPass
from ait_mlir.passes.pipelines import PASSES, PHASE_TABLE, Pass, Patterns, Phase, patterns_of
from ait_mlir.rewrites.engine.language import PatternFamily
from ait_mlir.rewrites.engine.registry import Registry, constraint
from ait_mlir.rewrites.families import CONSTRAINTS, FAMILIES, NATIVES, pattern_set
from ait_mlir.rows import table

PACKAGE = Path(ait_mlir.__file__).parent
REWRITES = PACKAGE / "rewrites"
SHARED = {"apply", "families", "file", "on_demand", "regions", "elementwise.chunks"}
"""Modules of `rewrites` that belong to no family: they have no patterns, constraints or natives."""


def modules() -> dict[str, ModuleType]:
    """The modules of `rewrites` outside of the engine."""
    files = [f.relative_to(REWRITES) for f in REWRITES.rglob("*.py") if f.name != "__init__.py"]
    names = [".".join(f.with_suffix("").parts) for f in files if f.parts[0] != "engine"]
    return {name: import_module(f"ait_mlir.rewrites.{name}") for name in names}


def test_every_module_is_a_family_or_shared() -> None:
    assert set(modules()) == set(FAMILIES) | SHARED
    for name in SHARED:
        found = vars(modules()[name]).values()
        assert not any(isinstance(x, PatternFamily) or "_pattern_function" in getattr(x, "__dict__", {}) for x in found)


def test_every_pattern_is_in_a_pass() -> None:
    in_passes = {f for name, row in PASSES.items() if isinstance(row, Patterns) for f in patterns_of(name).families}
    for name, module in modules().items():
        for family in vars(module).values():
            assert not isinstance(family, PatternFamily) or family in in_passes, f"{name}: {family.name} is in no pass"


def test_every_pass_is_in_the_table() -> None:
    listed = {row.load() for row in PASSES.values()}
    for file in (f for folder in ("passes", "selection") for f in (PACKAGE / folder).rglob("*.py")):
        module = import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, ModulePass) and cls.__module__ == module.__name__:
                assert cls in listed or cls in (PatternPass, AssumingPatternPass, TargetPatternPass, ByEstimatePass), (
                    f"{cls.__name__} is in no row of PASSES"
                )


def test_phases_name_passes_of_the_table() -> None:
    named = {step.partition("{")[0] for phase in PHASE_TABLE.values() for step in phase.passes}
    assert named <= set(PASSES)
    for name, row in PASSES.items():
        assert row.load().name == name and row.load().__doc__


@pytest.mark.parametrize("row", [Phase("twice"), Pass("twice", "m", "C"), Patterns("twice", "does", ())])
def test_two_rows_of_one_name_are_refused_with_both_places(row: Phase) -> None:
    here = f"{__file__}:"
    with pytest.raises(ValueError, match=f"two things are called 'twice': {here}[0-9]+ and {here}[0-9]+"):
        table("things", (row, Phase("twice")))


@constraint
def same_type(a: SSAValue) -> bool:
    """A constraint of a name that another module has."""
    return a.has_one_use()


def test_two_constraints_of_one_name_are_refused_with_both_places() -> None:
    modules = ("ait_mlir.rewrites.engine.constraints", __name__)
    with pytest.raises(
        ValueError, match=r"two constraints are called 'same_type': .*constraints.py:\d+ and .*test_tables"
    ):
        assert Registry("constraint", modules).entries


def test_names_do_not_depend_on_what_was_imported() -> None:
    """In a process of its own: a constraint of `buffers` is known though only pattern files are loaded."""
    code = "from ait_mlir.rewrites.file import load_patterns, universe; print(universe().constraints.get('is_whole_buffer'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert "name='is_whole_buffer'" in done.stdout


def test_constraints_and_natives_have_different_names() -> None:
    assert not set(CONSTRAINTS.entries) & set(NATIVES.entries)


@pytest.mark.parametrize("name", ["norm", "norm:NOTHING", "os:PATH", "engine.language:PatternSet"])
def test_sets_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"no set of patterns is called '{name}'"):
        pattern_set(name)
