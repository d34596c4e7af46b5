"""Kernels that are compiled together: what is joined, what the cache gives, and what a compiler refuses."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ait_mlir.errors import CompileError
from ait_mlir.host.cache import FOLDER
from ait_mlir.lowering import build, joining
from ait_mlir.lowering.build import build_with, refused_sources
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.toolchain import Toolchain, toolchain

NAMES = ("one", "two", "three")


@pytest.fixture(autouse=True)
def objects_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of objects in an empty cache; one compiler runs at a time."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AIT_BUILD_JOBS", "1")
    return tmp_path / "cache" / FOLDER / "objects"


def tools() -> Toolchain:
    """g++ in place of a compiler for a GPU."""
    base = toolchain("cpu", "native")
    return replace(base, compile_flags=(*base.compile_flags, "-x", "c++"), is_for_cpu_kernels=False)


def kernels(*names: str) -> dict[str, str]:
    """A source for each name, with a function that returns the length of the name."""
    return {f"k_{name}.cu": f'extern "C" int {name}() {{ return {len(name)}; }}\n' for name in names}


def values(sources: Mapping[str, str], folder: Path) -> dict[str, int]:
    """The results of the functions of the library of `sources`."""
    library = ctypes.CDLL(str(build_with(tools(), sources, folder, "compiling")))
    return {name: library[name]() for name in (Path(source).stem.removeprefix("k_") for source in sources)}


def made(objects: Path) -> int:
    return len(list(objects.rglob("*.o")))


def test_more_kernels_than_compilers_are_joined(
    tmp_path: Path, objects_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [letter * length for length in range(1, joining.MOST + 1) for letter in "ab"]
    expected = {name: len(name) for name in names}
    assert values(kernels(*names), tmp_path / "a") == expected and made(objects_folder) == 2
    monkeypatch.setenv("AIT_BUILD_JOBS", str(len(names)))
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "another"))
    assert values(kernels(*names), tmp_path / "b") == expected
    assert made(tmp_path / "another" / FOLDER / "objects") == len(names)


def test_an_object_serves_each_library_that_has_all_its_kernels(tmp_path: Path, objects_folder: Path) -> None:
    for count, names in [(1, "one two"), (2, "one two three"), (3, "two three"), (3, "one two three")]:
        got = values(kernels(*names.split()), tmp_path / "w")
        assert got == {name: len(name) for name in names.split()} and made(objects_folder) == count


def test_no_library_has_a_kernel_twice(tmp_path: Path, objects_folder: Path) -> None:
    """Of two objects with one kernel the library takes one."""
    values(kernels("one", "two"), tmp_path / "w")
    values(kernels("two", "three"), tmp_path / "w")
    assert made(objects_folder) == 2
    assert values(kernels(*NAMES), tmp_path / "w") == {"one": 3, "two": 3, "three": 5} and made(objects_folder) == 3


def test_a_kernel_whose_header_has_changed_is_compiled_again(tmp_path: Path) -> None:
    sources = kernels("one") | {"k_two.cu": '#include "n.h"\nextern "C" int two() { return N; }\n'}
    for number in (1, 2, 1):
        folder = tmp_path / "w"
        library = ctypes.CDLL(str(build_with(tools(), sources | {"n.h": f"#define N {number}\n"}, folder, "compiling")))
        assert (library.one(), library.two()) == (3, number)


@pytest.mark.parametrize("record", ["", "0" * 64, "not a key", b"\xff\xfe"])
def test_a_damaged_record_costs_only_time(tmp_path: Path, objects_folder: Path, record: str | bytes) -> None:
    values(kernels("one", "two"), tmp_path / "w")
    for path in objects_folder.rglob("*.joined"):
        path.write_bytes(record if isinstance(record, bytes) else record.encode())
    assert values(kernels(*NAMES), tmp_path / "w") == {"one": 3, "two": 3, "three": 5}


def test_kernels_that_cannot_stand_in_one_unit_are_compiled_apart(tmp_path: Path, objects_folder: Path) -> None:
    sources = {name: f"struct Clash {{ int {Path(name).stem}; }};\n{text}" for name, text in kernels(*NAMES).items()}
    assert values(sources, tmp_path / "w") == {"one": 3, "two": 3, "three": 5} and made(objects_folder) == 3


def test_a_refused_kernel_is_named_alone(tmp_path: Path) -> None:
    sources = kernels(*NAMES) | {"k_bad.cu": "int f() { return nothing; }\n"}
    with pytest.raises(CompileError) as caught:
        values(sources, tmp_path / "w")
    message = str(caught.value)
    assert message.startswith(f"the compiler refused {tmp_path}/w/k_bad.cu:\n") and "k_bad.cu:1:18: error" in message


@pytest.mark.parametrize("line", ["#define N 1", '# line 7 "of an author"', "  #undef N"])
def test_a_source_with_directives_of_an_author_stays_alone(tmp_path: Path, objects_folder: Path, line: str) -> None:
    sources = kernels(*NAMES) | {"k_four.cu": f'{line}\nextern "C" int four() {{ return 4; }}\n'}
    assert values(sources, tmp_path / "w")["four"] == 4 and made(objects_folder) == 2


def test_a_refused_candidate_does_not_stop_those_beside_it(
    tmp_path: Path, objects_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "toolchain", lambda *_: tools())
    target = Target("cuda", "sm_90a")
    sources = kernels(*NAMES) | {"k_bad.cu": "static_assert(false);\n"}
    assert refused_sources(sources, target, tmp_path / "check") == {"k_bad.cu"}
    assert made(objects_folder) == len(NAMES)
    assert refused_sources(kernels("four", "five"), target, tmp_path / "check") == set()
    assert made(objects_folder) == len(NAMES) + 1
