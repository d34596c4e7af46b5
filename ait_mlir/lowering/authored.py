"""C++ that an author outside of the package wrote: plain or as a Jinja2 template, with `#line` to its place.

The compiler's messages then name the author's file and line, not those of the generated file.
"""

from __future__ import annotations

import ast
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.outside import Elementwise, fields, python_values
from ait_mlir.dims import Expr
from ait_mlir.lowering.cpp import cstr
from ait_mlir.outside import OperatorError, rows


@dataclass(frozen=True)
class SourceLine:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, init=False)
class Ffi:
    """A kernel that is a function on tvm-ffi: of a kernel library, or one that the process has registered.

    It gets the operands, then the properties, then a tensor for each result, into which it writes; None for an operand
    that is left out. `library` is the name of a kernel library (docs/kernel_libraries.md); `path` is its file, relative
    to the file that names it. Without both, `tvm_ffi.register_global_func` has registered the function. A `strided`
    function reads the strides of tensors; for other functions tensors are row-major.
    """

    function: str
    library: str | None
    path: Path | None
    strided: bool

    def __init__(
        self,
        function: str,
        *,
        library: str | None = None,
        path: str | Path | None = None,
        strided: bool = False,
    ) -> None:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        found = None if path is None else Path(frame.f_code.co_filename).parent / path
        set_ = object.__setattr__
        set_(self, "function", function)
        set_(self, "library", found.stem if library is None and found is not None else library)
        set_(self, "path", found)
        set_(self, "strided", strided)


def caller(text: str, depth: int = 2) -> SourceLine:
    """The place of the string `text` in the file of the caller `depth` frames up: the line on which the text starts."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    return place_of(text, frame.f_code.co_filename, frame.f_lineno)


def place_of(text: str, file: str, line: int) -> SourceLine:
    """The place of a string in a Python file: the occurrence nearest to `line`, or `line` if there is none."""
    try:
        parsed = ast.parse(_text_of(file) or "")
    except (SyntaxError, ValueError):  # no file of Python
        return SourceLine(file, line)
    found = [node.lineno for node in ast.walk(parsed) if isinstance(node, ast.Constant) and node.value == text]
    return SourceLine(file, min(found, key=lambda n: abs(n - line), default=line))


def _text_of(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


# ** plain C++ and templates **


@dataclass(frozen=True, init=False)
class Cpp:
    """A kernel in C++: `text` defines `function`, which is called with the context of the run, the operands, the
    results and the properties, in the order of their declarations.

    An operand is an `ait::Tensor<const T, rank>`, a result an `ait::Tensor<T, rank>` (`ait/operator.h`); a number is a
    `double` or an `int64_t`, a flag a `bool`, a string a `const char*`, a list an `std::array<int64_t, n>`. An operand
    that is left out is a `nullptr`. The text goes into its own namespace, its `#include` lines before it. The function
    returns nothing, or a status such as that of `ctx.fail("why")`. On a GPU it launches on `stream_of(ctx)`. By
    default it has the op's name after the dot, and tensors are row-major; with `strided` it takes any strides.
    `workspace` is a function of the op that returns the bytes of scratch memory, an int or a dim; then the last
    argument is a `void*`, aligned to 64 bytes, which is part of the memory plan.
    """

    text: str
    function: str
    strided: bool
    workspace: Callable[[Any], Expr | int] | None
    place: SourceLine

    def __init__(
        self,
        text: str,
        *,
        function: str = "",
        strided: bool = False,
        workspace: Callable[[Any], Expr | int] | None = None,
        place: SourceLine | None = None,
    ) -> None:
        set_ = object.__setattr__
        set_(self, "text", text)
        set_(self, "workspace", workspace)
        set_(self, "function", function)
        set_(self, "strided", strided)
        set_(self, "place", caller(text) if place is None else place)

    @classmethod
    def file(cls, path: str | Path, **options: Any) -> Cpp:
        """A kernel whose text is a file. Raises `OperatorError` if it cannot be read."""
        if (text := _text_of(str(path))) is None:
            raise OperatorError(f"cannot read the kernel {path}")
        return cls(text, place=SourceLine(str(path), 1), **options)

    def render(self, values: Mapping[str, Any]) -> str:
        """The C++ with `#line`."""
        return _in_namespace(f"{line_directive(self.place)}\n{self.text}")


class Jinja(Cpp):
    """A kernel as `Cpp`, whose text is a Jinja2 template.

    Its variables are the operands and results by name, with `dtype` (the C++ type), `rank` and `shape` (a number, or
    None where only the run knows it); the properties by name; `target` (`cpu`, `cuda`, `rocm`) and `arch`.
    """

    def render(self, values: Mapping[str, Any]) -> str:
        """The C++ with `#line`; `OperatorError` with the line of the template if it cannot be rendered."""
        import jinja2

        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        try:
            rendered = environment.from_string(_marked(environment, self.text)).render(values)
        except jinja2.TemplateSyntaxError as error:
            raise self._fails(error.lineno, error.message or "") from error
        except Exception as error:
            raise self._fails(template_line(error) or 1, str(error) or type(error).__name__) from error
        return _in_namespace("\n".join(_with_lines(rendered, self.place)))

    def _fails(self, line: int, why: str) -> OperatorError:
        return OperatorError(f"{self.place.file}:{self.place.line + line - 1}: the template cannot be rendered: {why}")


_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


def _in_namespace(text: str) -> str:
    """The text in an anonymous namespace, its `#include` lines moved before it and replaced by empty lines."""
    includes = "".join(f"{found.strip()}\n" for found in _INCLUDE.findall(text))
    return f"{includes}namespace {{\n{_INCLUDE.sub('', text)}\n}}  // namespace\n"


def template_line(error: BaseException) -> int | None:
    """The line at which the rendering of a template (made from a string) failed."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == "<template>"]
    return lines[-1] if lines else None


def line_directive(place: SourceLine) -> str:
    return f"#line {place.line} {cstr(place.file)}"


_MARK = "\ue000"
"""Encloses the line number at the start of each line while a template is rendered."""
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")


def _marked(environment: Any, text: str) -> str:
    """The template with its line number at the start of each line that starts with text, not with a tag."""
    lines = text.split("\n")
    plain: set[int] = set()
    for number, kind, value in environment.lexer.tokeniter(text, None):
        if kind == "data":
            # A token starts within a line, or with one: only the lines that begin in it are its own.
            plain |= {number + i for i in range(1, value.count("\n") + 1)}
    for number, line in enumerate(lines, 1):
        if (number == 1 or number in plain) and line.strip() and not line.lstrip().startswith(("{%", "{#")):
            lines[number - 1] = f"{_MARK}{number}{_MARK}{line}"
    return "\n".join(lines)


def _with_lines(rendered: str, place: SourceLine) -> Iterator[str]:
    """The lines without marks, with `#line` where they do not follow each other."""
    expected, continued = -1, False
    for line in rendered.split("\n"):
        found = _MARKED.match(line)
        if found is not None and int(found[1]) != expected and not continued:
            expected = int(found[1])
            yield line_directive(SourceLine(place.file, place.line + expected - 1))
        clean = _MARKED.sub("", line)
        yield clean
        continued = clean.endswith("\\")
        expected += 1


def located(text: str, file: str) -> str:
    """Text rendered from the templates in a file, with `#line` directives that give each line its place in the file.

    A rendered line belongs to a line of the file that is equal, except for the text in place of each `{{...}}`. Other
    lines are counted on from the line before.
    """
    index = _LineIndex(_text_of(file) or "")
    lines: list[str] = []
    expected, continued = -1, False
    for line in text.split("\n"):
        found = index.lines(line)
        if found and expected not in found and not continued:
            expected = min(found, key=lambda n: (n < expected, n))
            lines.append(line_directive(SourceLine(file, expected)))
        lines.append(line)
        continued = line.endswith("\\")
        expected += 1
    return "\n".join(lines)


class _LineIndex:
    """An index of the lines of a template file, to find the lines from which text may have been rendered."""

    SHORTEST = 4
    """The fewest characters outside of `{{...}}` by which a line is recognised."""

    def __init__(self, text: str) -> None:
        self._plain: dict[str, list[int]] = {}
        self._patterns: list[tuple[re.Pattern[str], int]] = []
        for number, line in enumerate(text.split("\n"), 1):
            parts = [part.strip() for part in re.split(r"\{\{.*?\}\}", line.strip())]
            if sum(map(len, parts)) < self.SHORTEST:
                continue
            if len(parts) == 1:
                self._plain.setdefault(parts[0], []).append(number)
            else:
                self._patterns.append((re.compile(r"\s*.*?\s*".join(map(re.escape, parts))), number))

    def lines(self, line: str) -> list[int]:
        """The numbers of the lines from which `line` may have been rendered."""
        key = line.strip()
        if len(key) < self.SHORTEST or key in self._plain:
            return self._plain.get(key, [])
        return [number for pattern, number in self._patterns if pattern.fullmatch(key)]


# ** values in C++ **


def cpp_value(value: Any) -> str:
    """A property as a C++ expression."""
    match value:
        case None:
            return "nullptr"
        case bool():
            return "true" if value else "false"
        case int():
            return f"int64_t({value})" if value != -(2**63) else "(-9223372036854775807LL - 1)"
        case float() if value != value:
            return '__builtin_nan("")'
        case float() if value in (float("inf"), -float("inf")):
            return f"{'-' if value < 0 else ''}__builtin_huge_val()"
        case float():
            return value.hex()
        case str():
            return cstr(value)
        case _:
            items = ", ".join(map(cpp_value, value))
            return f"std::array<int64_t, {len(value)}>{{{items}}}"


_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")


_EXPRESSION = re.compile(r"/\* ([a-z0-9_]+\.[a-z0-9_]+) \*/")


def places_of_expressions(line: str) -> list[str]:
    """File, line and name of the elementwise operators from outside that a line of generated C++ computes."""
    found: list[str] = []
    for name in dict.fromkeys(_EXPRESSION.findall(line)):
        if (row := rows().get(name)) is not None and issubclass(row.op, Elementwise):
            file, _, number = row.place.rpartition(":")
            place = place_of(row.op.CPP, file, int(number)) if number.isdecimal() else row.place
            found.append(f"{place}: in the expression of {name}")
    return found


CALLER = "the code that calls it"
"""The file name, in `#line` and compiler messages, of the generated code around the author's text."""
_CALL = re.compile(r"/\* the kernel of (\S+) for (\w+): (.*) \*/")


def call_comment(op: AitOp, kind: str) -> str:
    """A comment in the code that calls a kernel: its operator, its target and the element types of its tensors."""
    types: list[str] = []
    for name, values, _ in fields(op):
        types += [f"{name} is {tensor_type(value).element_type}" for value in values]
    names = [name for name, _ in type(op).get_irdl_definition().results]
    types += [f"{n} is {tensor_type(v).element_type}" for n, v in zip(names, op.results, strict=False)]
    return f"/* the kernel of {op.name} for {kind}: {', '.join(dict.fromkeys(types))} */"


def refused_kernel(source: str, message: str) -> str | None:
    """The first words of the error if the compiler refuses generated C++ that calls an author's kernel; None if the C++
    calls no such kernel.
    """
    if (found := _CALL.search(source)) is None or (row := rows().get(found[1])) is None:
        return None
    name, kind, types = found.groups()
    place = next((k.source.place for k in row.kernels if k.kind == kind and isinstance(k.source, Cpp)), row.place)
    message = f"{place}: the kernel of {name} does not compile where {types}"
    if CALLER in message or not all(t.endswith(" f32") for t in types.split(", ")):
        message += "; if it is not for these element types, refuse them in infer_result_types"
    return f"{message}:"


def scalar_cpp(op: Elementwise, operands: Sequence[str], result: str) -> str:
    """The C++ expression of one element of an elementwise op; `operands` are the expressions of its operands."""
    values: dict[str, str] = dict(zip(op.OPERAND_NAMES, operands, strict=True))
    values |= {name: cpp_value(value) for name, value in python_values(op).items()}
    values["T"] = result
    return f"static_cast<{result}>(/* {op.name} */ {_WORD.sub(lambda word: values.get(word[0], word[0]), op.CPP)})"
