"""Groups of independent layer norms in the documented graph, by the rules of AITemplate's kernel for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from ait_mlir.compiler.transform.joined import documented_operator
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils.graph_utils import get_sorted_ops

NAMES = ("layernorm_sigmoid_mul", "layernorm")
SHORT, LONG = 128, 4096
"""The lengths of rows between which the kernel loads four elements at once."""
RATIO = 4
"""The longest rows of a group are less than so many times as long as its first."""
MOST = 39
"""The most norms of a group."""


def group_norms(outputs: Sequence[Tensor]) -> None:
    """Let one `group_layernorm` or `group_layernorm_sigmoid_mul` compute the norms that fit together."""
    for name in NAMES:
        while group := _next_group(get_sorted_ops(toposort(outputs)), name):
            inputs = [t for place in range(3) for t in (op.inputs[place] for op in group)]
            attrs = {"eps": group[0].attrs["eps"], "normalized_shape": [op.attrs["normalized_shape"] for op in group]}
            documented_operator(f"group_{name}", group, inputs, [op.outputs[0] for op in group], attrs)


def _next_group(operators: Sequence[Operator], name: str) -> list[Operator]:
    """The first norms of this name that fit together and do not wait for each other; empty if there are no two."""
    norms = [op for op in operators if op.attrs["op"] == name and len(op.inputs) == 3 and "eps" in op.attrs]
    for i, first in enumerate(norms):
        group, waiting = [first], reached([first], users)
        for norm in norms[i + 1 :]:
            if len(group) < MOST and norm not in waiting and _fit(first, norm):
                group.append(norm)
                waiting |= reached([norm], users)
        if len(group) > 1:
            return group
    return []


def _fit(first: Operator, second: Operator) -> bool:
    """Whether norms have equal leading dims, and rows for one kernel."""
    (a, c), (b, d) = ((list(op.inputs[0].type.dims), op.attrs["normalized_shape"]) for op in (first, second))
    if (
        first.attrs["eps"] != second.attrs["eps"]
        or len(a) != len(b)
        or len(c) != len(d)
        or a[: -len(c)] != b[: -len(d)]
    ):
        return False
    lengths = [[dim.expr.as_int() for dim in shape] for shape in (c, d)]
    known = [math.prod(n for n in length if n is not None) for length in lengths if None not in length]
    if len(known) < 2:
        return False
    m, n = known
    if max(m, n) < SHORT:
        return True
    wide = [length % 4 == 0 for length in known]
    if max(m, n) >= RATIO * min(m, n) or (max(m, n) <= LONG and wide[0] is not wide[1]):
        return False
    return not wide[0] or (SHORT <= m <= LONG) is (SHORT <= n <= LONG)


def users(operator: Operator) -> Iterator[Operator]:
    """The operators that read an operator's results."""
    return (user for tensor in operator.outputs for user in tensor.users)


def reached(start: Iterable[Operator], step: Callable[[Operator], Iterator[Operator]]) -> set[Operator]:
    """All operators that `start` leads to, directly or indirectly, by `step`; with the operators of `start`."""
    seen, pending = set(start), list(start)
    while pending:
        for operator in step(pending.pop()):
            if operator not in seen:
                seen.add(operator)
                pending.append(operator)
    return seen
