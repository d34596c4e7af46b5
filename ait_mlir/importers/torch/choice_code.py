"""The code of conditions by the values of tensors converted to choices (`choices.py` runs them)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from ait_mlir.importers.torch.steps import LoopError
from ait_mlir.importers.torch.syntax import copied, statements, tuple_of, variables_set

CHOICES = "_ait_choices"


def condition_at(tree: ast.AST, line: int) -> ast.If | None:
    """The `if` whose test is at this line; None if there is none, or if its sides do more than set variables.

    ```python
    if x.isinf().any():                  test, kept = x.isinf().any(), before(locals(), ["x"])
        x = x.clamp(-9, 9)       ->      with one_side():
                                             x = x.clamp(-9, 9)
                                         x, = chosen(test, before(locals(), ["x"]), kept, {"x": True})
    ```
    """
    found = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    found = [node for node in found if node.test.lineno <= line <= (node.test.end_lineno or line)]
    return next((node for node in found if all(map(_only_sets, [*node.body, *node.orelse]))), None)


def _only_sets(statement: ast.stmt) -> bool:
    """Whether a statement only sets variables; operations in place would also change what others see."""
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    targets = [t for x in statement.targets for t in (x.elts if isinstance(x, ast.Tuple) else [x])]
    nodes = list(ast.walk(statement.value))
    names = [n.attr for n in nodes if isinstance(n, ast.Attribute)]
    does_more = any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for n in nodes)
    does_more |= any(name.endswith("_") and not name.startswith("_") for name in names)
    return all(isinstance(target, ast.Name) for target in targets) and not does_more


def choice(node: ast.If, reads: Collection[str]) -> list[ast.stmt]:
    """Statements that run both sides of a condition if it is a tensor, and choose the variables that they set."""
    names = sorted(variables_set([*node.body, *node.orelse]))
    test = f"_ait_test_{node.lineno}_{node.col_offset}"
    values = f"{CHOICES}.before(locals(), {names!r})"
    made = statements(
        f"from ait_mlir.importers.torch import choices as {CHOICES}\n"
        f"{test}, _ait_kept = {ast.unparse(_logical(node.test, test))}, {values}\n"
        f"if {CHOICES}.is_tensor({test}):\n"
        f"    with {CHOICES}.one_side(): pass\n"
        f"    _ait_then = {values}\n"
        f"    {tuple_of(names)} = _ait_kept\n"
        f"    with {CHOICES}.one_side(): pass\n"
        f"    {tuple_of(names)} = {CHOICES}.chosen({test}, _ait_then, {values}, { {n: n in reads for n in names}!r})\n"
        f"elif {test}: pass\n"
        f"else: pass",
        node,
    )
    either = made[2]
    assert isinstance(either, ast.If)
    otherwise = either.orelse[0]
    assert isinstance(otherwise, ast.If)
    otherwise.body, otherwise.orelse = node.body, node.orelse
    for side, block in zip((either.body[0], either.body[3]), (node.body, node.orelse), strict=True):
        assert isinstance(side, ast.With)
        side.body[:0] = [copied(statement) for statement in block]
    return made


def _compared_as_objects(tree: ast.AST) -> set[str]:
    """The variables that a function compares with each other by `is`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            names = [n.id for n in (node.left, *node.comparators) if isinstance(n, ast.Name)]
            found.update(names if len(names) > 1 else ())
    return found


def reads_after(node: ast.If, tree: ast.AST) -> set[str]:
    """The variables that a function may read after a condition: all that it reads elsewhere, but for reads that follow
    a statement in their block that sets the variable again; in a loop also those that the sides read. Raises
    `LoopError` if a variable that the condition sets is not its function's alone, or is compared as an object.
    """
    names = variables_set([*node.body, *node.orelse])
    declared = {name for n in ast.walk(tree) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    if wrong := declared & names:
        raise LoopError(f"a condition sets `{sorted(wrong)[0]}`, which is no variable of its function")
    if wrong := _compared_as_objects(tree) & names:
        raise LoopError(f"a condition sets `{sorted(wrong)[0]}`, which `is` compares with another tensor")
    inside = {id(n) for statement in (*node.body, *node.orelse) for n in ast.walk(statement)}
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While | ast.AsyncFor)]
    if any(n is node for loop in loops for n in ast.walk(loop)):
        inside = set[int]()
    for other in ast.walk(tree):
        if isinstance(other, ast.If) and all(n is not node for n in ast.walk(other)):
            inside |= {id(n) for side in (other.body, other.orelse) for n in _read_of_own(side)}
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)]
    return {n.id for n in loads if id(n) not in inside}


def _read_of_own(block: Sequence[ast.stmt]) -> Iterable[ast.Name]:
    """The reads of variables that statements of a block have set, in assignments of the block itself."""
    known: set[str] = set()
    for statement in block:
        if not isinstance(statement, ast.Assign) or any(isinstance(n, ast.Lambda) for n in ast.walk(statement)):
            continue
        yield from (n for n in ast.walk(statement.value) if isinstance(n, ast.Name) and n.id in known)
        known |= variables_set([statement])


def _logical(test: ast.expr, name: str) -> ast.expr:
    """A condition whose `and`, `or` and `not` also take tensors, and leave out what Python leaves out."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _expression(f"{CHOICES}.negated({ast.unparse(_logical(test.operand, name))})")
    if not isinstance(test, ast.BoolOp):
        return test
    is_and = isinstance(test.op, ast.And)
    first, *rest = test.values
    found = _logical(first, f"{name}_0")
    for i, value in enumerate(rest):
        one, other = ast.unparse(found), ast.unparse(_logical(value, f"{name}_{i + 1}"))
        ends, joined = ("is_false", "both") if is_and else ("is_true", "either")
        found = _expression(f"{name} if {CHOICES}.{ends}({name} := {one}) else {CHOICES}.{joined}({name}, {other})")
    return found


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


__all__ = ["choice", "condition_at", "reads_after"]
