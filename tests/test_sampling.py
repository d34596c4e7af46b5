"""What a session of tests/gpu compiles and runs: the cases that selected tests name, and `--sample`."""

from __future__ import annotations

import argparse

import pytest

from tests.gpu import conftest, libraries, sampling

pytest_plugins = ["pytester"]
PLAIN = ("-p", "no:hypothesispytest", "-p", "no:anyio")
"""Without plugins that each session would load again."""
MODULES = (conftest, libraries, sampling)
"""Imported here, and not again by each session that a test starts."""
OPTIONS = """
from tests.conftest import pytest_addoption
"""
HOOKS = """
from tests.gpu.conftest import pytest_collection_modifyitems
"""
SUITES = """
import pytest
from tests.gpu.libraries import needed

NAMED, ALSO = {"a": "A", "b": "B", "c": "C", "beside": "D"}, {("x", 1): "X1", ("x", 2): "X2"}

@pytest.fixture(scope="module")
def library(request):
    print("needed:", *needed(request, (NAMED, ALSO)))

@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_named(library, name): pass

@pytest.mark.parametrize(("family", "number"), list(ALSO))
def test_families(library, number, family): pass

def test_beside(library): pass

@pytest.mark.parametrize("name", ["beside"])
def test_of_another_library(name): pass
"""


@pytest.fixture
def session(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(OPTIONS)
    folder = pytester.mkdir("gpu")
    (folder / "conftest.py").write_text(HOOKS)
    (folder / "test_some.py").write_text(SUITES)
    return pytester


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ((), "A B C X1 X2"),
        (("-k", "a] or c] or families"), "A C X1 X2"),
        (("-k", "test_families and 2"), "X2"),
        (("-k", "test_beside"), ""),
        (("-k", "test_beside or c]", "--build-only"), "C D"),
    ],
)
def test_the_cases_of_selected_tests_are_needed(
    session: pytest.Pytester, arguments: tuple[str, ...], needed: str
) -> None:
    found = session.runpytest_inprocess("-s", *PLAIN, *arguments)
    assert [line.partition("needed:")[2].split() for line in found.outlines if "needed:" in line] == [needed.split()]


def test_a_sample_is_the_same_draw_of_each_file_and_family(session: pytest.Pytester) -> None:
    rows = "\n".join(f'    ("{family}", {i}),' for family in "xy" for i in range(9))
    (session.path / "gpu" / "test_many.py").write_text(
        f'import pytest\n@pytest.mark.parametrize(("family", "i"), [\n{rows}\n])\ndef test_many(family, i): pass\n'
    )
    (session.path / "test_beside.py").write_text("def test_beside(): pass\n")

    def drawn(*arguments: str) -> list[str]:
        found = session.runpytest_inprocess("--collect-only", "-q", *PLAIN, *arguments).outlines
        return [line for line in found if "::" in line]

    whole, some = drawn(), drawn("--sample", "2")
    assert some == [test for test in whole if test in some] == drawn("--sample", "2")
    groups = ("[x-", "many[y-", "test_some", "test_beside.py")
    assert [sum(part in test for test in some) for part in groups] == [4, 2, 4, 1]
    assert set(some) <= set(drawn("--sample", "3")) and some != drawn("--sample", "2:1")
    assert [test for test in drawn("--sample", "2", "-k", "y-")] == [test for test in some if "[y-" in test]


@pytest.mark.parametrize("text", ["0", "-3", "4:", "many", "4:x"])
def test_what_is_no_sample_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no sample; expected a number of tests like 40"):
        sampling.sample(text)
