"""The code of a function with loops over dynamic dims converted to scans (`loops.py` says how)."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from ait_mlir.importers.torch.choice_code import choice, reads_after
from ait_mlir.importers.torch.steps import LoopError
from ait_mlir.importers.torch.syntax import (
    copied,
    identifiers,
    statements,
    stored_in,
    tuple_of,
    variables,
    variables_set,
)

STEPS = "_ait_steps"
_REFUSED = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete)


def source(code: CodeType) -> ast.FunctionDef | None:
    """A function's source with the line numbers of its file, or None if there is none."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return tree


def loop_at(tree: ast.AST, line: int) -> ast.For | None:
    """The `for` loop whose `range(...)` is at this line; None if there is none."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)]
    loops = [node for node in loops if node.iter.lineno <= line <= (node.iter.end_lineno or line)]
    return next((node for node in loops if ast.unparse(node.iter).startswith("range(")), None)


def loop_around(tree: ast.AST, line: int) -> ast.For | None:
    """The innermost `for` loop whose body has this line; None if there is none."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    loops = [node for node in loops if node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)]
    return max(loops, key=lambda node: node.lineno, default=None)


_SUBSTITUTION = ast.dump(ast.parse("""
row = matrix[..., index, :index].clone()
sub = matrix[..., :index, :index].clone()
matrix[..., index, :index] = row + (row.unsqueeze(-1) * sub).sum(-2)
"""))


def substituted_rows(loop: ast.For) -> str | None:
    """The matrix whose rows a loop replaces by forward substitution, as linear attention by the delta rule does; None
    for another loop.

    ```python
    for i in range(1, n):
        row = matrix[..., i, :i].clone()
        sub = matrix[..., :i, :i].clone()
        matrix[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)
    ```
    """
    match loop:
        case ast.For(
            target=ast.Name(id=index),
            body=[
                ast.Assign(targets=[ast.Name(id=row)]),
                ast.Assign(targets=[ast.Name(id=sub)]),
                ast.Assign(targets=[ast.Subscript(value=ast.Name(id=matrix))]),
            ],
            orelse=[],
        ) if len({index, row, sub, matrix}) == 4:
            names = {index: "index", row: "row", sub: "sub", matrix: "matrix"}
            body = ast.Module([copied(statement) for statement in loop.body], [])
            for node in ast.walk(body):
                if isinstance(node, ast.Name):
                    node.id = names.get(node.id, f"{node.id} of the function")
            return matrix if ast.dump(body) == _SUBSTITUTION else None
        case _:
            return None


def compiled(tree: ast.FunctionDef, original: CodeType, lines: frozenset[int]) -> CodeType:
    """The code of a function with the loops at these lines converted."""
    if any(name.startswith("__") and not name.endswith("__") for name in identifiers(tree)):
        raise LoopError("its function uses private names of a class")
    changed = ast.fix_missing_locations(_Function(tree, lines).visit(tree))
    changed.decorator_list = []
    outer = ast.parse(f"def factory({', '.join(original.co_freevars)}): pass")
    factory = outer.body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [changed]
    try:
        code = compile(ast.fix_missing_locations(outer), original.co_filename, "exec")
    except SyntaxError as error:
        raise LoopError(str(error)) from error
    code = next(c for c in code.co_consts if isinstance(c, CodeType))
    code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == original.co_name)
    if code.co_freevars != original.co_freevars:
        raise LoopError("it reads other variables than its function")
    return code.replace(co_qualname=original.co_qualname)


class _Function(ast.NodeTransformer):
    """Converts the loops at some lines."""

    def __init__(self, tree: ast.AST, lines: frozenset[int]) -> None:
        self.lines = lines
        choices = [n for n in ast.walk(tree) if isinstance(n, ast.If) and n.lineno in lines]
        self.reads = {id(node): reads_after(node, tree) for node in choices}

    def visit_For(self, node: ast.For) -> Any:
        if node.lineno not in self.lines:
            return self.generic_visit(node)
        if (matrix := substituted_rows(node)) is not None:
            return statements(
                f"from ait_mlir.importers.torch import steps as {STEPS}\n"
                f"{STEPS}.substitute_rows({matrix}, {ast.unparse(node.iter)})",
                node.iter,
            )
        return _converted(node)

    def visit_If(self, node: ast.If) -> Any:
        return choice(node, self.reads[id(node)]) if id(node) in self.reads else self.generic_visit(node)


def _converted(loop: ast.For) -> list[ast.stmt]:
    """Statements that run a loop as a scan if its number of steps is dynamic, and unchanged if it is not."""
    assert isinstance(loop.iter, ast.Call)
    starred = any(isinstance(argument, ast.Starred) for argument in loop.iter.args)
    if starred or not loop.iter.args or loop.iter.keywords or not isinstance(loop.target, ast.Name):
        raise LoopError("only `for name in range(n)` can, with a start and a step")
    if loop.orelse:
        raise LoopError("it has an else")
    written = variables_set(loop.body)
    step = _Step(loop.target.id, written)
    body: list[ast.stmt] = [step.visit(copied(statement)) for statement in loop.body]
    step.check(loop.body)
    carried = sorted(_read_first(body, set()) & written - {loop.target.id})
    others = sorted(written | {loop.target.id})
    slices = [f"_ait_slice_{i}" for i in range(len(step.sliced))]
    if not slices or any(name == loop.target.id for statement in body for name, _ in variables(statement)):
        slices.append(loop.target.id)
    parts = ["(" + ", ".join(map(str, part)) + ")" for part in step.sliced]
    values = [f"_ait_rows_{i}" for i in range(len(step.results))]
    head = "".join(f"    {name} = []\n" for name in values)
    made = statements(
        f"from ait_mlir.importers.torch import steps as {STEPS}\n"
        f"def _ait_step(_ait_carried, _ait_slices):\n"
        f"    {tuple_of(carried)} = _ait_carried\n"
        f"    {tuple_of(slices)} = _ait_slices\n{head}"
        f"    return {tuple_of(carried)}, {tuple_of(values)}\n"
        f"{tuple_of(carried)}, _ait_results = {STEPS}.run(_ait_step, _ait_range, {tuple_of(carried)}, "
        f"[{', '.join(parts)}], "
        f"{slices[-1] == loop.target.id}, {[r.name for r in step.results]!r})\n"
        + "".join(
            f"{r.name} = {STEPS}.collected({r.name}, _ait_results[{i}])\n"
            if r.axis is None
            else f"{STEPS}.write({r.name}, {r.axis}, _ait_results[{i}], _ait_range)\n"
            for i, r in enumerate(step.results)
        )
        + "".join(f"{name} = {STEPS}.Unknown({name!r})\n" for name in others if name not in carried),
        loop.iter,
    )
    function = made[1]
    assert isinstance(function, ast.FunctionDef)
    function.body[-1:-1] = body
    arguments = ", ".join(map(ast.unparse, loop.iter.args))
    count = statements(
        f"from ait_mlir.importers.torch import steps as {STEPS}\n_ait_range = {STEPS}.Range.of({arguments})",
        loop.iter,
    )
    either = statements(f"if {STEPS}.is_dynamic(_ait_range.count): pass\nelse: pass", loop.iter)[0]
    assert isinstance(either, ast.If)
    either.body, either.orelse = made[1:], [loop]
    numbers = statements("range(_ait_range.start, _ait_range.stop, _ait_range.by)", loop.iter)[0]
    assert isinstance(numbers, ast.Expr)
    loop.iter = numbers.value
    return [*count, either]


@dataclass(frozen=True)
class Result:
    """A list to which each step appends, or a tensor to which it writes along an axis."""

    name: str
    axis: int | None = None


class _Step(ast.NodeTransformer):
    """Rewrites the body of a loop to the body of a scan's step."""

    def __init__(self, index: str, written: set[str]) -> None:
        self.index, self.written = index, written
        self.sliced: list[tuple[str, int, str, str | None]] = []
        """The tensors that a step reads a part of: text, axis, where the part starts behind the loop's index, and how
        wide it is; None is one element without the axis.
        """
        self.results: list[Result] = []

    def check(self, body: Sequence[ast.stmt]) -> None:
        """Raise `LoopError` for a statement that a step of a scan cannot have."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, _REFUSED):
                    raise LoopError(f"it has a `{type(node).__name__.lower()}`")
            if _jumps(statement):
                raise LoopError("it has a `break` or `continue`")
        names = [r.name for r in self.results]
        nodes = [node for statement in body for node in ast.walk(statement)]
        typed = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr in ("dtype", "device")}
        reads = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in typed]
        for name in names:
            if names.count(name) > 1 or reads.count(name) > 1 or name in self.written:
                raise LoopError(f"{name} has several uses in a step")

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES:
            owner = call.func.value
            if call.func.attr != "append" or not isinstance(owner, ast.Name) or len(call.args) != 1 or call.keywords:
                raise LoopError(f"it calls `{ast.unparse(call.func)}`")
            return self._result(Result(owner.id), call.args[0], node)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            items = _items(target.slice)
            at = self._position(items, [self._is_index(item) for item in items])
            rest = [item for item in items if not self._is_index(item)]
            if at is not None and len(rest) == len(items) - 1 and all(map(_is_whole, rest)):
                is_slice = any(isinstance(item, ast.Slice) and self._is_index(item) for item in items)
                return self._result(Result(target.value.id, at), node.value, node, is_slice)
        for item in node.targets:
            _refuse_places(item)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        _refuse_places(node.target)
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        _refuse_places(node.target)
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, self.visit(node.value))
        changed = ast.parse(f"{name} = {STEPS}.augmented({name}, None)").body[0]
        assert isinstance(changed, ast.Assign) and isinstance(changed.value, ast.Call)
        changed.value.args[1] = value
        return _at(changed, node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        items = _items(node.slice)
        places = [self._place(item) for item in items]
        at = self._position(items, [place is not None for place in places])
        read = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        is_plain = isinstance(node.value, ast.Name | ast.Attribute) and not read & (self.written | {self.index})
        if at is None or not is_plain or not isinstance(node.ctx, ast.Load):
            if self.index in {name for item in items for name in identifiers(item)}:
                raise LoopError(
                    f"it reads `{ast.unparse(node)}`; with `{self.index}` as an index, x[{self.index} + 1], "
                    f"x[{self.index}:{self.index} + 3] and the like can"
                )
            return self.generic_visit(node)
        (offset, width) = next(place for place in places if place is not None)
        key = (ast.unparse(node.value), at, offset, width)
        if key not in self.sliced:
            self.sliced.append(key)
        kept: list[ast.expr] = []
        for item, place in zip(items, places, strict=True):
            if place is None:
                kept.append(item)
            elif width is not None:
                kept.append(ast.Slice())
            elif isinstance(item, ast.Slice):
                kept.append(ast.Constant(None))
        name = ast.Name(f"_ait_slice_{self.sliced.index(key)}", ast.Load())
        made = ast.Subscript(name, ast.Tuple(kept, ast.Load()), ast.Load()) if kept else name
        return _at(made, node)

    def _result(self, result: Result, value: ast.expr, node: ast.stmt, is_slice: bool = False) -> ast.stmt:
        self.results.append(result)
        made = ast.parse(f"_ait_rows_{len(self.results) - 1}.append(None)").body[0]
        assert isinstance(made, ast.Expr) and isinstance(made.value, ast.Call)
        made.value.args[0] = self.visit(value)
        if is_slice:
            call = ast.parse(f"{STEPS}.without_axis(None, {result.name}, {result.axis})").body[0]
            assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
            call.value.args[0] = made.value.args[0]
            made.value.args[0] = call.value
        return _at(made, node)

    def _is_index(self, item: ast.expr) -> bool:
        """Whether an item of an index is `t` or `t:t + 1`."""
        texts = (self.index, f"{self.index}:{self.index} + 1")
        return ast.unparse(item) in texts

    def _place(self, item: ast.expr) -> tuple[str, str | None] | None:
        """Where an item of an index starts behind the loop's index, and how wide it is, both as text: `t + 1` is ("1",
        None), `t:t + k` is ("0", "k - 0"). None for an item without the loop's index, or with another formula of it.
        """
        if self._is_index(item):
            return "0", None
        if not isinstance(item, ast.Slice):
            start = self._behind(item)
            return None if start is None else (start, None)
        if item.step is not None or item.lower is None or item.upper is None:
            return None
        start, end = self._behind(item.lower), self._behind(item.upper)
        return None if start is None or end is None else (start, f"({end}) - ({start})")

    def _behind(self, item: ast.expr) -> str | None:
        """The text of E in `t`, `t + E`, `E + t` and `t - E`, if no step changes E."""
        if isinstance(item, ast.Name) and item.id == self.index:
            return "0"
        if not isinstance(item, ast.BinOp) or not isinstance(item.op, ast.Add | ast.Sub):
            return None
        for part, rest in ((item.left, item.right), (item.right, item.left)):
            inner = self._behind(part)
            if inner is None or {*identifiers(rest)} & (self.written | {self.index}):
                continue
            if isinstance(item.op, ast.Add):
                return f"{inner} + ({ast.unparse(rest)})"
            return f"{inner} - ({ast.unparse(rest)})" if part is item.left else None
        return None

    def _position(self, items: Sequence[ast.expr], of_index: Sequence[bool]) -> int | None:
        """The axis of the loop's index among the items of an index, if the others are slices, None and numbers."""
        found = [i for i, is_index in enumerate(of_index) if is_index]
        others = [item for item, is_index in zip(items, of_index, strict=True) if not is_index]
        if (
            len(found) != 1
            or not all(map(_is_fixed, others))
            or self.index in {n for o in others for n in identifiers(o)}
        ):
            return None
        before, after = items[: found[0]], items[found[0] + 1 :]
        if any(map(_is_ellipsis, before)):
            return -1 - sum(not _is_none(item) for item in after)
        return sum(not _is_none(item) for item in before)


_CHANGES = ("append", "extend", "insert", "pop", "remove", "clear", "update", "add", "setdefault")


def _at(made: Any, node: ast.AST) -> Any:
    for inner in ast.walk(made):
        if not hasattr(inner, "lineno"):
            ast.copy_location(inner, node)
    return ast.copy_location(made, node)


def _items(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _is_none(item: ast.expr) -> bool:
    return isinstance(item, ast.Constant) and item.value is None


def _is_ellipsis(item: ast.expr) -> bool:
    return isinstance(item, ast.Constant) and item.value is ...


def _is_whole(item: ast.expr) -> bool:
    return _is_ellipsis(item) or (isinstance(item, ast.Slice) and item.lower is item.upper is item.step is None)


def _is_fixed(item: ast.expr) -> bool:
    """Whether an item of an index is a slice, None or a number, and no tensor."""
    is_number = isinstance(item, ast.Constant) or (isinstance(item, ast.UnaryOp) and _is_fixed(item.operand))
    return isinstance(item, ast.Slice) or is_number


def _refuse_places(target: ast.expr) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            raise LoopError(f"it writes to `{ast.unparse(node)}`")


def _jumps(node: ast.AST) -> bool:
    """Whether a statement leaves the loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.For | ast.While):
        return any(map(_jumps, node.orelse))
    return any(map(_jumps, ast.iter_child_nodes(node)))


def _read_first(body: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """The variables that statements may read before they set them; adds variables that are always set to `known`."""
    found: set[str] = set()

    def read(node: ast.AST | None) -> None:
        found.update(name for name, is_set in variables(node or ast.Pass()) if not is_set and name not in known)

    def inside(*parts: Sequence[ast.stmt]) -> list[set[str]]:
        """Visit parts of which each may or may not run; returns, for each part, the variables that are always set after
        it.
        """
        after = [set(known) for _ in parts]
        for part, names in zip(parts, after, strict=True):
            found.update(_read_first(part, names))
        return after

    for statement in body:
        match statement:
            case ast.Assign() | ast.AnnAssign():
                read(statement.value)
                for target in statement.targets if isinstance(statement, ast.Assign) else (statement.target,):
                    read(target)
                known |= variables_set([statement])
            case ast.If():
                read(statement.test)
                first, second = inside(statement.body, statement.orelse)
                known |= first & second
            case ast.For():
                read(statement.iter)
                assigned = ast.Assign([statement.target], ast.Constant(None))
                inside([assigned, *statement.body], statement.orelse)
            case ast.While():
                read(statement.test)
                inside(statement.body, statement.orelse)
            case ast.With():
                for item in statement.items:
                    read(item.context_expr)
                    known |= stored_in(item.optional_vars) if item.optional_vars else set()
                found |= _read_first(statement.body, known)
            case _:
                read(statement)
    return found


__all__ = ["compiled", "loop_around", "loop_at", "source", "substituted_rows"]
