"""What an editor shows about the token under the mouse: type, bytes, operations, kernel, documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import KernelAttr, ShapedType, scope_of
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp
from ait_mlir.dims import DimError, Expr, const
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.module_target import target_of
from ait_mlir.passes.launch_cost import cost_of, launch_cost
from ait_mlir.tools.language.document import Document, Part, Span
from ait_mlir.tools.language.outline import Place
from ait_mlir.tools.language.recovery import WrongOp
from ait_mlir.tools.language.tokens import Token


@dataclass(frozen=True)
class Hover:
    """A Markdown text about a part of a line."""

    text: str
    span: Span


_IMPOSSIBLE = (DimError, ValueError, KeyError, VerifyException, PassFailedException, AssertionError)
"""What computing a cost raises for an op that is wrong."""


def hover_at(document: Document, ctx: Context, line: int, column: int) -> Hover | None:
    """The text and range to show for the token at a position; None if nothing is known about it."""
    part, token = document.part_at(line), document.token_at(line, column)
    if part is None or token is None:
        return None
    text = _about(part, ctx, line - part.first, token)
    return Hover(text, Span(line, token.start, token.end)) if text else None


def _about(part: Part, ctx: Context, line: int, token: Token) -> str:
    ops = part.analysis.ops if part.analysis is not None else {}
    s = part.outline.at(line)
    match token.kind:
        case "op" | "string" if s is not None and part.outline.op_token(s) == token and s.first == line:
            return "\n\n".join(_of_op(ctx, part.outline.op(s), ops.get(line), part))
        case "value":
            return _of_value(part, ops, line, token)
        case "dim":
            return _of_dim(part, line, token)
        case "symbol":
            place = part.outline.symbols().get(token.text[1:].strip('"'))
            return "" if place is None else _code(part.outline.lines[place.line].strip())
        case "attribute" if token.text == "#ait.kernel":
            return "\n\n".join(_of_kernel(ops.get(s.first) if s is not None else None, part))
        case _:
            return ""


def _code(text: str) -> str:
    return f"```mlir\n{text}\n```"


def documentation(ctx: Context, name: str) -> str:
    """The documentation of an op in Markdown; empty for an unknown op."""
    found = ctx.get_optional_op(name)
    return "" if found is None or found.__doc__ is None else inspect.cleandoc(found.__doc__)


def _of_op(ctx: Context, name: str, op: Operation | None, part: Part) -> Iterator[str]:
    yield f"**{name}**"
    if op is not None and not isinstance(op, WrongOp):
        if op.results:
            yield "  \n".join(_typed(v) for v in op.results)
        yield from _of_cost(op)
        yield from _of_kernel(op, part)
    if text := documentation(ctx, name):
        yield f"---\n{text}"


def _typed(value: SSAValue) -> str:
    size = f": {amount(value.type.byte_size(), value, 'bytes')}" if isinstance(value.type, ShapedType) else ""
    return f"`{value.type}`{size}"


def _of_cost(op: Operation) -> Iterator[str]:
    if not isinstance(op, Cost):
        return
    try:
        read = sum((op.bytes_read(i) for i in range(len(op.operands))), const(0))
        written = sum((op.bytes_written(i) for i in range(len(op.results))), const(0))
        yield "  \n".join(
            [
                f"operations: {amount(op.flops(), op, 'flops')}",
                f"read: {amount(read, op, 'bytes')}",
                f"written: {amount(written, op, 'bytes')}",
            ]
        )
    except _IMPOSSIBLE:
        return


def amount(e: Expr, where: SSAValue | Operation, unit: str) -> str:
    """An expression, and its value where the dims have their hints or else their maxima."""
    if isinstance(where, SSAValue):
        owner = where.owner
        where = owner if isinstance(owner, Operation) else owner.parent_op() or ModuleOp([])
    known = e.as_int()
    if known is not None:
        return _scaled(known, unit)
    env = {name: value for name, value in estimate_env(scope_of(where)).items() if name in e.symbols}
    try:
        value = e.evaluate(env)
    except (DimError, KeyError):
        return f"`{e}` {unit}"
    return f"`{e}` {unit}, {_scaled(value, unit)} at {', '.join(f'{n} = {v}' for n, v in env.items())}"


def _scaled(n: float, unit: str) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g} {letter}{'B' if unit == 'bytes' else unit}"
    return f"{n:g} {unit}"


def _of_kernel(op: Operation | None, part: Part) -> Iterator[str]:
    """The kernel that was chosen for an op, and the estimate of its time."""
    if op is None or part.analysis is None:
        return
    module = part.analysis.module
    try:
        if isinstance(op, LaunchOp):
            kernels = (o for o in module.ops if isinstance(o, KernelOp) and o.sym_name.data == op.kernel_name)
            if (op := next(kernels, None)) is None:
                return
        if isinstance(op, KernelOp):
            name, config, seconds = op.provider.data, op.config, launch_cost(op, target_of(module)).seconds
            where = op.compute_op()
        elif isinstance(kernel := op.attributes.get("kernel"), KernelAttr):
            name, config = kernel.provider.data, kernel.config
            seconds, where = cost_of(op, name, config, target_of(module)).seconds, op
        else:
            return
        target = target_of(module)
    except _IMPOSSIBLE:
        return
    dims = ", ".join(f"{n} = {v}" for n, v in estimate_env(scope_of(where)).items())
    at = f" at {dims}" if dims else ""
    yield f"kernel `{name}` on {target.kind} {target.arch}: estimated {seconds * 1e6:.3g} us{at}"
    if config.data:
        yield _code(str(config)[:400])


def _of_value(part: Part, ops: dict[int, Operation], line: int, token: Token) -> str:
    found = part.outline.value_definition(line, token.text)
    if found is None:
        return ""
    place, scope = found
    op = ops.get(place.line)
    value: SSAValue | None = None
    results = part.outline.results(part.outline.by_line[place.line]) if place.line in part.outline.by_line else ()
    if op is not None and place.token in results and len(results) == len(op.results):
        value = op.results[results.index(place.token)]
    elif scope is not None and (around := ops.get(scope.first)) is not None:
        value = _argument(part, around, place)
    shown = _code(part.outline.lines[place.line].strip()[:200])
    return shown if value is None else f"`{token.text}`: {_typed(value)}\n\n{shown}"


def _argument(part: Part, around: Operation, place: Place) -> SSAValue | None:
    arguments = [a for region in around.regions for block in region.blocks for a in block.args]
    statement = part.outline.at(place.line)
    known = part.outline.arguments(statement) if statement is not None else []
    return arguments[known.index(place)] if len(known) == len(arguments) and place in known else None


def _of_dim(part: Part, line: int, token: Token) -> str:
    found = part.outline.dims_in_scope(line).get(token.text)
    if found is None:
        return f"dim `{token.text}` is not declared here"
    place, s = found
    text = part.outline.lines[place.line]
    rest, depth = text[place.token.start :], 0
    for i, c in enumerate(rest):
        depth += (c in "([") - (c in ")]")
        if depth < 0 or c == "}" or (c == "," and depth == 0):
            rest = rest[:i]
            break
    return f"dim `{rest.strip()}` of {part.outline.op(s)}"
