"""The line that warnings show: that of the user's program, in a thread of the package, too."""

from __future__ import annotations

import ast
import gc
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ait_mlir.callers import caller, warn

PACKAGE = Path(__file__).parents[2] / "ait_mlir"


def test_the_caller_is_this_file():
    assert caller()[0] == __file__
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(caller).result()[0] == __file__


def test_a_warning_is_shown_once_for_each_line():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("a", RuntimeWarning)
        warn("a", RuntimeWarning)
    assert [(w.category, w.filename) for w in told] == [(RuntimeWarning, __file__)] * 2


def test_a_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="text"):
            warn("text")


def test_a_warning_keeps_nothing_of_who_warns():
    class Held:
        pass

    def warns() -> weakref.ref[Held]:
        held = Held()
        with pytest.warns(UserWarning):
            warn("text")
        return weakref.ref(held)

    gc.disable()
    try:
        assert warns()() is None
    finally:
        gc.enable()


def test_the_package_warns_in_this_way():
    """`warnings.warn` would show a line of ours; only `callers` and warnings with a place of their own may call it."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_warn = isinstance(node, ast.Attribute) and node.attr == "warn" and ast.unparse(node.value) == "warnings"
            assert not is_warn, f"{file}: call callers.warn"
