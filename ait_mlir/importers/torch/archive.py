"""Reads files of `torch.export.save`, and refuses parts that would run as code before PyTorch reads them.

PyTorch reads such a file with pickle if a safe reader fails, evaluates its dim expressions, compiles its guards and
names as Python, and loads compiled models that may be stored beside the program.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import quiet, torch

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATH = re.compile(r"[\w.:+-]*", re.ASCII)
"""Names of parameters, modules and versions: they call no function, wherever they occur in a line of Python."""
_OPERATION = re.compile(r"torch\.ops\.(?!_)\w+\.\w+(\.(?!_)\w+)?|torch\.sym_\w+|_operator\.\w+|math\.\w+", re.ASCII)
_FUNCTION = re.compile(r"torch\.ops\.(?!_)\w+\.\w+\.(?!_)\w+", re.ASCII)
_NUMBER = re.compile(r"[-+]?[\w.+-]*", re.ASCII)
_NAMES = ("name", "as_name", "forward_arg_names", "field_names", "user_input_name")
_TEXTS = ("as_string", "as_strings")
_PLAIN_PICKLES = ("data/weights/", "data/constants/", "data/sample_inputs/")
_SYMPY = re.compile(
    "Symbol|Integer|Float|Rational|Add|Mul|Pow|Mod|Max|Min|Abs|And|Or|Not|Eq|Ne|Equality|Unequality|Lt|Le|Gt|Ge|"
    "StrictLessThan|LessThan|StrictGreaterThan|GreaterThan|Piecewise|floor|ceiling|FloorDiv|ModularIndexing|Where|"
    "PythonMod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural|FloatPow|FloatTrueDiv|IntTrueDiv|"
    "IsNonOverlappingAndDenseIndicator|TruncToFloat|TruncToInt|RoundToInt|RoundDecimal|ToFloat|Identity|max|min"
)
"""The functions of dim expressions; SymPy evaluates all of them only on numbers and symbols."""
_IN_GUARDS = re.compile(r"math\.(trunc|floor|ceil|isnan|sqrt)|torch\.sym_(float|int|max|min|not|ite)")
_METHODS = ("size", "stride", "storage_offset")
_LARGEST_POWER = 64
_FACTORIES = ("list", "dict", "tuple", "set", "int", "float", "str", "bool", "OrderedDict")

_ADVICE = "; --trust-pickle (trust_pickle=True) loads it as it is: only for a file that you trust"


class _Refused(Exception):
    """A part of a file would run as code."""


def read_program(path: str | os.PathLike[str], *, trust_pickle: bool = False) -> Any:
    """The `ExportedProgram` of a .pt2 file.

    First the file is searched, without running it, for parts that PyTorch would run as code when it reads them. With
    `trust_pickle`, PyTorch reads the file without this check. Raises `ImportFailure` for other files, and for code.
    """
    file = Path(path)
    if not file.is_file():
        raise ImportFailure(f"{path}: there is no such file")
    try:
        with quiet():
            if trust_pickle:
                return torch.export.load(file)
            package = cast(Any, import_module("torch.export.pt2_archive._package"))
            if _is_of_older_format(file):
                raise _Refused("it has the format of PyTorch 2.7 and older, which is read with pickle")
            with package.PT2ArchiveReader(str(file)) as reader:
                _check_archive(reader)
            return package.load_pt2(str(file)).exported_programs["model"]
    except _Refused as refused:
        raise ImportFailure(f"{path} would run code when it is loaded: {refused}{_ADVICE}") from None
    except (Exception, RecursionError) as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        detail = text[0].partition(". ")[0]  # PyTorch adds guesses about damaged checkpoints
        raise ImportFailure(f"{path} is no program that torch.export.save has written: {detail}") from error


def _is_of_older_format(file: Path) -> bool:
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return "serialized_exported_program.json" in archive.namelist()


def _check_archive(reader: Any) -> None:
    """Raise `_Refused` for an archive with a part that PyTorch would run; `reader` is PyTorch's reader of the
    archive."""
    names: list[str] = list(reader.get_file_names())
    for name in names:
        if name.startswith("data/aotinductor/"):
            raise _Refused(f"{name} belongs to a compiled model")
        if name.startswith(_PLAIN_PICKLES) and name.endswith(".pt"):
            _check_pickle(name, reader.read_bytes(name))
        elif name.startswith(_PLAIN_PICKLES) and name.endswith("_config.json"):
            _check_payloads(name, json.loads(reader.read_bytes(name)))
        elif name.startswith("models/"):
            _check_value(json.loads(reader.read_bytes(name)), "program")


def _check_pickle(name: str, data: bytes) -> None:
    """Raise `_Refused` unless a pickle has only tensors, numbers and texts, in lists and dicts; other objects call
    code."""
    if not data:
        return
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        found = re.search(r"GLOBAL ([\w.]+)", str(error))
        request = f", which asks for {found[1]}" if found else ""
        raise _Refused(f"{name} is a pickle of more than tensors{request}") from None


def _check_payloads(name: str, config: Any) -> None:
    for tensor, about in config["config"].items():
        path = about["path_name"]
        if about["use_pickle"] or path.startswith(("custom_obj_", "opaque_obj_")):
            raise _Refused(f"{name}: {tensor!r} is no plain tensor, so it is a pickle")


def _check_value(value: Any, key: str) -> None:
    """Raise `_Refused` if PyTorch would run a text in the program's JSON as code; its key decides."""
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            if key == "range_constraints":
                _check_expression(name, (), "a dim")
            else:
                _expect(_PATH, name, "a name")
            if name != "metadata":  # positions in source files, which are never evaluated
                _check_value(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            _check_value(inner, key)
    elif isinstance(value, str):
        _check_text(value, key)


def _check_text(text: str, key: str) -> None:
    if key == "expr_str":
        _check_expression(text, (), "a dim")
    elif key == "guards_code":
        _check_expression(text, _METHODS, "a guard")
    elif key in ("in_spec", "out_spec"):
        _check_structure(json.loads(text))
    elif key == "target":
        _expect(_OPERATION, text, "an operation")
        if text.startswith("torch.ops.aten.from_file"):
            raise _Refused("the operation aten.from_file opens another file")
    elif key == "as_operator":
        _expect(_FUNCTION, text, "an operation")
    elif key in _NAMES:
        if text:
            _expect(_NAME, text, "a name")
    elif key not in _TEXTS:
        _expect(_PATH, text, "a name")


def _expect(pattern: re.Pattern[str], text: str, role: str) -> None:
    if not pattern.fullmatch(text):
        raise _Refused(f"it has {text!r} for {role}")


def _check_expression(text: str, methods: Iterable[str], role: str) -> None:
    """Raise `_Refused` unless an expression has only numbers, symbols, functions of dims, and methods of the inputs."""
    refused = _Refused(f"it has {text!r} for {role}")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refused from None
    if not text.isascii() or re.search(r"[#\\\n\r]", text) or not _is_harmless(tree.body, tuple(methods)):
        raise refused


def _is_harmless(node: ast.expr, methods: tuple[str, ...]) -> bool:
    def all_of(*nodes: ast.expr) -> bool:
        return all(_is_harmless(inner, methods) for inner in nodes)

    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Name(id=name):
            return not name.startswith("__")
        case ast.UnaryOp(operand=operand):
            return all_of(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return all_of(left) and _is_small(right)
        case ast.BinOp(left=left, right=right):
            return all_of(left, right)
        case ast.BoolOp(values=values):
            return all_of(*values)
        case ast.Compare(left=left, comparators=others):
            return all_of(left, *others)
        case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)):
            return bool(methods and _PATH.fullmatch(key)) and all_of(value)
        case ast.Subscript(value=value, slice=index):
            return bool(methods) and all_of(value, index)
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=[], keywords=[]):
            return method in methods and all_of(value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=args, keywords=[]):
            return bool(methods and _IN_GUARDS.fullmatch(f"{module}.{name}")) and all_of(*args)
        case ast.Attribute(value=ast.Name(id="math"), attr=name):
            return name in ("inf", "nan") and bool(methods)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)], keywords=keywords):
            return bool(_NAME.fullmatch(name)) and all(isinstance(k.value, ast.Constant) for k in keywords)
        case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str() as number)], keywords=keywords):
            return bool(_NUMBER.fullmatch(number)) and all(isinstance(k.value, ast.Constant) for k in keywords)
        case ast.Call(func=ast.Name(id="Pow" | "PowByNatural"), args=[base, power], keywords=[]):
            return all_of(base) and _is_small(power)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return bool(_SYMPY.fullmatch(name)) and all_of(*args)
        case _:
            return False


def _is_small(power: ast.expr) -> bool:
    """Whether an exponent is a small number, so that the power is quick to compute."""
    match power:
        case ast.Constant(value=int() | float() as value):
            return abs(value) <= _LARGEST_POWER
        case ast.UnaryOp(operand=operand) | ast.Call(func=ast.Name(id="Integer"), args=[operand]):
            return _is_small(operand)
        case ast.Call(func=ast.Name(id="Rational"), args=[top, bottom]):
            return _is_small(top) and _is_small(bottom)
        case _:
            return False


def _check_structure(spec: Any) -> None:
    """Refuse a structure of inputs or outputs whose description makes PyTorch import a module."""
    pending = [spec]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += cast("list[Any]", value)
        elif isinstance(value, Mapping):
            about = cast("Mapping[str, Any]", value)
            if "__enum__" in about:
                raise _Refused(f"its inputs or outputs have a key of {about.get('fqn')!r}, whose module is imported")
            if "default_factory_name" in about and (
                about.get("default_factory_module") not in ("builtins", "collections")
                or about["default_factory_name"] not in _FACTORIES
            ):
                made = f"{about.get('default_factory_module')}.{about['default_factory_name']}"
                raise _Refused(f"its inputs or outputs have a defaultdict of {made}")
            for name, inner in about.items():
                _expect(_PATH, name, "a key")
                pending.append(json.loads(inner) if name == "context" and isinstance(inner, str) else inner)
        elif isinstance(value, str):
            _expect(_PATH, value, "a key")
