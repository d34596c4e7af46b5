"""Every kernel template, for warps of 32 (CUDA) and waves of 64 (HIP), executed on the CPU and compared with the reference."""

from __future__ import annotations

import hashlib
import itertools
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ait_mlir.lowering.toolchain import cpp_root, find_cxx
from tests.emulator.corpus import FAMILIES, KINDS, MULTIPROCESSORS, NOT_EMULATED, templates
from tests.emulator.library import COMMON, CPP, EmulatedLibrary, Kind
from tests.kernels import rows
from tests.kernels.harness import Case, assert_close, check, random_inputs, reference

PROPERTY: dict[Kind, str] = {"cuda": "emulated for CUDA", "rocm": "emulated for HIP"}
"""Under which the summary of a run finds what was executed (tests/conftest.py)."""
SHARD_BY_TEST = True
RUNS = [(kind, name) for name, family in FAMILIES.items() for kind in KINDS if kind in family.templates]


def template_of(mangled: str) -> str:
    """`row_kernel` of the mangled name of `ait::gpu::row_kernel<...>`."""
    found = re.search(r"\d([a-z_]+_kernel)", mangled)
    return found[1] if found else mangled


@pytest.mark.parametrize(("kind", "name"), RUNS, ids=lambda x: str(x))
def test_family(kind: Kind, name: str, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    family = FAMILIES[name]
    cases = family.make()
    library = EmulatedLibrary(list(cases.values()), tmp_path, kind)
    failures: list[str] = []
    for case_name, case in cases.items():
        try:
            family.check(library, case, case_name)
        except (AssertionError, RuntimeError) as error:
            failures.append(f"{case_name}: {str(error).strip()[:300]}")
    ran = {mangled: template_of(mangled) for mangled in library.executed}
    kernels = [f"{template}:{hashlib.md5(mangled.encode()).hexdigest()}" for mangled, template in ran.items()]
    record_property(PROPERTY[kind], " ".join(kernels))
    assert not failures, f"{len(failures)} of {len(cases)} cases:\n" + "\n".join(failures[:10])
    missed = {*family.templates[kind], *family.arguments} - set(ran.values())
    missed -= {argument for argument in family.arguments if any(argument in mangled for mangled in ran)}
    assert not missed, f"no case reached {', '.join(sorted(missed))}"


@pytest.mark.parametrize(("length", "template"), [(65536, "row_split_kernel"), (120001, "row_bulk_kernel")])
def test_special_long_rows(tmp_path: Path, length: int, template: str) -> None:
    case = rows.softmax(f"11 x {length}", 1, "f16")
    library = EmulatedLibrary([case], tmp_path, "cuda")
    rows.check_special_long_rows(library, case, (11, length))
    assert any(template in mangled for mangled in library.executed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("op", "length", "t", "few", "many"),
    [
        ("softmax", 8, "f32", (2, 1), (1, 2)),
        ("layer_norm", 8, "f16", (1, 1), (1, 1)),
        ("rms_norm", 32, "bf16", (4, 1), (2, 2)),
        ("layer_norm", 24, "bf16", (4, 1), (2, 2)),
        ("softmax", 40, "f16", (8, 1), (4, 2)),
        ("rms_norm", 64, "bf16", (8, 1), (4, 2)),
        ("layer_norm", 64, "f16", (8, 1), (4, 2)),
        ("softmax", 128, "f16", (16, 1), (8, 2)),
        ("rms_norm", 96, "f32", (32, 1), (16, 2)),
        ("softmax", 256, "bf16", (32, 1), (16, 2)),
    ],
)
def test_many_short_rows_have_two_chunks_a_lane(
    op: str, length: int, t: str, few: tuple[int, int], many: tuple[int, int], kind: Kind, tmp_path: Path
) -> None:
    """Lanes of a row and chunks of a lane, with as many rows as fill the card and with one more."""
    most = rows.most_of_few(length, t, MULTIPROCESSORS)
    cases: list[Case] = []
    for shape in (f"{most} x {length}", f"{most + 1} x {length}"):
        case = rows.softmax(shape, 1, t) if op == "softmax" else rows.layer_norm(shape, str(length), t, 1, op=op)
        cases.append(replace(case, envs=[{"b": 1, "s": 1}]))
    library = EmulatedLibrary(cases, tmp_path, kind)
    for case, (lanes, chunks) in zip(cases, (few, many), strict=True):
        library.executed.clear()
        check(library, case, 0.6 if t != "f32" else 16, floor=1e-6)
        (kernel,) = library.executed
        assert f"Li{lanes}ELi{chunks}ELi{16 // (4 if t == 'f32' else 2)}E" in kernel


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_length_have_two_chunks_a_lane_where_one_would_take_more_than_8_lanes(
    kind: Kind, tmp_path: Path
) -> None:
    many = rows.softmax(f"{rows.most_of_few(64, 'f16', MULTIPROCESSORS) + 1} x s", 1, "f16")
    few = rows.softmax("b x s", 1, "f16")
    library = EmulatedLibrary([many, few], tmp_path, kind)
    for case, length, lanes, chunks in (
        (many, 64, 8, 1),
        (many, 72, 8, 2),
        (many, 136, 16, 2),
        (few, 64, 8, 1),
        (few, 72, 32, 1),
        (few, 136, 32, 1),
    ):
        library.executed.clear()
        env = {"b": 3, "s": length}
        inputs = random_inputs(case, env)
        (got,), (want,) = library.run(case, env, inputs), reference(case, env, inputs)
        assert_close(got, want, ulps=0.6, floor=1e-6)
        (kernel,) = library.executed
        assert f"Li{lanes}ELi{chunks}ELi8E" in kernel


@pytest.mark.parametrize(("factors", "template"), [("", "row_kernel"), ("bias %h", "row_bulk_kernel")])
def test_long_rows_without_factors_belong_to_one_block(tmp_path: Path, factors: str, template: str) -> None:
    case = replace(rows.layer_norm("5 x 32768", "32768", "f16", 1, factors), envs=[{"b": 1, "s": 1}])
    library = EmulatedLibrary([case], tmp_path, "cuda")
    check(library, case, 0.6, floor=1e-6)
    (kernel,) = library.executed
    assert template in kernel


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_has_a_family(kind: Kind) -> None:
    covered = {t for family in FAMILIES.values() for t in family.templates.get(kind, frozenset())}
    assert covered | set(NOT_EMULATED[kind]) == templates()
    assert not covered & set(NOT_EMULATED[kind])


def test_every_kernel_is_a_template() -> None:
    """Else two sources that include its header could not be linked together."""
    for path in sorted((cpp_root() / "include/ait/kernels/gpu").glob("*.cuh")):
        lines = path.read_text().splitlines()
        for above, line in itertools.pairwise(lines):
            if line.startswith("__global__"):
                assert above.startswith("template <") or above.endswith(">"), f"{path.name}: {line[:100]}"


@pytest.mark.parametrize("flags", [("-D__CUDACC__", "-DAIT_SM=80"), ("-D__CUDACC__", "-DAIT_SM=90"), ("-D__HIPCC__",)])
def test_the_headers_of_all_kernels_stand_in_one_unit(flags: tuple[str, ...]) -> None:
    """Kernels that are compiled together include any of them."""
    root = cpp_root() / "include"
    asks_driver = "read_dim.cuh"  # for what the emulator does not have
    paths = [p for p in sorted((root / "ait/kernels/gpu").rglob("*.cuh")) if p.name != asks_driver]
    text = "".join(f'#include "{path.relative_to(root)}"\n' for path in paths)
    include = [part for path in (CPP / "include", CPP, root) for part in ("-I", str(path))]
    command = [str(find_cxx()), *COMMON, *flags, *include, "-fsyntax-only", "-x", "c++", "-"]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert len(paths) > 80 and ran.returncode == 0, ran.stderr
