"""Modules that hold names only, for import paths that a table gives, not a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def name_module(path: str, names: Mapping[str, object]) -> None:
    """Enter a module of these names in `sys.modules`, and in its parent unless that has the name already.

    A module of that path that was imported before gets the names.
    """
    module = sys.modules.get(path)
    if module is None:
        module = sys.modules[path] = ModuleType(path, f"The documented import path of {', '.join(names)}.")
        module.__path__ = []
    vars(module).update(names)
    parent, _, last = path.rpartition(".")
    vars(sys.modules[parent]).setdefault(last, module)  # an operator or a layer goes before a module of its name


class CallableModule(ModuleType):
    """A module that is called as its function of the same name: AITemplate's package has the function in its place."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)[self.__name__.rpartition(".")[2]](*args, **kwargs)


def make_callable(*paths: str) -> None:
    """Let imported modules be called as their functions of the same name."""
    for path in paths:
        sys.modules[path].__class__ = CallableModule


__all__ = ["CallableModule", "make_callable", "name_module"]
