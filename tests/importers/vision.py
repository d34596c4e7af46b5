"""timm's models where torchvision cannot be had.

timm imports torchvision for its data loading, which no test uses. The torchvision of PyPI is built against PyTorch for
CUDA: beside PyTorch for the CPU it fails to import, and transformers with it. So `make setup` installs timm alone, and
while timm is imported, a stand-in answers for torchvision whose every name says what is missing when it is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest


def timm() -> Any:
    """The module `timm`; the test is skipped where it is not installed."""
    if "timm" in sys.modules:
        return sys.modules["timm"]
    if importlib.util.find_spec("torchvision") is not None:
        return pytest.importorskip("timm")
    finder = _StandIn()
    sys.meta_path.append(finder)
    try:
        return pytest.importorskip("timm")
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]


class _StandIn:
    """Finds and makes every module of torchvision."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "torchvision" or name == "torchvision.models.feature_extraction":
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Missing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Named(type):
    """A class any attribute of which is its name: members of enums are keys of timm's tables."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class _Missing(ModuleType):
    """A module of torchvision in name only."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(self: Any, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError(f"{what} is torchvision's, which is not installed")

        what = f"{self.__name__}.{name}"
        return _Named(name, (), {"__init__": missing})
