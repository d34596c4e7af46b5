"""Decomposes operations of a `torch.export` program that have no row in the table, where PyTorch can."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Collection, Generator, Iterable
from typing import Any

from ait_mlir.importers.torch import composed
from ait_mlir.importers.torch.compositions import compositions
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.recurrent import is_cast_layer, whole_layers
from ait_mlir.importers.torch.rows import row_named
from ait_mlir.importers.torch.scan import is_flip_of_scan, is_scan
from ait_mlir.importers.torch.size_floats import float_functions
from ait_mlir.importers.torch.tracing import any_size, example_size, without_layouts
from ait_mlir.importers.torch.writes import without_writes

INLINED = "wrap_with_set_grad_enabled"
"""A submodule that stands in the graph; its operations are imported in place."""
VMAP = "torch._functorch.predispatch"
"""Holds the calls by which a trace shows that a function is applied to each element of a dim."""
AUTOCAST = "wrap_with_autocast"
"""A submodule whose operands are cast. A decomposition of PyTorch writes these casts."""


def unsupported(program: Any) -> list[Any]:
    """The nodes of a program and of the steps of its loops that no row of the table translates."""
    return [n for n in _calls(program) if not _is_known(n)]


def _calls(program: Any) -> list[Any]:
    """The operations of a program, with those of its inner graphs."""
    graphs = [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    return [n for graph in graphs for n in _used(graph)]


def _used(graph: Any) -> list[Any]:
    left_out = unused(graph)
    return [n for n in graph.nodes if n.op == "call_function" and n not in left_out]


def unused(graph: Any) -> set[Any]:
    """The nodes of a graph that only compute tensors which nothing uses, such as random numbers that are dropped."""
    found: set[Any] = set()
    for node in reversed(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        makes_tensors = node.target is operator.getitem or (schema and schema.returns and not schema.is_mutable)
        is_tensor = isinstance(node.meta.get("val"), torch.Tensor | list | tuple)
        if node.op == "call_function" and makes_tensors and is_tensor and found.issuperset(node.users):
            found.add(node)
    return found


def simpler(program: Any) -> Any:
    """The program without in-place operations and `torch.vmap`, with the casts of autocast, and with operations missing
    in the table decomposed if PyTorch can."""
    if found := {n for n in _calls(program) if _is_rewritten(n)}:
        only_writes = all(_is_mutable(n) and n.graph is program.graph for n in found)
        rewritten = without_writes(program, lambda n: n not in found) if only_writes else None
        if rewritten is None:
            with _autocast_parts(found):
                program = _decomposed(program, {})
        else:
            program = rewritten
    checking: set[Any] = set()
    for _ in range(4):
        missing = {n.target for n in unsupported(program)} - checking
        if not (chosen := _decompositions(missing)):
            break
        parts = _decomposed(program, chosen)
        if _checks_values(parts):  # these operations are reported by name, with their place in the model
            checking |= {op for op in chosen if _checks_values(_decomposed(program, {op: chosen[op]}))}
            continue
        program = parts
    return _composed(program)


def _decompositions(operations: Collection[Any]) -> dict[Any, Any]:
    """The functions that compute some of `operations` by others: ours, else those of PyTorch. PyTorch goes through all
    its operations before it answers, so it is asked once, and only about operations without a function of ours.
    """
    if not operations:
        return {}
    table: dict[Any, Any] = composed.table()
    if not table.keys() >= set(operations):
        with compositions():  # read inside the block: PyTorch's table includes the replaced compositions
            table = {**torch.export.default_decompositions(), **table}
    return {op: table[op] for op in operations if op in table}


@contextlib.contextmanager
def _autocast_parts(nodes: Iterable[Any]) -> Generator[None]:
    """A context in which operations inside an autocast of `nodes` are replaced by calls that PyTorch decomposes
    correctly.

    PyTorch casts the operands of operations that it knows by name. Compositions such as `einsum` are therefore replaced
    by calls of their parts, and recurrent layers by calls that cast the operands first.
    """
    changed: list[tuple[Any, Any]] = []
    for region in (n for n in nodes if AUTOCAST in str(n.target)):
        kind, dtype, enabled, _, body = region.args[:5]
        for node in _operations_of(region.graph.owning_module.get_submodule(body.target)):
            if enabled and is_cast_layer(node.target, kind):
                changed.append((node, node.target))
                node.target, node.args = _cast, (node.target, dtype, *node.args)
            elif _is_cast_inside(node):
                changed.append((node, node.target))
                node.target, node.args = _parts, (node.target, *node.args)
    try:
        yield
    finally:
        for node, op in changed:
            node.target, node.args = op, node.args[2 if node.target is _cast else 1 :]


def _operations_of(body: Any) -> Generator[Any]:
    """The operations of an autocast, without those of an autocast inside of it."""
    for node in body.graph.nodes:
        if node.op != "call_function" or AUTOCAST in str(node.target):
            continue
        yield node
        for inner in node.all_input_nodes if is_inlined(node) else ():
            if inner.op == "get_attr":
                yield from _operations_of(body.get_submodule(inner.target))


def _parts(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Call PyTorch's function that composes an operation of other operations.

    PyTorch's dispatcher in Python is off during the call: it would hide these operations from autocast.
    """
    with torch._C._DisablePythonDispatcher():
        return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def _cast(op: Any, dtype: Any, *args: Any) -> Any:
    """Call an operation with its tensors converted to `dtype`."""

    def cast(x: Any) -> Any:
        return x.to(dtype)

    return op(*torch.utils._pytree.tree_map_only(torch.Tensor, cast, args))


def _is_cast_inside(node: Any) -> bool:
    """Whether the trace of a composition has results of another dtype than a call without autocast, or such a call
    fails.
    """
    op = node.target
    if not isinstance(op, torch._ops.OpOverload) or not op._can_decompose() or row_named(str(op)) is not None:
        return False
    try:
        with torch.no_grad(), torch._subclasses.FakeTensorMode():
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), _example)
            found = op(*args, **kwargs)
    except Exception:
        return True
    ours, traced = map(torch.utils._pytree.tree_leaves, (found, node.meta["val"]))
    return [getattr(x, "dtype", None) for x in ours] != [getattr(x, "dtype", None) for x in traced]


def _example(node: Any) -> Any:
    """A tensor without data in place of a node, with the example's sizes; a size of the example for a dim."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return torch.empty([example_size(n) for n in value.shape], dtype=value.dtype, device=value.device)
    return example_size(value) if isinstance(value, torch.SymInt) else value


def _is_rewritten(node: Any) -> bool:
    """Whether every decomposition of PyTorch replaces a node by other operations."""
    if AUTOCAST in str(node.target) or getattr(node.target, "__module__", "") == VMAP:
        return True
    return _is_mutable(node) and row_name(node) == str(node.target)


def _checks_values(program: Any) -> bool:
    """Whether a program has operations that only raise errors, for example for the inverse of a singular matrix.
    PyTorch orders these operations by tokens.
    """
    kinds = torch.export.graph_signature.InputKind
    return any(spec.kind == kinds.TOKEN for spec in program.graph_signature.input_specs)


def _decomposed(program: Any, table: Any) -> Any:
    """The program with operations decomposed; an error of PyTorch becomes a failure of the import."""
    names = ", ".join(sorted(str(op) for op in table)) or "operations in place"
    dynamic = _dynamic_dims(program)
    try:
        with whole_layers(), without_layouts(), any_size(), compositions(), float_functions():
            program = program.run_decompositions(table)
    except Exception as error:
        raise ImportFailure(f"PyTorch cannot decompose {names} in this model: {error}") from error
    if fixed := sorted(name for name, count in _dynamic_dims(program).items() if count < dynamic.get(name, 0)):
        raise ImportFailure(
            f"PyTorch makes a number of a dynamic dim of {', '.join(fixed)} where it decomposes {names}; declare the "
            "dim as a number, or write the operation with others"
        )
    return program


def _dynamic_dims(program: Any) -> dict[str, int]:
    """The number of dynamic dims of each input. All traces of a program share the dims that PyTorch fixes."""
    holders = [n for n in program.graph.nodes if n.op == "placeholder"]
    shapes = {n.name: getattr(n.meta.get("val"), "shape", ()) for n in holders}
    return {
        name: sum(bool(getattr(d, "node", None) and d.node.expr.free_symbols) for d in s) for name, s in shapes.items()
    }


def _composed(program: Any) -> Any:
    """The program with missing operations replaced by PyTorch's compositions, if the table has all their operations."""
    missing = {n.target for n in unsupported(program)}
    chosen = {op: made for op in missing if (made := _composition(op)) is not None}
    if not chosen:
        return program
    # a decomposition may not know these operands
    with (
        contextlib.suppress(Exception),
        whole_layers(),
        without_layouts(),
        any_size(),
        compositions(),
        float_functions(),
    ):
        found = program.run_decompositions(chosen)
        if {n.target for n in unsupported(found)} < missing:
            return found
    return program


def _composition(op: Any) -> Any:
    """PyTorch's function that computes `op` by other operations; None if there is none."""
    found = torch._decomp.decomposition_table.get(op)
    # other modules have functions of the user, whose arguments may differ from the operation's
    if found is not None and found.__module__ == "torch._decomp.decompositions":
        return found
    return op.decompose if isinstance(op, torch._ops.OpOverload) and op._can_decompose() else None


def _is_mutable(node: Any) -> bool:
    return getattr(getattr(node.target, "_schema", None), "is_mutable", False)


def row_name(node: Any) -> str:
    """The name of the operation in the table. An in-place operation gets the name of the out-of-place one, if possible.

    This is possible if its operand is computed, is not a view, and has no other use. PyTorch's own decomposition would
    trace the whole program again.
    """
    name = str(node.target)
    if not _is_mutable(node) or not node.args:
        return name
    written = node.args[0]
    schema = getattr(getattr(written, "target", None), "_schema", None)
    fresh = schema is not None and all(r.alias_info is None for r in schema.returns) and len(written.users) == 1
    functional = name.replace("_.", ".", 1)
    return functional if fresh and row_named(functional) is not None else name


def _is_known(node: Any) -> bool:
    if node.target is operator.getitem or row_named(row_name(node)) is not None or is_inlined(node):
        return True
    if is_scan(node) or is_flip_of_scan(node) or is_choice(node):
        return True
    return not isinstance(node.meta.get("val"), torch.Tensor | list | tuple) and is_size(node)


def is_size(node: Any) -> bool:
    """Whether a node computes only with sizes."""
    val = node.meta.get("val")
    return isinstance(val, int | float | torch.SymInt | torch.SymBool | torch.SymFloat)


def is_choice(node: Any) -> bool:
    """Whether a node is `torch.cond` of a tensor or of dims, both sides of which can be computed."""
    if node.target is not torch.ops.higher_order.cond:
        return False
    return isinstance(getattr(node.args[0], "meta", {}).get("val"), torch.Tensor | torch.SymBool)


def is_inlined(node: Any) -> bool:
    """Whether a node runs a submodule in place."""
    return INLINED in str(node.target)
