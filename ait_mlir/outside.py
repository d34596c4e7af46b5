"""The table of operators from outside of the package, and how the files and packages that define them are loaded.

`ait_mlir.operators` adds rows. The parts of the compiler that look ops up (parser, reference, patterns, kernels,
importer) ask this table beside their own.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ait_mlir import callers
from ait_mlir.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

ENTRY_POINTS = "ait_mlir.operators"
"""The group of entry points under which a package names its modules of operators."""


class OperatorError(CompileError, ValueError):
    """An operator from outside is wrong: its class, its template, or the file that defines it."""


@dataclass(frozen=True)
class Site:
    """A line that called `@operator`, and its code object: a module that is read again has a new code object."""

    code: CodeType
    line: int

    @classmethod
    def of(cls, frame: FrameType) -> Site:
        return cls(frame.f_code, frame.f_lineno)


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
    sites: tuple[Site, ...] = ()
    """The site that made it an operator, then the sites in the same code whose operators of this name it replaced."""


_table: dict[str, Outside] = {}
_decorated: set[str] = set()
"""The names that were ever in the table."""
_generation = 0
_loaded: dict[Path, Any] = {}
_installed_read = False


def add(row: Outside, replace: bool = False) -> None:
    """Add an operator; `OperatorError` with both places if another has its name and `replace` is not set. A file that
    runs again, also after an edit, and a function that is called again replace their own operators.
    """
    global _generation
    name = row.op.name
    if (other := _table.get(name)) is not None:
        if not replace and not _is_again(row, other):
            raise OperatorError(
                f"two operators are called {name!r}: {other.place} and {row.place}; "
                "rename one, or replace the first with @operator(replace=True)"
            )
        earlier = [site for site in _sites_in_its_code(row, other) if site.line != row.sites[0].line]
        row = dataclasses.replace(row, sites=(*row.sites, *earlier))
    _table[name] = row
    _decorated.add(name)
    _generation += 1


def _is_again(row: Outside, other: Outside) -> bool:
    """Whether a row comes from code that runs again and made an operator of this name before, rather than from code
    that makes two operators of one name.
    """
    if _file_of(row) != _file_of(other):
        return False
    before = _sites_in_its_code(row, other)
    return not before or any(site.line == row.sites[0].line for site in before)


def _sites_in_its_code(row: Outside, other: Outside) -> tuple[Site, ...]:
    """The sites of `other` in the code that made the row."""
    return tuple(site for site in other.sites if row.sites and site.code is row.sites[0].code)


def _file_of(row: Outside) -> str:
    """The file of a definition; the name of a class that was typed at a prompt."""
    file, _, line = row.place.rpartition(":")
    return file if line.isdecimal() else row.place


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
    """Advice for an op whose class has no `@operator` above it; empty if there is no such class."""
    if name in _decorated:
        return ""
    classes = list(bases)
    for cls in classes:
        classes += cls.__subclasses__()
    found = next((cls for cls in classes if cls.__dict__.get("name") == name), None)
    return "" if found is None else f"; write @operator above its class at {place_of(found)}"


def place_of(cls: type, site: Site | None = None) -> str:
    """File and line of a class; the place of its decorator, `site`, if that is in the same file."""
    try:
        file = inspect.getsourcefile(cls)
        if site is not None and file is not None and os.path.abspath(site.code.co_filename) == os.path.abspath(file):
            return f"{file}:{site.line}"
        return f"{file}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):  # typed at a prompt
        return f"{cls.__module__}.{cls.__qualname__}"


def line_of(function: Callable[..., object], error: BaseException) -> str:
    """The line at which an author's function failed: the innermost frame in the file of the function."""
    frames = traceback.extract_tb(error.__traceback__)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    frame = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    return f"{frame.filename}:{frame.lineno}"


def generation() -> int:
    """A number that changes with the table, so that results computed from an earlier table can be recognised."""
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
        reason = message_of(error)
        place = "" if reason.startswith(f"{file}:") else f"{_place_in(file, error)}: "
        raise OperatorError(f"{place}{reason}") from error
    _loaded[file] = module
    return module


def _module_name(file: Path) -> str:
    """The name under which an `import` finds the file, so that it runs once; another name if that is taken."""
    known = sys.modules.get(file.stem)
    if known is None:
        found = importlib.util.find_spec(file.stem)
        origin = found.origin if found is not None else None
    else:
        origin = getattr(known, "__file__", None)
    return file.stem if origin is not None and Path(origin).resolve() == file else f"ait_mlir_loaded_{file.stem}"


def _restore(rows: Mapping[str, Outside]) -> None:
    """Restore an earlier state of the table."""
    global _generation
    _table.clear()
    _table.update(rows)
    _generation += 1


def _place_in(file: Path, error: BaseException) -> str:
    """The place FILE:LINE of an error in `file`; only the file if no line of it is in the traceback."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


def message_of(error: BaseException) -> str:
    """An exception of an author's code in one line, with its type; our own errors as they are."""
    if isinstance(error, CompileError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def counted(count: int, noun: str) -> str:
    """`1 operand`, `2 operands`."""
    return f"{count} {noun}{'s' * (count != 1)}"


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
            callers.warn(f"the operators {entry.value!r} were not loaded: {message_of(error)}")


__all__ = [
    "ENTRY_POINTS",
    "OperatorError",
    "Outside",
    "Site",
    "add",
    "bases",
    "counted",
    "dialects",
    "generation",
    "line_of",
    "load",
    "load_installed",
    "message_of",
    "place_of",
    "remove",
    "row_of",
    "rows",
    "undecorated",
]
