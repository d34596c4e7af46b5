"""The table of operators from outside of the package, and how the files and packages that define them are loaded.

`ait_mlir.operators` adds rows. The parts of the compiler that look ops up (parser, reference, patterns, kernels,
importer) ask this table beside their own.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ait_mlir.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

ENTRY_POINTS = "ait_mlir.operators"
"""The group of entry points under which a package names its modules of operators."""


class OperatorError(CompileError, ValueError):
    """An operator from outside is wrong: its class, its template, or the file that defines it."""


@dataclass(frozen=True)
class Outside:
    """An operator from outside."""

    op: type[Operation]
    place: str
    """File and line of its definition."""
    rule: Callable[..., Sequence[Any]] | None = None
    """Its reference, as a rule of the evaluator."""
    kernels: tuple[Any, ...] = ()
    """Its kernels, in the order of preference."""
    patterns: Sequence[Any] = ()
    """Its patterns, which the pass `simplify` applies with our own."""
    torch: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, "Callable[[Any], Any]"])
    """Rows of the PyTorch importer, by the name of the overload: `mine::gate` is `mine.gate.default`."""


_table: dict[str, Outside] = {}
_decorated: set[str] = set()
"""The names that were ever in the table."""
_generation = 0
_loaded: dict[Path, Any] = {}
_installed_read = False


def add(row: Outside, replace: bool = False) -> None:
    """Add an operator; `OperatorError` with both places if there is one of this name and it is not to be replaced.

    A file that runs again replaces its own operators.
    """
    global _generation
    name = row.op.name
    if (other := _table.get(name)) is not None and not replace and other.place != row.place:
        raise OperatorError(
            f"two operators are called {name!r}: {other.place} and {row.place}; "
            "rename one, or replace the first with @operator(replace=True)"
        )
    _table[name] = row
    _decorated.add(name)
    _generation += 1


def remove(name: str) -> None:
    """Take an operator out of the table."""
    global _generation
    del _table[name]
    _generation += 1


def rows() -> Mapping[str, Outside]:
    """The operators from outside, by name; installed packages are loaded first."""
    load_installed()
    return _table


def row_of(op: type[Operation]) -> Outside | None:
    """The row of an op class."""
    row = _table.get(op.name)
    return row if row is not None and row.op is op else None


bases: list[type] = []
"""The classes that operators from outside are derived from."""


def undecorated(name: str) -> str:
    """What to do about an op that has a class, but no `@operator` above it; empty if there is no such class."""
    if name in _decorated:
        return ""
    classes = list(bases)
    for cls in classes:
        classes += cls.__subclasses__()
    found = next((cls for cls in classes if cls.__dict__.get("name") == name), None)
    return "" if found is None else f"; write @operator above its class at {place_of(found)}"


def place_of(cls: type) -> str:
    """File and line of a class."""
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):  # typed at a prompt
        return f"{cls.__module__}.{cls.__qualname__}"


def generation() -> int:
    """A number that changes with the table: what is made of it is out of date after a change."""
    return _generation


def dialects(*, installed: bool = True) -> dict[str, list[type[Operation]]]:
    """The op classes of the table by the dialect that their names start with; with those of `installed` packages."""
    found: dict[str, list[type[Operation]]] = {}
    for name, row in (rows() if installed else _table).items():
        found.setdefault(name.partition(".")[0], []).append(row.op)
    return found


def load(path: str | os.PathLike[str]) -> Any:
    """Run a Python file that defines operators and return its module; a file is run once in a process.

    Raises `OperatorError` with file and line if the file cannot be read or fails. Its operators are then not added.
    """
    file = Path(path).resolve()
    if file in _loaded:
        return _loaded[file]
    if file.suffix != ".py":
        raise OperatorError(f"cannot load operators from {path}: expected a file of Python, NAME.py")
    if not file.is_file():
        raise OperatorError(f"cannot load operators from {path}: there is no such file")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # it may import files beside it
    name = _module_name(file)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = dict(_table)
    sys.modules[name] = module  # dataclasses and annotations look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        _restore(before)
        reason = told(error)
        place = "" if reason.startswith(f"{file}:") else f"{_place_in(file, error)}: "
        raise OperatorError(f"{place}{reason}") from error
    _loaded[file] = module
    return module


def _module_name(file: Path) -> str:
    """The name under which an `import` finds the file, so that it runs once; another one if that is taken."""
    known = sys.modules.get(file.stem)
    if known is None:
        found = importlib.util.find_spec(file.stem)
        origin = found.origin if found is not None else None
    else:
        origin = getattr(known, "__file__", None)
    return file.stem if origin is not None and Path(origin).resolve() == file else f"ait_mlir_loaded_{file.stem}"


def _restore(rows: Mapping[str, Outside]) -> None:
    """Make the table what it was."""
    global _generation
    _table.clear()
    _table.update(rows)
    _generation += 1


def _place_in(file: Path, error: BaseException) -> str:
    """The line of the file at which it failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


def told(error: BaseException) -> str:
    """An exception of an author's code in one line, with its type; our own errors as they are."""
    if isinstance(error, CompileError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def load_installed() -> None:
    """Import the modules that installed packages name under `ait_mlir.operators`, once in a process.

    A module that fails is left out with a warning: other models do not need it.
    """
    global _installed_read
    if _installed_read:
        return
    _installed_read = True
    import importlib.metadata  # takes 20 ms, which only a text with operators from outside is worth

    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        before = dict(_table)
        try:
            entry.load()
        except Exception as error:
            _restore(before)
            warnings.warn(f"the operators {entry.value!r} were not loaded: {told(error)}", stacklevel=2)


__all__ = [
    "ENTRY_POINTS",
    "OperatorError",
    "Outside",
    "add",
    "bases",
    "dialects",
    "generation",
    "load",
    "load_installed",
    "place_of",
    "remove",
    "row_of",
    "rows",
    "told",
    "undecorated",
]
