"""From tensors to a module: finds the tensors that outputs depend on, names them, and copies them into an
`ait.graph`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.traits import BindsDim
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType
from ait_mlir.dims import Dim, Expr, Jagged, Scope, sym
from ait_mlir.frontend.assume import Solution, equations_of, solve_all
from ait_mlir.frontend.emit import make_constant
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.external import check_classes
from ait_mlir.frontend.intvar import UNNAMED, Symbol, Symbols, merge_symbols
from ait_mlir.frontend.tensor import STEP, Tensor, handle_of
from ait_mlir.frontend.wiring import Wiring, reachable, toposort

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def build_module(outputs: Tensor | Sequence[Tensor], name: str = "model") -> ModuleOp:
    """A module with one `ait.graph` that computes `outputs`.

    If a tensor of the model is marked as an output, the list must have exactly the marked tensors; new values of states
    may be left out. Inputs are numbered depth first from the outputs, in the order of `toposort`. Unnamed inputs become
    `input_0`, outputs `output_0`, weights `param_0`; an unnamed dim gets the input and axis where it first appears.
    Raises `BuildError` if two inputs, outputs or weights share a name, if two dims of one name differ in range, and for
    a list of outputs that lacks an output, repeats one or has another tensor.
    """
    return GraphBuilder([outputs] if isinstance(outputs, Tensor) else list(outputs), name).build()


class GraphBuilder:
    """One graph under construction."""

    def __init__(self, outputs: Sequence[Tensor], name: str):
        if not outputs:
            raise BuildError("a model needs at least one output")
        for tensor in outputs:
            if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BuildError(f"an output must be a Tensor, found {tensor!r}")
        self.name = name
        self.wiring = Wiring()
        self.ops, inputs = reachable([t.value for t in outputs], self.wiring)
        check_classes(self.ops)
        self.outputs = _all_outputs(outputs, self.ops)
        self.state = [t.in_place_of for t in self.outputs if t.in_place_of is not None]
        read = [cast(Tensor, handle_of(value)) for value in inputs]
        if any(STEP in cast(Tensor, handle_of(value)).extra for value in inputs):
            raise BuildError("a tensor that a scan gives its step is used outside of the step; return it from there")
        named = [t for t in toposort(self.outputs) if t.is_input]  # also those that operators read for nothing
        self.inputs = list(dict.fromkeys([*named, *read, *self.state]))
        self.inputs += _of_dims_alone(self.inputs, self.ops)
        self.params = [op.output for op in self.ops if isinstance(op, ParamOp) and not _is_internal_zero(op.output)]
        self.values: dict[SSAValue, SSAValue] = {}
        """The graph's value for each value of the builder, once built."""

    def build(self) -> ModuleOp:
        input_names = _assign_names("inputs", "input", self.inputs)
        output_names = _assign_names("outputs", "output", self.outputs)
        param_names = _assign_names("weights", "param", [cast(Tensor, handle_of(value)) for value in self.params])
        given = merge_symbols(*(t.symbols for t in self.inputs))
        self.solution = self._solution()
        symbols = self._solved_symbols({s: d for s, d in given.items() if d.jagged is None})
        bound = merge_symbols({s: d for s, d in given.items() if d.jagged}, *(_bound_symbols(op) for op in self.ops))
        shapes = [[self.solution.of(dim) for dim in t.type.dims] for t in self.inputs]
        strides = [[self.solution.of(dim) for dim in t.strides or ()] for t in self.inputs]
        self.dims = _name_dims(merge_symbols(symbols, bound), {"dim": shapes, "stride": strides}, input_names)
        declared = [Dim(self.dims[s], d.lo, d.hi, d.hints) for s, d in symbols.items()]
        for s, d in bound.items():
            assert d.upper is not None
            upper = self._renamed_expr(d.upper)
            if missing := sorted(upper.symbols - {dim.name for dim in declared}):
                raise BuildError(
                    f'the size of a result follows from the dim "{missing[0]}", which no input has: '
                    "give an input this dim, or use the dim of one"
                )
            hi = Scope(declared).bounds(upper)[1]
            declared.append(Dim(self.dims[s], d.lo, hi, d.hints, upper, self._renamed_jagged(d)))
        scope = Scope(declared)
        inputs = [(n, self._renamed_type(t.type)) for n, t in zip(input_names, self.inputs, strict=True)]
        donated = [n for n, t in zip(input_names, self.inputs, strict=True) if t in self.state]
        named = zip(input_names, self.inputs, strict=True)
        strides = {n: self._renamed_shape(t.strides) for n, t in named if t.strides is not None}
        graph = GraphOp(self.name, inputs, scope, donated=donated, strides=strides)
        values = self.values
        for tensor, argument, name in zip(self.inputs, graph.block.args, input_names, strict=True):
            values[tensor.value] = argument
            argument.name_hint = name if _IDENTIFIER.fullmatch(name) else None
        names: dict[SSAValue, str] = dict(zip(self.params, param_names, strict=True))
        for op in self.ops:
            graph.block.add_op(self._copy(op, values, names))
        for tensor, name in zip(self.outputs, output_names, strict=True):
            place = None if tensor.in_place_of is None else values[tensor.in_place_of.value]
            strides = None if tensor.strides is None or tensor.is_input else self._renamed_shape(tensor.strides)
            if missing := sorted({s for e in strides or () for s in e.symbols} - {dim.name for dim in declared}):
                raise BuildError(f'{tensor.describe()} has strides with the dim "{missing[0]}", which no input has')
            value = values[self.wiring.value(tensor.value)]
            graph.block.add_op(OutputOp(name, value, place, tensor.or_copy, strides))
        return ModuleOp([graph])

    def _solution(self) -> Solution:
        """The substitution of dims for which the ops' equations hold."""
        equations = equations_of(self.ops)
        if not equations:
            return Solution({}, {})
        tensors = [t for op in self.ops for result in op.results if (t := handle_of(result)) is not None]
        return solve_all(merge_symbols(*(t.symbols for t in [*self.inputs, *tensors])), equations)

    def _solved_symbols(self, given: Symbols) -> Symbols:
        """The symbols that replace `given` in the solution."""
        used = dict.fromkeys(s for name in given for s in sorted(self.solution.of(sym(name)).symbols))
        return {s: self.solution.symbols.get(s) or given[s] for s in used}

    def _copy(self, op: Operation, values: dict[SSAValue, SSAValue], params: dict[SSAValue, str]) -> Operation:
        """`op` on the graph's values, with the dims' final names."""
        if isinstance(op, ParamOp) and op.output not in params:
            values[op.output] = make_constant(op.output.type, 0)
            return cast(Operation, values[op.output].owner)
        copy = type(op).create(
            operands=[values[self.wiring.operand(op, operand)] for operand in op.operands],
            result_types=[self._renamed_type(cast(TensorType, type)) for type in op.result_types],
            properties={key: self._renamed(value) for key, value in op.properties.items()},
            attributes=dict(op.attributes),
            regions=[self._renamed_region(region) for region in op.regions],
        )
        if isinstance(copy, ParamOp):
            copy.param_name = StringAttr(params[op.results[0]])
        for old, new in zip(op.results, copy.results, strict=True):
            values[old] = new
            tensor = handle_of(old)
            if tensor is not None and tensor.name and _IDENTIFIER.fullmatch(tensor.name):
                new.name_hint = tensor.name
        return copy

    def _renamed_expr(self, expr: Expr) -> Expr:
        expr = self.solution.of(expr)
        changed = {s: sym(self.dims[s]) for s in expr.symbols if self.dims.get(s, s) != s}
        return expr.substitute(changed) if changed else expr

    def _renamed_shape(self, shape: Sequence[Expr]) -> Shape:
        return tuple(self._renamed_expr(e) for e in shape)

    def _renamed_jagged(self, symbol: Symbol) -> Jagged | None:
        if (jagged := symbol.jagged) is None:
            return None
        levels = tuple((lo, self._renamed_expr(longest)) for lo, longest in jagged.levels)
        return Jagged(self._renamed_expr(jagged.total), self._renamed_expr(jagged.batch), levels)

    def _renamed_type(self, type: TensorType) -> TensorType:
        renamed = self._renamed_shape(type.dims)
        same = all(a is b for a, b in zip(renamed, type.dims, strict=True))
        return type if same else TensorType.get(renamed, type.element_type)

    def _renamed_region(self, region: Region) -> Region:
        """A copy of a region with the dims' final names."""
        copy = region.clone()
        values = [v for block in copy.blocks for v in block.args]
        for op in copy.walk():
            values += [*op.results, *(v for inner in op.regions for block in inner.blocks for v in block.args)]
            op.properties.update({key: self._renamed(value) for key, value in op.properties.items()})
        for value in values:
            if isinstance(value.type, TensorType):
                value._type = self._renamed_type(value.type)  # pyright: ignore[reportPrivateUsage]
        return copy

    def _renamed(self, attribute: Attribute) -> Attribute:
        if not isinstance(attribute, ShapeAttr):
            return attribute
        return ShapeAttr(self._renamed_shape(attribute.data))


def _is_internal_zero(weight: SSAValue) -> bool:
    """Whether a weight holds an operator's zeros and is not a weight of the model."""
    tensor = cast(Tensor, handle_of(weight))
    return tensor.data is not None and bool(tensor.extra.get("is_internal_constant")) and not tensor.data.any()


def bound_data(outputs: Tensor | Sequence[Tensor]) -> dict[str, NDArray[Any]]:
    """The data bound to the weights of a model, including named zeros of its operators, by the names that
    `build_module` gives them."""
    builder = GraphBuilder([outputs] if isinstance(outputs, Tensor) else list(outputs), "model")
    tensors = [cast(Tensor, handle_of(value)) for value in builder.params]
    names = _assign_names("weights", "param", tensors)
    zeros = [t for t in toposort(outputs) if t.is_param and _is_internal_zero(t.value)]
    named = [*zip(names, tensors, strict=True), *((t.name, t) for t in zeros)]
    return {name: tensor.data for name, tensor in named if name is not None and tensor.data is not None}


def _all_outputs(given: Sequence[Tensor], ops: Sequence[Operation]) -> list[Tensor]:
    """The given outputs, checked, followed by the new values of states that the model computes."""
    computed = [t for op in ops for result in op.results if (t := handle_of(result)) is not None]
    marked = [t for t in dict.fromkeys([*computed, *toposort(given)]) if t.is_output]
    names = [t.name for t in given if t.name is not None]
    for i, tensor in enumerate(given):
        if tensor in given[:i] or (tensor.name is not None and names.count(tensor.name) > 1):
            raise BuildError(f"the list of outputs names {tensor.describe()} twice")
        if marked and not tensor.is_output:
            raise BuildError(
                f"{tensor.describe()} is in the list of outputs, but is not marked as an output as others are; "
                "call mark_as_output on it, or leave it out"
            )
    for tensor in marked:
        if tensor not in given and tensor.in_place_of is None:
            raise BuildError(
                f"{tensor.describe()} is marked as an output, but is not in the list of outputs; "
                "pass all outputs: compile_model([y, z], ...)"
            )
    return list(dict.fromkeys([*given, *marked]))


def _assign_names(what: str, prefix: str, tensors: Sequence[Tensor]) -> list[str]:
    """The tensors' names; generates missing ones. Two tensors of one name are an error."""
    given = [t.name for t in tensors if t.name is not None]
    for name in given:
        if not name or not name.isascii() or "\0" in name:
            raise BuildError(
                f"{name!r} cannot name one of the {what}; a name is ASCII text of at least one character, without NUL"
            )
        if given.count(name) > 1:
            first, second = [t for t in tensors if t.name == name][:2]
            raise BuildError(f'two {what} are named "{name}": {first.describe()} and {second.describe()}')
    taken = set(given)
    names: list[str] = []
    for i, tensor in enumerate(tensors):
        name = tensor.name if tensor.name is not None else _fresh(f"{prefix}_{i}", taken)
        taken.add(name)
        names.append(name)
    return names


def _name_dims(
    symbols: Symbols, given: Mapping[str, Sequence[Sequence[Expr]]], input_names: Sequence[str]
) -> dict[str, str]:
    """The final name of each symbol. `given` has the shapes and the strides of the inputs, by the word that appears in
    names made from them.
    """
    names = {s: d.name or "" for s, d in symbols.items()}
    known: dict[str, Symbol] = {}
    for symbol, dim in symbols.items():
        if dim.name and (other := known.setdefault(dim.name, dim)) is not dim and other.symbol != symbol:
            raise BuildError(
                f'two dims are named "{dim.name}", {other.range} and {dim.range}; '
                "use one IntVar for both, or give them different names"
            )
    taken = {n for n in names.values() if n}
    for word, shapes in given.items():
        for shape, name in zip(shapes, input_names, strict=True):
            base = name if _IDENTIFIER.fullmatch(name) and not name.startswith(UNNAMED) else "dim"
            for axis, dim in enumerate(shape):
                for symbol in sorted(dim.symbols):
                    if not names[symbol]:
                        names[symbol] = _fresh(f"{base}_{word}_{axis}", taken)
                        taken.add(names[symbol])
    for symbol in [s for s, n in names.items() if not n and symbols[s].upper is not None]:
        names[symbol] = _fresh("count", taken)
        taken.add(names[symbol])
    return names


def _bound_symbols(op: Operation) -> Symbols:
    """The dim that an op binds, if any, and the jagged dims of its result."""
    tensor = handle_of(op.results[0]) if op.results else None
    if tensor is None:
        return {}
    if not isinstance(op, BindsDim):
        return {s: d for s, d in tensor.symbols.items() if d.jagged is not None}
    symbol = str(op.bound_dim)
    return {symbol: tensor.symbols[symbol]}


def _of_dims_alone(inputs: Sequence[Tensor], ops: Sequence[Operation]) -> list[Tensor]:
    """Inputs that are needed only for their sizes: one for each dim that ops use and that no other input has."""
    declared = {s for t in inputs for s in t.symbols}
    tensors = [t for op in ops for result in op.results if (t := handle_of(result)) is not None]
    found: list[Tensor] = []
    for tensor in tensors:
        used = {s for dim in tensor.type.dims for s in dim.symbols}
        totals = [tensor.symbols[s].jagged for s in used]
        used |= {s for jagged in totals if jagged is not None for s in (jagged.total + jagged.batch).symbols}
        for name in sorted(used - declared):
            known = [t for ref in tensor.symbols[name].inputs if (t := ref()) is not None]
            if known:
                found.append(known[0])
                declared.update(known[0].symbols)
    return found


def _fresh(name: str, taken: set[str]) -> str:
    candidate, n = name, 1
    while candidate in taken:
        candidate, n = f"{name}_{n}", n + 1
    return candidate


__all__ = ["bound_data", "build_module"]
