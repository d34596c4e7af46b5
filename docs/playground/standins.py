"""Stand-ins for packages that a browser does not have, so that modules which import them can be loaded.

The compiler needs none of them from a text to C++; modules only mention them in types and tables. A function that
calls one raises `NotInBrowser`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

PACKAGES = frozenset(
    ("blake3", "fcntl", "grp", "ml_dtypes", "numpy", "pwd", "resource", "safetensors", "scipy", "tqdm", "tvm_ffi")
)


class NotInBrowser(RuntimeError):
    """A function needs a package that is not in the page."""


class StandIn:
    """Any object of a missing package; while a module is imported, it is also the result of each operation on it."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.name}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
                return self
            frame = frame.f_back
        raise NotInBrowser(f"{self.name} is needed here, and {self.name.partition('.')[0]} is not in this page")

    def __getitem__(self, key: object) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (object,)

    def __or__(self, other: Any) -> Any:
        return other

    __ror__ = __or__

    def _same(self, *others: object) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _same


class StandInModule(ModuleType):
    """A missing package or a module of it."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")


class Finder(MetaPathFinder, Loader):
    """Finds stand-ins for `PACKAGES`."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Let later imports find the stand-ins."""
    sys.meta_path.insert(0, Finder())
