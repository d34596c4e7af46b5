"""The graph of a model in the documented operators, which `Model.debug_sorted_graph` shows.

The compiler fuses more than AITemplate has operators for: any elementwise operators join a product. Tests of models
look for the documented operators. This graph has them: a product with an epilogue that has a name, and the remaining
elementwise operators as `fused_elementwise`. `ait inspect` shows the kernels of a compiled model.
"""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.compiler.transform.documented_groups import group_norms, reached, users
from ait_mlir.compiler.transform.documented_places import place_operators
from ait_mlir.compiler.transform.fuse_ops import ends
from ait_mlir.compiler.transform.joined import documented_operator, join_jagged
from ait_mlir.compiler.transform.name_graph import name_graph
from ait_mlir.compiler.transform.refine_graph import refine_graph
from ait_mlir.dialects.ait.view import PermuteOp
from ait_mlir.frontend import ops
from ait_mlir.frontend.documented_name import PERMUTES
from ait_mlir.frontend.emit import make_param
from ait_mlir.frontend.lift import emit, lift
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.utils.graph_utils import get_sorted_ops

PASSES = (
    "remove-elementwise-no-ops,remove-no-ops,merge-view-ops,dedup-make-jagged-ops,make-inputs-jagged,"
    "fuse-permute-bmm-and-gemm,fuse-bmm-permute,fuse-expand-bmm,merge-concats"
)
"""Rewrites that keep the documented operators, before the fusions of this module."""

WORDS: dict[FuncEnum, str] = {
    FuncEnum.FASTGELU: "fast_gelu",
    FuncEnum.GELU: "gelu",
    FuncEnum.HARDSWISH: "hardswish",
    FuncEnum.RELU: "relu",
    FuncEnum.SIGMOID: "sigmoid",
    FuncEnum.SILU: "swish",
    FuncEnum.TANH: "tanh",
}
"""The word that each elementwise function adds to the name of a product with it as epilogue."""

PRODUCTS = ("gemm_", "bmm_", "conv", "transposed_conv", "group_norm", "layernorm")
NAMES = frozenset(name for name in ops.__all__ if name.startswith(PRODUCTS))

OTHERWISE = {"conv2d_bias_add": "conv2d_bias_add_identity"}
"""The values of `_attrs["op"]` that differ from the name of the operator."""


def documented_graph(outputs: Sequence[Tensor], optimize: bool = True, fold: bool = True) -> list[Tensor]:
    """New, named, sorted tensors of the graph that computes `outputs`, in documented operators.

    With `fold`, values that depend only on weights become weights. Without `optimize` each elementwise operator becomes
    its own `fused_elementwise`, and only operators that change nothing are left out.
    """
    emission = emit(toposort(outputs))
    run_passes(context(), emission.module, parse_passes(PASSES if optimize else "remove-no-ops"), verify=False)
    graph = join_jagged(lift(emission))
    if fold:
        graph = folded(graph)
    last = [t for t in graph if t.is_output] or [graph[-1]]
    if optimize:
        for operator in get_sorted_ops(graph):
            join_chain(operator)
        name_operators(toposort(last))
        group_norms(last)
    graph = toposort(last)
    found = groups(graph) if optimize else [[op] for op in get_sorted_ops(graph) if is_elementwise(op)]
    for operators in found:
        read, made = ends(operators)
        inputs = sorted(read, key=graph.index)
        documented_operator("fused_elementwise", operators, inputs, made, {"elementwise_ops": operators})
    graph = toposort(last)
    name_graph(graph)
    graph = refine_graph(graph)
    return place_operators(graph) if optimize else graph


def folded(graph: Sequence[Tensor]) -> list[Tensor]:
    """The graph with weights in place of values that depend only on weights; its outputs stay the same tensors."""
    known: set[Tensor] = set()
    for tensor in graph:
        read = [t for op in tensor.src_ops() for t in op.inputs]
        if tensor.is_param or (read and all(t in known or t.number() is not None for t in read)):
            known.add(tensor)
    last = [t for t in graph if t.is_output] or [graph[-1]]
    for tensor in graph:
        if tensor in known and tensor.src_ops():
            for operator in tensor.src_ops():
                for read in operator.inputs:
                    read.users.discard(operator)
            before = tensor.value
            tensor.replace_value(make_param(tensor.type))
            tensor.sources, tensor.made_by = StableSet(), None
            before.replace_all_uses_with(tensor.value)
    return toposort(last)


def is_elementwise(operator: Operator) -> bool:
    """Whether the operator applies a function to each element."""
    return operator.attrs["op"] == "elementwise" and len(operator.outputs) == 1


# ** products **


def join_chain(product: Operator) -> None:
    """Join a product with the longest chain of elementwise operators after it that has a documented name. A number
    that a batched product is multiplied by first is its `alpha`."""
    name = product.attrs["op"]
    if not (isinstance(name, str) and name in NAMES and len(product.outputs) == 1):
        return
    chain, read, found, last = [product], [product.inputs], 0, 1
    names, attrs = [name], dict(product.attrs)
    if name.startswith("bmm_") and (step := _factor(product)) is not None:
        user, number = step
        chain, found = [product, user], 2
        attrs["alpha"] = attrs.get("alpha", 1.0) * number
    while (step := _next_step(chain[-1], names[-1], product)) is not None:
        users, word, others = step
        chain += users
        read.append([t for t in others if not _is_gate(name, product, t)])
        names.append(_joined_name(names[-1], word))
        if names[-1] in NAMES:
            found, last = len(chain), len(names)
    if found:
        operators, inputs = chain[:found], [t for step in read[:last] for t in step]
        name = OTHERWISE.get(names[last - 1], names[last - 1])
        documented_operator(name, operators, inputs, operators[-1].outputs, attrs)


def _factor(product: Operator) -> tuple[Operator, float] | None:
    """The only user of a product, if it multiplies the product by a number or divides it by one; and the factor."""
    user, (result,) = _only_user(product), product.outputs
    if user is None or not is_elementwise(user) or user.outputs[0].type != result.type:
        return None
    args: Sequence[Tensor] = user.attrs.get("args") or ()
    match user.attrs.get("func"), [t.number() if t.rank == 0 else None for t in args]:
        case FuncEnum.MUL, [None, number] | [number, None] if number is not None:
            return user, float(number)
        case FuncEnum.DIV, [None, number] if number:
            return user, 1 / number
        case _:
            return None


def _is_gate(name: str, product: Operator, tensor: Tensor) -> bool:
    """Whether a factor is the layer norm's own input, which the documented operator does not list a second time."""
    return name.startswith("layernorm") and tensor is product.inputs[0]


def _joined_name(name: str, word: str) -> str:
    """The documented name of a product of this name with one more step."""
    few = "_few_channels"
    return f"{name.removesuffix(few)}_{word}{few if name.endswith(few) else ''}"


def _next_step(operator: Operator, name: str, product: Operator) -> tuple[list[Operator], str, list[Tensor]] | None:
    """The next elementwise operators to join to a composite: the operators, their word in its name, and their other
    operands.

    The next step is the only user of the result, or a sigmoid and the multiplication with it, "swish". None if no
    documented name continues so.
    """
    result = operator.outputs[0]
    users = list(result.users)
    if len(users) == 2 and not result.is_output and (gate := _swish(result)) and f"{name}_swish" in NAMES:
        return gate, "swish", []
    if result.is_output or len(users) != 1 or not is_elementwise(users[0]):
        return None
    (user,) = users
    others = [t for t in user.inputs if t is not result]
    if len(user.inputs) != len(others) + 1 or user.outputs[0].type != result.type:
        return None
    word = _word(user, name, result, others)
    if word == "mul" and name.startswith("layernorm") and not _is_gate(name, product, others[0]):
        return None
    if word is None or not any(f"{n}_".startswith(f"{_joined_name(name, word)}_") for n in NAMES):
        return None
    return [user], word, others


def _swish(x: Tensor) -> list[Operator]:
    """The two users of a tensor, if they compute x * sigmoid(x); else none."""
    first, second = x.users
    sigmoid, times = (second, first) if second.attrs.get("func") is FuncEnum.SIGMOID else (first, second)
    if not (is_elementwise(sigmoid) and is_elementwise(times) and sigmoid.attrs.get("func") is FuncEnum.SIGMOID):
        return []
    (gate,) = sigmoid.outputs
    alone = not gate.is_output and list(gate.users) == [times] and times.attrs.get("func") is FuncEnum.MUL
    return [sigmoid, times] if alone and set(times.inputs) == {x, gate} else []


def _word(user: Operator, name: str, result: Tensor, others: Sequence[Tensor]) -> str | None:
    func = user.attrs.get("func")
    if not others:
        return WORDS.get(func) if func is not None and len(user.attrs.get("args") or [result]) == 1 else None
    if len(others) != 1 or func not in (FuncEnum.ADD, FuncEnum.MUL):
        return None
    (other,) = others
    if func is FuncEnum.MUL:
        return "mul" if other.type == result.type else None
    if name.startswith("bmm_"):
        return "add" if _repeats_for_batches(other, result) else None
    if other.rank == 1 and other.type.dims[0] is result.type.dims[-1]:
        return "bias"
    return "add" if other.type == result.type else None


def _repeats_for_batches(other: Tensor, result: Tensor) -> bool:
    """Whether a tensor has the shape of the result of a batched product, or that of its last dims, with leading 1s."""
    dims = list(other.type.dims)
    while dims and dims[0].as_int() == 1:
        dims.pop(0)
    return other.type == result.type or (0 < len(dims) < result.rank and dims == list(result.type.dims[-len(dims) :]))


def name_operators(graph: Sequence[Tensor]) -> None:
    """Set the documented names of products of special sizes, of products followed only by a permute of heads, and of
    permutes that move only dims of 1."""
    for operator in get_sorted_ops(graph):
        name = operator.attrs["op"]
        if name == "bmm_rcr" and _is_one_column(operator):
            operator.attrs["op"] = "bmm_rcr_n1"
        elif name == "gemm_rrr" and _has_small_factor(operator):
            operator.attrs["op"] = "gemm_rrr_small_nk"
        elif name in (*PERMUTES.values(), "permute") and _moves_only_ones(operator):
            operator.attrs["op"] = "reshape"
        elif name == "gemm_rcr" and (heads := _heads(operator)) is not None:
            attrs = {**operator.attrs, "shape": heads[-1].inputs[0].type.dims[1:3], "layout": "0213"}
            documented_operator("gemm_rcr_permute", [operator, *heads], operator.inputs, heads[-1].outputs, attrs)


def _moves_only_ones(permute: Operator) -> bool:
    op = permute.outputs[0].value.owner
    dims = permute.inputs[0].type.dims
    others = [axis for axis in op.order() if dims[axis].as_int() != 1] if isinstance(op, PermuteOp) else []
    return isinstance(op, PermuteOp) and others == sorted(others)


def _is_one_column(product: Operator) -> bool:
    a, b = (t.type.dims for t in product.inputs)
    return len(a) == len(b) == 3 and a[0] is b[0] and b[1].as_int() == 1 and b[2].as_int() is not None


def _has_small_factor(product: Operator) -> bool:
    sizes = [dim.as_int() for dim in product.inputs[1].type.dims]
    return all(n is not None and n <= most for n, most in zip(sizes, (16, 8), strict=True))


def _heads(product: Operator) -> list[Operator] | None:
    """The reshape to [M / a, a, b, N / b] and the permute to [M / a, b, a, N / b] that follow a product as its only
    users; else None."""
    reshape = _only_user(product)
    permute = None if reshape is None or reshape.attrs["op"] != "reshape" else _only_user(reshape)
    if reshape is None or permute is None:
        return None
    moved = permute.outputs[0].value.owner
    before, parted = (operator.outputs[0].type.dims for operator in (product, reshape))
    if not isinstance(moved, PermuteOp) or moved.order() != (0, 2, 1, 3) or len(before) != 2:
        return None
    columns, (a, b, rest) = before[1].as_int(), (dim.as_int() for dim in parted[1:])
    if columns is None or a is None or b is None or rest is None or rest % 2 or b * rest != columns:
        return None
    return [reshape, permute]


def _only_user(operator: Operator) -> Operator | None:
    (result,) = operator.outputs
    return None if result.is_output or len(result.users) != 1 else next(iter(result.users))


# ** elementwise operators **


def groups(graph: Sequence[Tensor]) -> list[list[Operator]]:
    """The connected groups of elementwise operators that can become one operator: results used outside of a group have
    one shape, and no path between two of its operators leaves the group."""
    found: dict[Operator, list[Operator]] = {}
    for operator in get_sorted_ops(graph):
        if not is_elementwise(operator):
            continue
        found[operator] = [operator]
        for read in operator.inputs:
            for source in read.src_ops():
                if source in found and found[source] is not found[operator]:
                    joined = [*found[source], *found[operator]]
                    if _may_join(joined):
                        for member in joined:
                            found[member] = joined
    return list({id(group): group for group in found.values()}.values())


def _may_join(operators: Sequence[Operator]) -> bool:
    inside = set(operators)
    _, made = ends(operators)
    if any(t.type.dims != made[0].type.dims for t in made):
        return False
    outside = [user for t in made for user in t.users if user not in inside]
    return inside.isdisjoint(reached(outside, users))
