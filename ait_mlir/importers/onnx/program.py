"""Imports an ONNX model as a module, node by node."""

from __future__ import annotations

import os
import re
from collections import ChainMap, Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.types import TensorType, as_shape, tensor_type
from ait_mlir.dims import DimError, Expr
from ait_mlir.errors import printable
from ait_mlir.importers.errors import ImportFailure, NotSupported
from ait_mlir.importers.onnx.call import Call, Tensor, full, is_tensor_value, shape_of
from ait_mlir.importers.onnx.dims import Conditions, InputDims, Narrower
from ait_mlir.importers.onnx.errors import Unsupported, UnsupportedOps, ValueNeeded, operation_of, place_of
from ait_mlir.importers.onnx.fold import folded
from ait_mlir.importers.onnx.forms import Form, flat, form_of, is_tensor, parts_of, sizes_of
from ait_mlir.importers.onnx.functions import bind_attributes, function_of
from ait_mlir.importers.onnx.held import has_held, translated
from ait_mlir.importers.onnx.holders import HOLDERS, Held, Holder, tensor_of
from ait_mlir.importers.onnx.known import Known, element_type, name_of_type
from ait_mlir.importers.onnx.library import onnx
from ait_mlir.importers.onnx.model import opset_of, prepared, read_model
from ait_mlir.importers.onnx.rows import advice, row_named
from ait_mlir.importers.onnx.writer import OnnxWriter
from ait_mlir.passes.assumptions import assume
from ait_mlir.rewrites.engine.errors import unknown

DEEPEST = 64
"""The most graphs inside of each other."""


@dataclass
class Imported:
    """An imported model."""

    module: ModuleOp
    constants: dict[str, NDArray[Any]]
    """The weights by name."""
    inputs: list[str] = field(default_factory=list[str])
    """The names of the model's inputs, without those with fixed values."""
    outputs: list[tuple[str, str | list[str] | None]] = field(
        default_factory=list[tuple[str, "str | list[str] | None"]]
    )
    """For each output of the model its name and that of its output of the module; several names for a sequence, None
    for an optional without a value.
    """
    holders: dict[str, Holder] = field(default_factory=dict[str, Holder])
    """The inputs and outputs of the module that hold tensors of types that the dialect lacks."""
    operations: int = 0
    """How many nodes the model has."""

    def tensors(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of the module by name, made of the inputs of the ONNX model."""
        found = flat(inputs)
        for name, holder in self.holders.items():
            if name in found and getattr(found[name], "dtype", None) == holder.outside:
                found[name] = holder.held(found[name])
        return found

    def named(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of the ONNX model by name, made of the outputs of the module."""
        made = dict(found)
        for name, holder in self.holders.items():
            if name in made:
                made[name] = holder.given(made[name])
        return {
            name: made[parts] if isinstance(parts, str) else parts and [made[part] for part in parts]
            for name, parts in self.outputs
        }

    @property
    def graph(self) -> GraphOp:
        return cast(GraphOp, self.module.body.block.first_op)


def import_model(
    source: Any,
    name: str | None = None,
    *,
    dims: Mapping[str, tuple[int, int]] | None = None,
    hints: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    forms: Mapping[str, Any] | None = None,
) -> Imported:
    """The module of an ONNX model: a file, or a `ModelProto` in memory.

    `dims` gives ranges of dynamic dims by name, else each is 1 to 4,096; `hints` sizes to choose kernels for. `values`
    fixes inputs that decide shapes. `forms` has an example for each input that is a sequence or an optional: a list,
    an array or None; the module takes as many tensors of these shapes. Conditions of nodes on dims, such as equal dims,
    become conditions on the inputs. Raises `UnsupportedOps`, which lists every node that cannot be imported, and
    `ImportFailure`.
    """
    if isinstance(source, onnx.ModelProto):
        file, folder, model = "the model", None, prepared(source, "the model")
    elif not isinstance(source, str | os.PathLike):
        raise ImportFailure(f"expected the path of a model or a ModelProto, found {type(source).__name__}")
    else:
        path = Path(cast(str, source))
        file, folder, model = path.name, path.parent, read_model(path)
    title = name or (re.sub(r"[^A-Za-z0-9_-]", "_", Path(file).stem)[:64] if folder is not None else "model")
    examples = _forms(model, forms or {})
    ranges = {**_ranges(model, examples), **(dims or {})}
    conditions = Conditions()
    while True:
        found = InputDims(ranges, hints or {}, conditions)
        try:
            return Importer(model, title, file, folder, found, values or {}, examples).run()
        except Narrower as narrower:  # the dims are declared before the first node: start again
            conditions.add(narrower.conditions)


def _forms(model: Any, examples: Mapping[str, Any]) -> dict[str, Form]:
    """The forms of the inputs for which there are examples."""
    types = {item.name: item.type for item in model.graph.input}
    if wrong := [name for name in examples if name not in types]:
        raise ImportFailure(f"forms: {unknown('input', wrong[0], [*types])}")
    try:
        return {name: form_of(name, types[name], example) for name, example in examples.items()}
    except NotSupported as error:
        raise ImportFailure(f"forms: {error}") from None


def _ranges(model: Any, forms: Mapping[str, Form]) -> dict[str, tuple[int, int]]:
    """The dims of tensors that have the same name and size in all elements of the sequences."""
    found: dict[str, set[int]] = {}
    for item in model.graph.input:
        for name, sizes in sizes_of(item.type, forms.get(item.name)).items():
            found.setdefault(name, set()).update(sizes)
    dims = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
    return {name: (min(sizes), max(sizes)) for name, sizes in found.items() if len(sizes) == 1 and name in dims}


class Importer:
    """One import under way."""

    def __init__(
        self,
        model: Any,
        name: str,
        file: str,
        folder: Path | None,
        dims: InputDims,
        values: Mapping[str, Any],
        forms: Mapping[str, Form],
    ) -> None:
        self.model, self.file, self.folder, self.dims = model, file, folder, dims
        self.env: dict[str, Any] = {}
        self.problems: list[Unsupported] = []
        self.needed: dict[str, None] = {}
        self.operations = 0
        self._depth = 0
        self.opsets: dict[str, int] | None = None
        """The opsets of the function that is translated; None outside of functions."""
        graph = model.graph
        initializers = {t.name for t in graph.initializer}
        inputs = [i for i in graph.input if i.name not in initializers]
        if wrong := [n for n in values if n not in {i.name for i in graph.input}]:
            raise ImportFailure(f"values: {unknown('input', wrong[0], [i.name for i in inputs])}")
        dims.prepare(inputs)
        types: list[tuple[str, TensorType]] = []
        given_inputs: list[str] = []
        for item in inputs:
            if item.name in values:
                self.env[item.name] = self._fixed(item, values[item.name])
                continue
            if (reason := _unsupported(item)) is not None:
                self.env[item.name] = _Missing(f"its input {printable(item.name)!r}: {reason}")
                continue
            given_inputs.append(item.name)
            if item.name in forms:
                types += [(p.name, TensorType.get(as_shape(p.shape), p.element)) for p in parts_of(forms[item.name])]
            else:
                types.append((item.name, self._input_type(item)))
        dims.check_given()
        if twice := [n for n, k in Counter(title for title, _ in types).items() if k > 1]:
            raise ImportFailure(f"{file}: two tensors of the inputs have the name {printable(twice[0])!r}")
        graph_op = GraphOp(name, types, dims.scope())
        self.result = Imported(ModuleOp([graph_op]), {}, given_inputs)
        self.w = OnnxWriter(graph_op, printable(file))
        self.result.constants = self.w.constants
        for (title, _), argument in zip(types, graph_op.block.args, strict=True):
            argument.name_hint = title if title.isidentifier() and title.isascii() else None
            self.env[title] = argument
        for item in inputs:
            kind = item.type.tensor_type.elem_type
            if isinstance(self.env.get(item.name), SSAValue) and kind in HOLDERS:
                self.env[item.name] = Held(self.env[item.name], kind)
                self.result.holders[item.name] = HOLDERS[kind]
        self.env.update((title, self._of_form(form)) for title, form in forms.items() if title not in values)

    def _of_form(self, form: Form) -> Any:
        """The tensors of an input: a value, a list of values, or None."""
        if isinstance(form, list):
            return [self._of_form(item) for item in form]
        return None if form is None else self.env[form.name]

    def _fixed(self, item: Any, value: Any) -> Known | Held:
        kind = item.type.tensor_type.elem_type
        if kind in HOLDERS:
            return Held(Known(HOLDERS[kind].held(value), HOLDERS[kind].element), kind)
        try:
            element = element_type(kind)
        except NotSupported as error:
            raise ImportFailure(f"{self.file}: input {printable(item.name)!r}: {error}") from None
        return Known(np.asarray(value), element)

    def _input_type(self, item: Any) -> TensorType:
        place = f"{self.file}: input {printable(item.name)!r}"
        if not is_tensor(item.type):
            kind = (item.type.WhichOneof("value") or "no type").replace("_type", "")
            raise ImportFailure(f"{place} is a {kind}, expected a tensor; give an example of a sequence by `forms`")
        tensor = item.type.tensor_type
        if not tensor.HasField("shape"):
            raise ImportFailure(f"{place} has no shape; expected its dims, numbers or names")
        try:
            holder = HOLDERS.get(tensor.elem_type)
            element = element_type(tensor.elem_type) if holder is None else holder.element
            return TensorType.get(self.dims.shape(item.name, tensor.shape), element)
        except (NotSupported, VerifyException, DimError) as error:
            raise ImportFailure(f"{place}: {error}") from None

    def run(self) -> Imported:
        """Translate every node, then the outputs; raises `UnsupportedOps` with all problems."""
        self.result.operations = self.translate(self.model.graph, self.env, top=True)
        if self.problems:
            raise UnsupportedOps(self.file, self.problems, self.needed)
        for item in self.model.graph.input:  # no node reads it, but a call would give it
            if isinstance(found := self.env.get(item.name), _Missing):
                raise ImportFailure(f"{self.file}: {found.reason.removeprefix('its ')}")
        self._write_outputs()
        assume(self.result.module, "framework_rounding", "finite_images", "finite_scores")
        return self.result

    # ** nodes **

    def translate(self, graph: Any, env: MutableMapping[str, Any], top: bool = False) -> int:
        """Translate the nodes of a graph whose inputs have their tensors; returns their number."""
        if self._depth == DEEPEST:
            raise NotSupported(f"more than {DEEPEST} graphs are inside of each other")
        self._depth += 1
        try:
            for tensor in graph.initializer:
                env[tensor.name] = self._initializer(tensor)
            if len(graph.sparse_initializer):
                raise NotSupported("sparse tensors are not supported; store them as dense tensors")
            for number, node in enumerate(graph.node):
                self._node(node, number, env)
        finally:
            self._depth -= 1
        return len(graph.node)

    def _initializer(self, tensor: Any) -> Any:
        try:
            return tensor_of(tensor, self.folder, 1, printable(tensor.name))
        except NotSupported as error:
            return _Missing(str(error))

    def _node(self, node: Any, number: int, env: MutableMapping[str, Any]) -> None:
        place = place_of(node, number)
        outside, location = self.w.place, self.w.location
        self.w.at(place, number)
        version = self._version(node.domain)
        inputs: list[Any] = []
        try:
            inputs = [self._input(name, env) for name in node.input]
            call = Call(node, inputs, version, self.w, self, env)
            made = translated(call, self._row) if has_held(call) else self._row(call)
            results: Sequence[Any] = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
            for name, value in zip(node.output, results, strict=False):
                if name:
                    env[name] = value
            for name in node.output[len(results) :]:
                if name:
                    env[name] = _Missing(f"the result {printable(name)!r} is not supported", place)
        except _Skipped:
            env.update((name, _MISSING) for name in node.output)
        except (NotSupported, VerifyException, DimError, ImportFailure, OverflowError) as error:
            if isinstance(error, ValueNeeded):
                self.needed.update(dict.fromkeys(error.inputs))
            reason = str(error).removeprefix(f"{place}: ")
            self.problems.append(Unsupported(place, operation_of(node), version, reason))
            env.update((name, _MISSING) for name in node.output)
        except (ValueError, IndexError, TypeError, KeyError, AttributeError, ZeroDivisionError):
            # rows take the ranks and attributes of the operator's definition for granted
            reason = f"its attributes, or its inputs of shapes {_shapes(inputs)}, do not fit the operator"
            self.problems.append(Unsupported(place, operation_of(node), version, reason))
            env.update((name, _MISSING) for name in node.output)
        self.w.place, self.w.location = outside, location

    def _version(self, domain: str) -> int:
        """The version of a domain's operators: that of the model, or of the function whose body is being imported."""
        if self.opsets is None:
            return opset_of(self.model, domain)
        return next((v for d, v in self.opsets.items() if d == domain or {d, domain} == {"", "ai.onnx"}), 0)

    def _input(self, name: str, env: Mapping[str, Any]) -> Any:
        if not name:
            return None
        if name not in env:
            raise NotSupported(f"its input {printable(name)!r} is no result of a node before it")
        found = env[name]
        if isinstance(found, _Missing):
            if found.reason and not found.place:
                raise NotSupported(found.reason)
            if found.reason:
                raise NotSupported(f"{found.reason} of {found.place}")
            raise _Skipped
        return found

    def _row(self, call: Call) -> Any:
        node = call.node
        if (made := folded(call)) is not None:
            return made
        row = row_named(node.domain, node.op_type)
        if row is not None and (made := row(call)) is not None:
            return made
        if (body := function_of(call)) is not None:
            return self._function(body, call)
        raise NotSupported(advice(node.domain, node.op_type, call.version))

    def _function(self, body: Any, call: Call) -> tuple[Any, ...]:
        """The results of an operator that onnx defines by others."""
        graph = onnx.GraphProto()
        graph.node.extend(body.node)
        given = {a.name: a for a in (*body.attribute_proto, *call.node.attribute)}
        for node in graph.node:
            bind_attributes(node, given)
        own: dict[str, Any] = dict.fromkeys(body.input)
        own.update(zip(body.input, call.inputs, strict=False))
        before, opsets = len(self.problems), self.opsets
        self.opsets = {o.domain: int(o.version) for o in body.opset_import}
        try:
            self.translate(graph, own)
        finally:
            self.opsets = opsets
        if len(self.problems) > before:
            inner = self.problems[before:]
            del self.problems[before:]
            raise NotSupported(f"{inner[0].operation}, of which it consists: {inner[0].reason}")
        wanted = len(call.node.output)
        return tuple(self._input(name, own) if name in own else None for name in body.output[:wanted])

    def inner(self, graph: Any, env: Mapping[str, Any], arguments: Sequence[Any]) -> list[Any]:
        """The results of a graph of a node, on some arguments; raises `NotSupported` if a node failed."""
        before = len(self.problems)
        own: MutableMapping[str, Any] = ChainMap[str, Any]({}, cast("MutableMapping[str, Any]", env))
        for item, argument in zip(graph.input, arguments, strict=True):
            own[item.name] = argument
        self.translate(graph, own)
        if len(self.problems) > before:
            raise _Skipped
        return [self._input(item.name, own) for item in graph.output]

    def may_unite(self, a: Expr, b: Expr) -> bool:
        """Whether two dims are both names of input dims, so that they can become one dim."""
        names = set(self.dims)
        return str(a) in names and str(b) in names

    def may_be(self, dim: Expr, size: int) -> bool:
        """Whether a dim is the name of an input dim that can have the given size."""
        return str(dim) in set(self.dims) and self.dims.may_be(str(dim), size)

    # ** outputs **

    def _write_outputs(self) -> None:
        for item in self.model.graph.output:
            self.w.place = f"output {printable(item.name)!r}"
            try:
                value = self._input(item.name, self.env)
                if isinstance(value, list):
                    parts = cast("list[Tensor]", value)
                    names = [f"{item.name}_{i}" for i in range(len(parts))]
                    self.result.outputs.append((item.name, names))
                    for title, part in zip(names, parts, strict=True):
                        self._write_output(title, full(self.w, part))
                    continue
                if value is None:
                    if item.type.WhichOneof("value") != "optional_type":
                        raise NotSupported("it has no value")
                    self.result.outputs.append((item.name, None))
                    continue
                kind = value.kind if isinstance(value, Held) else None
                if kind is not None:
                    self.result.holders[item.name] = HOLDERS[kind]
                written = full(self.w, cast(Tensor, value if kind is None else value.value))
                if item.type.WhichOneof("value") == "tensor_type" and item.type.tensor_type.elem_type:
                    wanted = item.type.tensor_type.elem_type
                    if kind is not None and kind != wanted:
                        names = map(name_of_type, (kind, wanted))
                        raise NotSupported("it has elements of {}, but the model declares {}".format(*names))
                    declared = element_type(wanted) if kind is None else HOLDERS[kind].element
                    if (found := tensor_type(written).element_type) != declared:
                        raise NotSupported(f"it has elements of {found}, but the model declares {declared}")
                self._write_output(item.name, written)
                self.result.outputs.append((item.name, item.name))
            except (NotSupported, VerifyException, DimError) as error:
                raise ImportFailure(f"{self.file}: {self.w.place}: {error}") from None

    def _write_output(self, name: str, value: SSAValue) -> None:
        self.w.graph.block.add_op(OutputOp(name, value))


def _unsupported(item: Any) -> str | None:
    """Why no tensor has the element type of an input; None if a tensor may have it."""
    kind = item.type.tensor_type.elem_type
    if not is_tensor(item.type) or kind in HOLDERS:
        return None
    try:
        element_type(kind)
    except NotSupported as error:
        return str(error)
    return None


def _shapes(inputs: Sequence[Any]) -> str:
    """The shapes of inputs, as errors show them."""
    known = (f"[{', '.join(map(str, shape_of(v)))}]" if is_tensor_value(v) else "none" for v in inputs)
    return ", ".join(known) or "none"


class _Skipped(NotSupported):
    """An input of the node was not translated; that problem is already reported."""


@dataclass(frozen=True)
class _Missing:
    """Marks a tensor that was not translated."""

    reason: str = ""
    """Why, unless the problem is already reported."""
    place: str = ""


_MISSING = _Missing()
