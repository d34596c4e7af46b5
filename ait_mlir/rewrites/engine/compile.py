"""Compiles `pdl.pattern` IR to one Python matcher for each class of root operation.

Patterns with the same root class become one tree of conditions: common prefixes are tested once, and siblings that
compare one thing with different constants become a dictionary lookup. Every pattern has a rank: benefit first, then
declaration. The matcher returns the matching pattern of lowest rank: it visits children by the best rank below them and
skips those that cannot beat what it found. Nothing from IR becomes source text; see `steps.Constants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import pdl
from xdsl.ir import Operation

from ait_mlir.rewrites.engine.actions import lower_action
from ait_mlir.rewrites.engine.driver import Match, Matcher
from ait_mlir.rewrites.engine.steps import Constants, PatternSteps, Step, Universe, attr, lower

SWITCH_AT = 4
"""Siblings that compare one subject with this many constants become a dictionary lookup."""

NEST_AT = 24
"""Branches nested deeper than this go to a function of their own: Python refuses 100 levels of indentation."""


@dataclass(frozen=True)
class CompiledPatterns:
    """Matchers by class of root operation, the names of the patterns by rank, and the generated source to read."""

    dispatch: dict[type[Operation], Matcher]
    names: tuple[str, ...]
    source: str


def compile_patterns(patterns: Iterable[pdl.PatternOp], universe: Universe) -> CompiledPatterns:
    """Compile patterns; PatternError points at the PDL operation that is wrong."""
    ordered = sorted(patterns, key=lambda p: -p.benefit.value.data)
    constants = Constants()
    generator = _Generator(constants)
    by_class: dict[type[Operation], list[int]] = {}
    for rank, pattern in enumerate(ordered):
        steps = lower(pattern, universe, constants)
        action, arguments = lower_action(f"act{rank}", pattern, steps, universe, constants)
        generator.add(steps, action, arguments)
        for cls in steps.roots:
            by_class.setdefault(cls, []).append(rank)
    # Classes that are roots of the same patterns share one matcher.
    functions: dict[tuple[int, ...], str] = {}
    for ranks in by_class.values():
        key = tuple(ranks)
        if key not in functions:
            functions[key] = generator.matcher(ranks)
    namespace = generator.load()
    dispatch: dict[type[Operation], Matcher] = {
        cls: namespace[functions[tuple(ranks)]] for cls, ranks in by_class.items()
    }
    return CompiledPatterns(dispatch, tuple(p.name for p in generator.patterns), generator.source())


@dataclass
class _Node:
    """A point of the tree: the patterns complete here, and what may be asked next."""

    ranks: list[int] = field(default_factory=list[int])
    children: dict[str, tuple[Step, _Node]] = field(default_factory=dict[str, "tuple[Step, _Node]"])

    best: int = 0

    def settle(self) -> int:
        """Compute `best`, the lowest rank at or below each node, without recursion."""
        order: list[_Node] = [self]
        for node in order:
            order.extend(child for _, child in node.children.values())
        for node in reversed(order):
            node.best = min([*node.ranks, *(child.best for _, child in node.children.values())])
        return self.best

    def sorted_children(self) -> list[tuple[Step, _Node]]:
        return sorted(self.children.values(), key=lambda item: item[1].best)


NEVER = 1 << 60


class _Generator:
    """Collects patterns, then writes one function for each matcher."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.patterns: list[PatternSteps] = []
        self.results: list[str] = []
        self.functions: list[str] = []
        self.actions: list[str] = []

    def add(self, steps: PatternSteps, action: str, arguments: Sequence[str]) -> None:
        rank = len(self.patterns)
        self.patterns.append(steps)
        self.actions.append(action)
        values = "".join(f"{argument}, " for argument in arguments)
        self.results.append(f"({rank}, M{rank}, ({values}))")

    def matcher(self, ranks: Sequence[int]) -> str:
        """Write the matcher of some patterns; returns its name."""
        tree = _Node()
        for rank in ranks:
            node = tree
            for step in self.patterns[rank].steps:
                node = node.children.setdefault(step.condition, (step, _Node()))[1]
            node.ranks.append(rank)
        tree.settle()
        name = f"match{len(self.functions)}"
        self.functions.append("")
        slot = len(self.functions) - 1
        self.functions[slot] = _Function(self, name, ("r", "o"), is_root=True).write(tree)
        return name

    def helper(self, node: _Node, names: Sequence[str]) -> str:
        """A branch as a function of its own over the names bound so far; returns its name."""
        name = f"match{len(self.functions)}"
        self.functions.append("")
        slot = len(self.functions) - 1
        self.functions[slot] = _Function(self, name, ("best", *names), is_root=False).write(node)
        return name

    def source(self) -> str:
        return "\n".join([*self.actions, *self.functions])

    def load(self) -> dict[str, Any]:
        """Run the source; the namespace holds the matchers."""
        namespace: dict[str, Any] = {"attr": attr, **self.constants.namespace}
        code = compile(self.source(), "<patterns>", "exec")
        exec(code, namespace)
        for rank, steps in enumerate(self.patterns):
            action: Callable[..., None] = namespace[f"act{rank}"]
            namespace[f"M{rank}"] = Match(steps.name, action)
        return namespace


class _Function:
    """Writes one function over a tree: (best, names...) -> what beats `best`, or None."""

    def __init__(self, generator: _Generator, name: str, parameters: Sequence[str], is_root: bool) -> None:
        self.generator = generator
        self.name = name
        self.parameters = parameters
        self.is_root = is_root
        self.lines: list[str] = []

    def write(self, tree: _Node) -> str:
        names = [p for p in self.parameters if p != "best"]
        # In the root nothing is found yet; a helper starts from its caller's `best`.
        self.node(tree, names, 1, NEVER, guarded=not self.is_root)
        header = [f"def {self.name}({', '.join(self.parameters)}):", "    found = None"]
        if self.is_root:
            header.append(f"    best = {NEVER}")
        return "\n".join([*header, *self.lines, "    return found", ""])

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def node(self, node: _Node, names: list[str], depth: int, rival: int, guarded: bool) -> None:
        """Code for a node. `rival` is the best rank visited after it; `guarded` says that something may be found
        already."""
        children = node.sorted_children()
        if node.ranks:
            rank = min(node.ranks)
            children = [(step, child) for step, child in children if child.best < rank]
        groups = self.switches(children)
        best_of_groups = [min(child.best for _, child in group) for group in groups]
        for position, group in enumerate(groups):
            later = min([rival, *best_of_groups[position + 1 :], *(node.ranks or [NEVER])])
            if len(group) >= SWITCH_AT:
                self.switch(group, names, depth, guarded)
            else:
                for index, (step, child) in enumerate(group):
                    after = min([later, *(c.best for _, c in group[index + 1 :])])
                    self.branch(step, child, names, depth, after, guarded)
                    guarded = True
            guarded = True
        if node.ranks:
            self.leaf(min(node.ranks), depth, rival, guarded)

    def switches(self, children: Sequence[tuple[Step, _Node]]) -> list[list[tuple[Step, _Node]]]:
        """Children in groups: those of one subject together if they are many, the others alone; by best rank."""
        by_subject: dict[str, list[tuple[Step, _Node]]] = {}
        for step, child in children:
            by_subject.setdefault(step.subject or step.condition, []).append((step, child))
        groups: list[list[tuple[Step, _Node]]] = []
        for group in by_subject.values():
            groups += [group] if len(group) >= SWITCH_AT else [[item] for item in group]
        return sorted(groups, key=lambda group: min(child.best for _, child in group))

    def branch(self, step: Step, child: _Node, names: list[str], depth: int, rival: int, guarded: bool) -> None:
        """`if CONDITION and ...:` as far as there is one way on."""
        conditions = [f"best > {child.best}"] if guarded else []
        conditions.append(step.condition)
        names = names + _bound(step)
        while not child.ranks and len(child.children) == 1:
            ((step, child),) = child.children.values()
            conditions.append(step.condition)
            names = names + _bound(step)
        self.put(depth, f"if {' and '.join(conditions)}:")
        if depth >= NEST_AT:
            self.call(self.generator.helper(child, names), names, depth + 1)
        else:
            # Having come here nothing found so far beats what is first below.
            self.node(child, names, depth + 1, rival, guarded=False)

    def switch(self, group: Sequence[tuple[Step, _Node]], names: list[str], depth: int, guarded: bool) -> None:
        """One lookup for siblings that compare a subject with constants."""
        table = f"S{len(self.generator.functions)}"
        helpers = [(step.constant, self.generator.helper(child, names)) for step, child in group]
        self.generator.functions.append(
            f"{table} = {{{', '.join(f'{constant}: {helper}' for constant, helper in helpers)}}}\n"
        )
        guard = f"best > {min(child.best for _, child in group)} and " if guarded else ""
        self.put(depth, f"if {guard}(case := {table}.get({group[0][0].subject})) is not None:")
        self.call("case", names, depth + 1)

    def call(self, function: str, names: Sequence[str], depth: int) -> None:
        self.put(depth, f"other = {function}({', '.join(['best', *names])})")
        self.put(depth, "if other is not None:")
        self.put(depth + 1, "found = other")
        self.put(depth + 1, "best = other[0]")

    def leaf(self, rank: int, depth: int, rival: int, guarded: bool) -> None:
        result = self.generator.results[rank]
        if guarded:
            self.put(depth, f"if best > {rank}:")
            depth += 1
        if rank < rival:
            self.put(depth, f"return {result}")
        else:
            self.put(depth, f"found = {result}")
            self.put(depth, f"best = {rank}")


def _bound(step: Step) -> list[str]:
    """The name a step binds, if any."""
    head, walrus, _ = step.condition.partition(" := ")
    return [head.removeprefix("(")] if walrus else []
