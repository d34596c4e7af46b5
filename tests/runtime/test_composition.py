"""`Model` has its parts: none of them is its base, and its methods carry the documentation of the part's."""

from __future__ import annotations

import inspect

import pytest

from ait_mlir.runtime import Model
from ait_mlir.runtime.constants import ModelConstants
from ait_mlir.runtime.memory import DeviceMemory


def test_a_model_inherits_nothing() -> None:
    assert Model.__bases__ == (object,)


@pytest.mark.parametrize("name", [n for n, f in inspect.getmembers(Model, inspect.isfunction) if n[0] != "_"])
def test_public_methods_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(Model, name))


def test_a_method_of_a_part_keeps_its_arguments() -> None:
    assert inspect.signature(Model.set_constant) == inspect.signature(ModelConstants.set_constant)
    assert inspect.signature(Model.memcpy) == inspect.signature(DeviceMemory.memcpy)
