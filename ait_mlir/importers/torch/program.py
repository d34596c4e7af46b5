"""Imports a `torch.export` program as a module, node by node."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.building.formulas import Affine, Mask, Spread, Value
from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.strided import are_apart, extent, is_contiguous
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import DimError, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, bind, element_type
from ait_mlir.importers.torch.conditions import is_about_values, is_only_asserted, multiples
from ait_mlir.importers.torch.conditions import written as written_condition
from ait_mlir.importers.torch.constants import Stored, stored_value
from ait_mlir.importers.torch.decomposition import is_choice, is_inlined, is_size, row_name, simpler, unused
from ait_mlir.importers.torch.dims import DimRequired, DimTable, Required
from ait_mlir.importers.torch.errors import ImportFailure, Unsupported, UnsupportedOps, place_of
from ait_mlir.importers.torch.fold import Folder
from ait_mlir.importers.torch.groups import Groups, state_ranks
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.importers.torch.rows import advice, row_named
from ait_mlir.importers.torch.rows.complex import translated
from ait_mlir.importers.torch.rows.pairs import Interleaved, Pair
from ait_mlir.importers.torch.run_numbers import is_run_number, written
from ait_mlir.importers.torch.scan import is_flip_of_scan, is_reversed, is_scan
from ait_mlir.importers.torch.signature import Inputs, bind_dims, declare_dims, examples_of, read_inputs, skeleton
from ait_mlir.importers.torch.size_floats import no_example_floats
from ait_mlir.importers.torch.writer import ImportWriter
from ait_mlir.passes.assumptions import assume
from ait_mlir.rewrites.engine.errors import unknown


@dataclass
class Imported:
    """An imported module, and how to call it like the original model."""

    module: ModuleOp
    inputs: Inputs
    constants: dict[str, NDArray[Any]]
    """The weights by name; a storage that the model shares is here once."""
    outputs: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """For each leaf of the result `("output", name)`, `("number", name)` for the number in an output, or
    `("constant", value)`.
    """
    out_spec: Any = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The model's buffers that it changes, by the names of the donated inputs that they are."""
    state_names: dict[str, str] = field(default_factory=dict[str, str])
    """The names of these buffers in the model, by the names of the donated inputs."""
    operations: int = 0
    """How many operations the exported program has."""

    @property
    def graph(self) -> GraphOp:
        return next(op for op in self.module.ops if isinstance(op, GraphOp))


def import_program(
    program: Any,
    name: str = "model",
    *,
    dim_names: Mapping[tuple[int, int], str] | None = None,
    hints: Mapping[str, Sequence[int]] | None = None,
    same_dims: Mapping[tuple[int, int], str] | None = None,
    most: Mapping[tuple[int, int], int] | None = None,
    groups: Groups | None = None,
) -> Imported:
    """The module of a `torch.export.ExportedProgram`.

    `dim_names` names dynamic dims by input, as its position among the leaves of the arguments, and axis; without a
    name, a dim is called after the input and axis where it first appears. `hints` are sizes to choose kernels for, by
    the name of the dim. Dims that an operation requires to be equal, such as the lengths of keys and values, become
    one. So do dims of inputs with the same name in `same_dims`. With `same_dims`, dims are also restricted to sizes
    that suit an operation, as in the example, and to the multiples of a number that conditions of the trace demand; the
    caller runs calls of other sizes elsewhere. `most` has the maxima of
    dims to which the program sets none, by leaf and axis; without it they are 4,096. Buffers and inputs that
    the program changes are donated inputs, which an output with the new value replaces. Raises `UnsupportedOps`, which
    lists everything that cannot be imported, and `ImportFailure`.

    A program with collectives is that of each rank of the mesh of `groups`.
    """
    with quiet():
        program = simpler(program)
    required = Required(multiples={} if same_dims is None else multiples(program))

    def run() -> Imported:
        while True:
            try:
                return Importer(program, name, dim_names or {}, hints or {}, same_dims, most, required, groups).run()
            except DimRequired as found:  # the dims are declared before the first operation: start again
                required.add(found)

    try:
        return run()
    except (UnsupportedOps, ImportFailure):
        if same_dims is None and not _may_be_empty(program):
            raise
    return _with_minima(run, required, examples_of(read_inputs(program)))


def _with_minima(run: Callable[[], Imported], required: Required, examples: Mapping[str, int]) -> Imported:
    """The import with the smallest minima of dims for which all operations can be imported, at most the example's
    sizes.

    Only dims without a declared minimum are changed; their minimum would be 0. In a graph of `torch.compile` all are.
    """

    def found(least: Mapping[str, int]) -> Imported | None:
        required.least = least
        with contextlib.suppress(UnsupportedOps, ImportFailure):
            return run()
        return None

    if (imported := found(dict.fromkeys(examples, 1))) is not None:  # enough for most operations
        return imported
    least = required.least = dict(examples)
    imported = run()
    for symbol, enough in examples.items():
        low, high = 1, enough
        while low < high:
            tried = 1 if low == 1 else (low + high) // 2
            if (better := found({**least, symbol: tried})) is not None:
                imported, least[symbol], high = better, tried, tried
            else:
                low = tried + 1
    return imported


def _may_be_empty(program: Any) -> bool:
    """Whether a dim of the inputs may be 0."""
    table = DimTable()
    declare_dims(table, program, read_inputs(program), {}, {})
    return any(dim.lo == 0 for dim in table.scope())


class Importer:
    """One import under way."""

    def __init__(
        self,
        program: Any,
        name: str,
        dim_names: Mapping[tuple[int, int], str],
        hints: Mapping[str, Sequence[int]],
        same_dims: Mapping[tuple[int, int], str] | None,
        most: Mapping[tuple[int, int], int] | None,
        required: Required,
        groups: Groups | None = None,
    ) -> None:
        self.program = program
        self.inputs = read_inputs(program)
        self.table = DimTable(required, None if same_dims is None else examples_of(self.inputs))
        declare_dims(self.table, program, self.inputs, dim_names, hints, same_dims, most)
        bind_dims(self.table, program)
        known = {*(dim.name for dim in self.table.scope().dims), *dim_names.values()}
        if wrong := [name for name in hints if name not in known]:
            raise ImportFailure(f"hints: {unknown('dim', wrong[0], known)}; the dims are {', '.join(sorted(known))}")
        types: list[tuple[str, TensorType]] = []
        for item in self.inputs.tensors:
            try:
                meta = item.node.meta["val"]
                if meta.layout is not torch.strided:
                    raise NotSupported(f"has the layout {meta.layout}; expected a dense tensor: call to_dense() first")
                types.append((item.name, TensorType.get(self.table.shape(meta.shape), element_type(meta.dtype))))
            except NotSupported as error:
                raise ImportFailure(f"input {item.name!r}: {error}") from error
        taken = {name for name, _ in types}
        state_names: list[str] = []
        for item in self.inputs.state:
            state_names.append(item.name if item.name not in taken else f"buffer.{item.name}")
            types.append((state_names[-1], TensorType.get(list(item.value.shape), element_type(item.value.dtype))))
        changed = self.inputs.changed.values()
        self.donated = {item.name: item.name for item in self.inputs.tensors if item.name in changed}
        self.donated |= dict(zip((s.name for s in self.inputs.state), state_names, strict=True))
        self.folder = Folder(program.graph)
        strides = {
            item.name: found
            for item in self.inputs.tensors
            if item.name not in self.donated and (found := self._strides(item.node)) is not None
        }
        graph = GraphOp(name, types, self.table.scope(), donated=list(self.donated.values()), strides=strides)
        self.result = Imported(ModuleOp([graph]), self.inputs, {})
        self.w = ImportWriter(graph)
        self.w.constants = self.result.constants
        self.w.groups = groups or Groups()
        self.values: dict[Any, Any] = {}
        self.result.state_names = {self.donated[item.name]: item.name for item in self.inputs.state}
        self.result.state = {self.donated[item.name]: item.value for item in self.inputs.state}
        for item, argument in zip((*self.inputs.tensors, *self.inputs.state), graph.block.args, strict=True):
            argument.name_hint = item.name if item.name.isidentifier() else None
            self.values[item.node] = argument
        self.problems: dict[str, list[tuple[Any, str]]] = {}

    def run(self) -> Imported:
        """Translate every node, then the outputs; raises `UnsupportedOps` with all problems."""
        with no_example_floats():
            self._translate(self.program.graph_module)
        if self.problems:
            raise UnsupportedOps(
                Unsupported(name, len(uses), place_of(uses[0][0]), uses[0][1]) for name, uses in self.problems.items()
            )
        state_ranks(self.result.graph, self.w.groups)
        assume(self.result.module, "framework_rounding", "finite_images", "finite_scores")
        return self.result

    def _translate(self, graph_module: Any) -> list[Any]:
        """Translate a graph whose inputs have their values; returns the values of its output node."""
        left_out = unused(graph_module.graph)
        for node in graph_module.graph.nodes:
            if node in left_out:
                continue
            self.w.node = node
            if node.op == "output":
                results = list(node.args[0])
                if graph_module is self.program.graph_module and not self.problems:
                    self._write_outputs(results)
                return results
            if node.op == "call_function":
                self.result.operations += 1
                self._call(node, graph_module)
            elif node.op == "get_attr":
                self.values[node] = _attribute(graph_module, node.target)
        return []

    def _call(self, node: Any, graph_module: Any) -> None:
        try:
            self.values[node] = self._checked(node, self._value(node, graph_module))
        except (NotSupported, VerifyException, DimError) as error:
            if not isinstance(error, _Skipped):
                self.problems.setdefault(str(node.target), []).append((node, str(error)))
            self.values[node] = _MISSING

    def _checked(self, node: Any, value: Any) -> Any:
        """The value of a node; refuses one with other elements than the trace declares."""
        meant: Any = node.meta.get("val")
        several = type(meant) in (list, tuple)
        results: list[Any] = list(zip(meant, value, strict=False)) if several else [(meant, value)]
        for declared, found in results:
            if not isinstance(declared, torch.Tensor) or not isinstance(found, SSAValue):
                continue
            if (element := tensor_type(cast(SSAValue, found)).element_type) != element_type(declared.dtype):
                raise NotSupported(f"its result has elements of {element}, but the trace declares {declared.dtype}")
        return value

    def _value(self, node: Any, graph_module: Any) -> Any:
        name = row_name(node)
        if node.target is operator.getitem:
            values, at = (self._resolve(a) for a in node.args)
            if at >= len(values) and not node.users:
                return _MISSING
            if at >= len(values):
                raise NotSupported("a result that is for training only is used")
            return values[at]
        if is_inlined(node):
            return self._inline(node)
        if is_scan(node):
            return self._scan(node)
        if is_choice(node):
            return self._choice(node)
        if is_flip_of_scan(node):
            return self._resolve(node.args[0])
        if (stored := self.folder.stored(node)) is not None:
            return None if self.folder.is_inner(node) else stored_value(self.w, stored, self.result.constants)
        if is_size(node) and (not node.users or (is_about_values(node) and is_only_asserted(node))):
            return None
        if (row := row_named(name)) is not None:
            return translated(Call(node, bind(node, self._resolve), self.w, self.table), name, row)
        if is_run_number(node.meta["val"], self.table):
            return written(self.w, node, self._resolve(node.args))
        if is_size(node):
            self._resolve(node.args)  # a size of an operation that failed to translate is reported with that operation
            val = node.meta["val"]
            return self.table.expr(val) if isinstance(val, int | torch.SymInt) and not isinstance(val, bool) else val
        raise NotSupported(advice(name))

    def _inline(self, node: Any) -> Any:
        """Translate a submodule that the graph calls, in place of the call; returns its results."""
        at = next(
            i
            for i, a in enumerate(node.args)
            if isinstance(self.values.get(a) if hasattr(a, "op") else None, torch.nn.Module)
        )
        inner = self.values[node.args[at]]
        holders = [n for n in inner.graph.nodes if n.op == "placeholder"]
        for holder, argument in zip(holders, node.args[at + 1 :], strict=False):
            self.values[holder] = self._resolve(argument)
        results = self._translate(inner)
        return [self._resolve(r) for r in results]

    def _scan(self, node: Any) -> Any:
        """Translate a scan; its step is an inner graph."""
        inner = self.values[node.args[0]]
        init, scanned, captured = (
            [self.w.full(cast(Value, value)) for value in self._resolve(a)] for a in node.args[1:]
        )
        found = len(self.problems)

        def step(*arguments: Sequence[SSAValue]) -> list[SSAValue]:
            holders = [n for n in inner.graph.nodes if n.op == "placeholder"]
            self.values.update(zip(holders, itertools.chain(*arguments), strict=True))
            results = self._translate(inner)
            if len(self.problems) > found:
                raise _Skipped
            return [self.w.full(cast(Value, self._resolve(r))) for r in results]

        return self.w.scan(init, scanned, captured, step, is_reversed(node))

    def _choice(self, node: Any) -> list[SSAValue]:
        """The results of `torch.cond`: both sides are computed, and the condition chooses."""
        condition, yes, no, operands = node.args
        given, sides = self._resolve(operands), list[list[SSAValue]]()
        for inner in (self.values[yes], self.values[no]):
            holders = [n for n in inner.graph.nodes if n.op == "placeholder"]
            self.values.update(zip(holders, given, strict=True))
            sides.append([self.w.full(cast(Value, self._resolve(r))) for r in self._translate(inner)])
        val = condition.meta["val"]
        of_dims = isinstance(val, torch.SymBool)
        chosen = written_condition(self.w, val.node.expr, self.table) if of_dims else self._resolve(condition)
        chosen = self.w.reshape(self.w.natural(chosen), ())
        return [self.w.where(chosen, a, b) for a, b in zip(*sides, strict=True)]

    def _resolve(self, argument: Any) -> Any:
        """An argument with nodes replaced by their values."""
        if isinstance(argument, list | tuple):
            return [self._resolve(a) for a in cast("list[Any]", argument)]
        if not hasattr(argument, "op") or not hasattr(argument, "meta"):
            return argument
        if argument not in self.values:
            self.values[argument] = self._stored(argument)
        found = self.values[argument]
        if found is _MISSING:
            raise _Skipped
        return found

    def _stored(self, node: Any) -> Any:
        """The value of a param, buffer or lifted constant: a formula, a literal, or a param of the module."""
        if (size := self.inputs.sizes.get(node)) is not None:
            return self.table.expr(size)
        stored = self.inputs.stored[node]
        if stored.tensor.is_complex():
            return Pair(
                *(
                    self.w.full(stored_value(self.w, part, self.result.constants))
                    for part in (
                        Stored(f"{stored.name}.real", stored.tensor.real.contiguous(), stored.is_weight),
                        Stored(f"{stored.name}.imag", stored.tensor.imag.contiguous(), stored.is_weight),
                    )
                )
            )
        return stored_value(self.w, stored, self.result.constants)

    def _write_outputs(self, results: Sequence[Any]) -> None:
        taken: dict[SSAValue, str] = {}
        self.result.out_spec = self.program.call_spec.out_spec
        names = output_names(self.result.out_spec)
        specs = self.program.graph_signature.output_specs
        kinds = torch.export.graph_signature.OutputKind
        returned: list[Any] = []
        for node, spec in zip(results, specs, strict=True):
            if spec.kind in (kinds.BUFFER_MUTATION, kinds.USER_INPUT_MUTATION):
                self._write_state(node, self.donated[spec.target])
            else:
                returned.append(node)
        for i, node in enumerate(returned):
            value = self._resolve(node)
            if isinstance(value, Pair | Interleaved):
                raise ImportFailure(f"result {i} of the model is complex; return torch.view_as_real of it")
            if not isinstance(value, SSAValue | Affine | Mask | Spread):
                if value is not None and not isinstance(value, int | float | bool | str):
                    raise ImportFailure(f"result {i} of the model is {value}, which depends on the sizes of its inputs")
                self.result.outputs.append(("constant", value))
                continue
            written = self.w.full(cast(Value, value))
            is_number = not isinstance(node.meta.get("val"), torch.Tensor)
            if is_number and tensor_type(written).rank:  # `item` of a tensor of one element
                written = self.w.reshape(written, ())
            if written not in taken:
                taken[written] = names[i]
                strides = None if is_number else self._strides(node)
                self.w.graph.block.add_op(OutputOp(taken[written], written, strides=strides))
            self.result.outputs.append(("number" if is_number else "output", taken[written]))

    def _strides(self, node: Any) -> Shape | None:
        """The strides of a tensor without gaps whose dims are permuted in memory; None for other tensors."""
        value, scope = node.meta["val"], self.table.scope()
        try:
            dims, strides = self.table.shape(value.shape), self.table.shape(value.stride())
        except NotSupported:  # a size that the run finds
            return None
        if any(scope.upper(e) is not e for e in (*dims, *strides)) or const(0) in dims:
            return None
        has_gaps = not scope.equal(extent(dims, strides, scope), product(dims))
        if has_gaps or is_contiguous(dims, strides, scope) or not are_apart(dims, strides, scope):
            return None
        return strides

    def _write_state(self, node: Any, name: str) -> None:
        """Write the new value of a donated input; it is copied there if it cannot be computed in place."""
        place = dict(self.w.graph.inputs())[name]
        value = self.w.cast(self.w.full(cast(Value, self._resolve(node))), tensor_type(place).element_type)
        self.w.graph.block.add_op(OutputOp(f"{name} (new)", value, place, or_copy=True))


class _Skipped(NotSupported):
    """An operand was not translated; that problem is already reported."""


class _Missing:
    """Marks the value of a node that was not translated."""


_MISSING = _Missing()


def output_names(spec: Any) -> list[str]:
    """A name for each leaf of the result: the keys that lead to it, or its number."""
    paths = [path for path, _ in torch.utils._pytree.tree_flatten_with_path(skeleton(spec))[0]]
    names: list[str] = []
    for i, path in enumerate(paths):
        parts = [str(next((getattr(key, a) for a in ("key", "name", "idx") if hasattr(key, a)), i)) for key in path]
        name = "_".join(parts)
        name = name if name.isidentifier() else f"output_{name}" if name else "output"
        names.append(name if name.isidentifier() and name not in names else f"output_{i}")
    return names


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module
