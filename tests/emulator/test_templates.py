"""Every kernel template, for warps of 32 (CUDA) and waves of 64 (HIP), executed on the CPU and compared with the reference."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.emulator.corpus import FAMILIES, NOT_EMULATED, templates
from tests.emulator.library import EmulatedLibrary, Kind
from tests.kernels import test_row

KINDS: tuple[Kind, ...] = ("cuda", "rocm")
PROPERTY: dict[Kind, str] = {"cuda": "emulated for CUDA", "rocm": "emulated for HIP"}
"""Under which the summary of a run finds what was executed (tests/conftest.py)."""
RUNS = [(kind, name) for name, family in FAMILIES.items() for kind in KINDS if kind in family.templates]


def template_of(mangled: str) -> str:
    """`row_kernel` of the mangled name of `ait::gpu::row_kernel<...>`."""
    found = re.search(r"\d([a-z_]+_kernel)", mangled)
    return found[1] if found else mangled


@pytest.mark.parametrize(("kind", "name"), RUNS, ids=lambda x: str(x))
def test_family(kind: Kind, name: str, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    family = FAMILIES[name]
    library = EmulatedLibrary(list(family.cases.values()), tmp_path, kind)
    library.note_executed()  # of other tests in this process
    library.executed.clear()
    failures: list[str] = []
    for case_name, case in family.cases.items():
        try:
            family.check(library, case, case_name)
        except (AssertionError, RuntimeError) as error:
            failures.append(f"{case_name}: {str(error).strip()[:300]}")
    ran = {mangled: template_of(mangled) for mangled in library.executed}
    kernels = [f"{template}:{hashlib.md5(mangled.encode()).hexdigest()}" for mangled, template in ran.items()]
    record_property(PROPERTY[kind], " ".join(kernels))
    assert not failures, f"{len(failures)} of {len(family.cases)} cases:\n" + "\n".join(failures[:10])
    missed = family.templates[kind] - set(ran.values())
    assert not missed, f"no case reached {', '.join(sorted(missed))}"


@pytest.mark.parametrize(("length", "template"), [(65536, "row_split_kernel"), (120001, "row_bulk_kernel")])
def test_special_long_rows(tmp_path: Path, length: int, template: str) -> None:
    case = test_row.softmax(f"11 x {length}", 1, "f16")
    library = EmulatedLibrary([case], tmp_path, "cuda")
    test_row.check_special_long_rows(library, case, (11, length))
    assert any(template in mangled for mangled in library.executed)


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_has_a_family(kind: Kind) -> None:
    covered = {t for family in FAMILIES.values() for t in family.templates.get(kind, frozenset())}
    assert covered | set(NOT_EMULATED[kind]) == templates()
    assert not covered & set(NOT_EMULATED[kind])
