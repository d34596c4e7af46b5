"""The compiler of the playground (`docs/playground`): one request in, one answer out, both JSON.

The page runs this file in the browser, without NumPy, compilers and cards; `make playground` builds it.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from ait_mlir import driver
from ait_mlir.errors import AitError, InputError, printable
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_source
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText
from ait_mlir.lowering.target import DEFAULT_ARCH, architectures
from ait_mlir.options import CompileOptions
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, PHASES
from ait_mlir.rewrites.engine.driver import counted_rewrites
from ait_mlir.tools.explain import Trace

IR, SCRIPT = "input.mlir", "script.py"
"""The names of the two kinds of text in diagnostics."""
CPU_ARCH = "x86-64-v3"
"""The default CPU: there is no CPU to ask in a browser."""
_ARCHS: dict[str, str] = {**DEFAULT_ARCH, "cpu": CPU_ARCH}
PHASES_HERE = PHASES[: PHASES.index("source") + 1]
"""An artifact is not built in a browser."""


@dataclass(frozen=True)
class Request:
    """The state of the page."""

    text: str
    kind: str = "ir"
    """`ir`, or `python` for a script of the builder."""
    target: str = "cuda"
    arch: str = ""
    to: str = "source"
    """The phase to stop at, if `passes` is None."""
    passes: str | None = None
    """A list of passes to run, as of `ait-opt -p`."""
    steps: bool = False
    """Whether the answer has the changes of each pass."""


@dataclass
class Answer:
    """The result of a request; with errors, everything up to the first error."""

    diagnostics: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ir: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """The generated sources, `program.cc` first."""
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The passes that ran, each as a `Step` of `ait_mlir/tools/explain.py`."""
    seconds: float = 0.0


def choices() -> str:
    """The choices of the page as JSON: phases, passes, and architectures for each target."""
    archs = {kind: [*dict.fromkeys([_ARCHS[kind], *architectures(kind)])] for kind in DEFAULT_ARCH}
    archs["cpu"] = [arch for arch in archs["cpu"] if arch != "native"]
    return json.dumps({"phases": PHASES_HERE, "passes": sorted(PASSES), "archs": archs})


def answer(request: str) -> str:
    """The answer to a request; errors of texts, scripts and choices are diagnostics of it."""
    start, found = perf_counter(), Answer()
    try:
        _answer(Request(**json.loads(request)), found)
    except SourceError as error:
        found.diagnostics += [asdict(d) for d in error.diagnostics]
    except AitError as error:
        found.diagnostics.append(_nowhere(str(error)))
    except Exception as error:
        advice = "this is a bug of the compiler, or needs a package that is not in this page"
        found.diagnostics.append(_nowhere(f"{type(error).__name__}: {error}; {advice}: try ait-opt on your machine"))
    found.seconds = perf_counter() - start
    return json.dumps(asdict(found))


def _answer(request: Request, found: Answer) -> None:
    if request.kind == "python":
        module, source = module_of_script(request.text), None
        check(module)
    else:
        source = SourceText(IR, request.text)
        module = parse_source(context(), source)
        check(module, source)
    found.ir = str(module) + "\n"
    with counted_rewrites() as statistics:
        trace = Trace(statistics, module)
        _compile(request, module, source, trace if request.steps else None)
    found.steps = [asdict(step) for step in trace.steps]
    found.ir = str(module) + "\n"
    if request.passes is None and request.to == "source":
        files = driver.emit(module, source).joined()
        found.files = {name: files[name] for name in sorted(files, key=lambda name: (name != "program.cc", name))}


def _compile(request: Request, module: ModuleOp, source: SourceText | None, trace: Trace | None) -> None:
    observe = None if trace is None else trace.observe
    if request.passes is not None:
        run_passes(context(), module, parse_passes(request.passes), source=source, verified=True, observe=observe)
        return
    if request.to not in PHASES_HERE:
        raise InputError(f"no phase of this page: {request.to!r}; expected one of {', '.join(PHASES_HERE)}")
    options = CompileOptions(request.target, request.arch or _ARCHS.get(request.target, ""))
    stop = "planned" if request.to == "source" else request.to
    driver.run_to_phase(module, stop, options, source=source, observe=observe)


def module_of_script(text: str) -> ModuleOp:
    """The module of a script that uses the Python builder: the graph of the tensors that it marks as outputs, or the
    value of its variable `module`.

    The script runs as code. Raises `SourceError` at its line for each error in it.
    """
    from ait_mlir.frontend.graph import build_module
    from ait_mlir.frontend.tensor import Tensor

    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(text, SCRIPT, "exec"), names)
    except SyntaxError as error:
        raise _of_script(text, error.msg, error.lineno or 1, error.offset or 1) from None
    except (Exception, SystemExit) as error:
        raise _of_script(text, _reason(error), _line_of(error)) from None
    if isinstance(module := names.get("module"), ModuleOp):
        return module
    tensors = {id(t): t for value in names.values() for t in _tensors(value, Tensor)}
    outputs = [t for t in tensors.values() if t.is_output]
    last = text.rstrip().count("\n") + 1
    if not outputs:
        advice = 'end it with y.mark_as_output("y"), or set `module`'
        raise _of_script(text, f"the script marks no tensor as an output; {advice}", last)
    try:
        return build_module(outputs, "model")
    except AitError as error:
        raise _of_script(text, str(error), last) from None


def _tensors(value: object, kind: type[Any]) -> list[Any]:
    """The tensors in a variable: the variable itself, or the elements of its list or values of its dict."""
    if isinstance(value, kind):
        return [value]
    parts = cast("Mapping[Any, Any]", value).values() if isinstance(value, dict) else value
    return (
        [part for part in cast("list[Any]", parts) if isinstance(part, kind)] if isinstance(parts, list | tuple) else []
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return f"{error.name.partition('.')[0]} is not in this page; run the script on your machine"
    if isinstance(error, AitError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _line_of(error: BaseException) -> int:
    """The last line of the script on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == SCRIPT), 1)


def _of_script(text: str, message: str, line: int, column: int = 1) -> SourceError:
    shown = SourceText(SCRIPT, text).line_text(line)
    column = max(column, len(shown) - len(shown.lstrip()) + 1)
    return SourceError([Diagnostic(SCRIPT, line, column, printable(message), shown)])


def _nowhere(message: str) -> dict[str, Any]:
    """A diagnostic without a place."""
    return asdict(Diagnostic("", 0, 0, message))
