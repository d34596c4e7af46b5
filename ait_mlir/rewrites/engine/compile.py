"""Compiles `pdl.pattern` IR to one Python matcher for each class of root operation.

Patterns with the same root class become one tree of conditions: common prefixes are tested once, and siblings that
compare one thing with different constants become a dictionary lookup. Every pattern has a rank: benefit first, then
declaration. The matcher returns the matching pattern of lowest rank: it visits children by the best rank below them and
skips those that cannot beat the match found so far. The steps after a choice between alternatives, or after a loop, are
a function that each alternative calls, so that the source contains them once. Nothing from IR becomes source text; see
`steps.Constants`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import pdl
from xdsl.ir import Operation

from ait_mlir.rewrites.engine.actions import lower_action
from ait_mlir.rewrites.engine.driver import Match, Matcher
from ait_mlir.rewrites.engine.lower import lower
from ait_mlir.rewrites.engine.steps import (
    IDENTIFIER,
    AnyStep,
    Choice,
    Constants,
    Loop,
    PatternSteps,
    Step,
    Universe,
    attr,
    same_values,
)

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
    roots: dict[str, frozenset[str]]
    """The names of the ops that are roots of the patterns of a name."""


def compile_patterns(patterns: Iterable[pdl.PatternOp], universe: Universe) -> CompiledPatterns:
    """Matchers and actions for patterns; PatternError points at the PDL operation that is wrong."""
    ordered = sorted(patterns, key=lambda p: -p.benefit.value.data)
    constants = Constants()
    generator = _Generator(constants)
    by_class: dict[type[Operation], list[int]] = {}
    roots: dict[str, frozenset[str]] = {}
    for rank, pattern in enumerate(ordered):
        steps = lower(pattern, universe, constants)
        action, arguments = lower_action(f"act{rank}", pattern, steps, universe, constants)
        generator.add(steps, action, arguments)
        roots[steps.name] = roots.get(steps.name, frozenset()) | {cls.name for cls in steps.roots}
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
    return CompiledPatterns(dispatch, tuple(p.name for p in generator.patterns), generator.source(), roots)


@dataclass
class _Node:
    """A node of the tree: the patterns that are complete here, and the possible next steps."""

    ranks: list[int] = field(default_factory=list[int])
    children: dict[AnyStep, _Node] = field(default_factory=dict[AnyStep, "_Node"])

    best: int = 0

    def settle(self) -> int:
        """Compute `best`, the lowest rank at or below each node, without recursion."""
        order: list[_Node] = [self]
        for node in order:
            order.extend(node.children.values())
        for node in reversed(order):
            node.best = min([*node.ranks, *(child.best for child in node.children.values())])
        return self.best

    def sorted_children(self) -> list[tuple[AnyStep, _Node]]:
        return sorted(self.children.items(), key=lambda item: item[1].best)

    def mentions(self, results: Sequence[str]) -> set[str]:
        """All identifiers in the code of this node and of its descendants."""
        found: set[str] = set()
        order: list[_Node] = [self]
        for node in order:
            order.extend(node.children.values())
            found.update(*(step.mentions() for step in node.children))
            found.update(*(IDENTIFIER.findall(results[rank]) for rank in node.ranks))
        return found


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
                node = node.children.setdefault(step, _Node())
            node.ranks.append(rank)
        tree.settle()
        name, slot = self.reserve()
        self.functions[slot] = _Function(self, name, ("r", "o"), is_root=True).write(tree)
        return name

    def helper(self, node: _Node, names: Sequence[str]) -> _Helper:
        """A branch as a separate function; its parameters are the names bound so far that it mentions."""
        mentioned = node.mentions(self.results)
        wanted = [name for name in dict.fromkeys(names) if name in mentioned]
        name, slot = self.reserve()
        self.functions[slot] = _Function(self, name, ("best", *wanted), is_root=False).write(node)
        return _Helper(name, tuple(wanted), node.best)

    def remainder(self, steps: Sequence[AnyStep], names: Sequence[str], end: _End) -> _Helper:
        """The steps of an alternative after a choice or loop in it, as a separate function."""
        mentioned = set[str]().union(*(step.mentions() for step in steps), IDENTIFIER.findall(" ".join(end.arguments)))
        wanted = [name for name in dict.fromkeys(names) if name in mentioned]
        name, slot = self.reserve()
        self.functions[slot] = _Function(self, name, ("best", *wanted), is_root=False).write_alternative(steps, end)
        return _Helper(name, tuple(wanted), end.helper.best)

    def reserve(self) -> tuple[str, int]:
        """A name for a function, and its index in the source."""
        self.functions.append("")
        return f"match{len(self.functions) - 1}", len(self.functions) - 1

    def source(self) -> str:
        return "\n".join([*self.actions, *self.functions])

    def load(self) -> dict[str, Any]:
        """Run the source; the namespace holds the matchers."""
        namespace: dict[str, Any] = {"attr": attr, "same_values": same_values, **self.constants.namespace}
        code = compile(self.source(), "<patterns>", "exec")
        exec(code, namespace)
        for rank, steps in enumerate(self.patterns):
            action: Callable[..., None] = namespace[f"act{rank}"]
            namespace[f"M{rank}"] = Match(steps.name, action)
        return namespace


@dataclass(frozen=True)
class _Helper:
    """A function with some bound names of its caller as parameters; `best` is the lowest rank that it can find."""

    name: str
    parameters: tuple[str, ...]
    best: int


@dataclass(frozen=True)
class _End:
    """The function that all alternatives of a choice call, and the arguments for it."""

    helper: _Helper
    arguments: tuple[str, ...]


class _Function:
    """Writes one function for a tree: (best, names...) -> a match of lower rank than `best`, or None."""

    def __init__(self, generator: _Generator, name: str, parameters: Sequence[str], is_root: bool) -> None:
        self.generator = generator
        self.name = name
        self.parameters = parameters
        self.is_root = is_root
        self.lines: list[str] = []

    def write(self, tree: _Node) -> str:
        names = [p for p in self.parameters if p != "best"]
        # A matcher starts without a match; a helper starts from its caller's `best`.
        self.node(tree, names, 1, NEVER, guarded=not self.is_root)
        header = [f"def {self.name}({', '.join(self.parameters)}):", "    found = None"]
        if self.is_root:
            header.append(f"    best = {NEVER}")
        return "\n".join([*header, *self.lines, "    return found", ""])

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def node(self, node: _Node, names: list[str], depth: int, rival: int, guarded: bool) -> None:
        """Write a node's code. `rival` is the best rank visited after it; `guarded`: an earlier match is possible."""
        children = node.sorted_children()
        if node.ranks:
            rank = min(node.ranks)
            children = [(step, child) for step, child in children if child.best < rank]
        groups = self.switches(children)
        best_of_groups = [min(child.best for _, child in group) for group in groups]
        for position, group in enumerate(groups):
            later = min([rival, *best_of_groups[position + 1 :], *(node.ranks or [NEVER])])
            if not isinstance(group[0][0], Step):
                self.fork(*group[0], names, depth)
            elif len(group) >= SWITCH_AT:
                self.switch(group, names, depth, guarded)
            else:
                for index, (step, child) in enumerate(group):
                    assert isinstance(step, Step)
                    after = min([later, *(c.best for _, c in group[index + 1 :])])
                    self.branch(step, child, names, depth, after, guarded)
                    guarded = True
            guarded = True
        if node.ranks:
            self.leaf(min(node.ranks), depth, rival, guarded)

    def switches(self, children: Sequence[tuple[AnyStep, _Node]]) -> list[list[tuple[AnyStep, _Node]]]:
        """Children in groups by best rank: many children with one subject form a group, each other child its own."""
        by_subject: dict[Hashable, list[tuple[AnyStep, _Node]]] = {}
        for step, child in children:
            subject = (step.subject or step) if isinstance(step, Step) else step
            by_subject.setdefault(subject, []).append((step, child))
        groups: list[list[tuple[AnyStep, _Node]]] = []
        for group in by_subject.values():
            groups += [group] if len(group) >= SWITCH_AT else [[item] for item in group]
        return sorted(groups, key=lambda group: min(child.best for _, child in group))

    def branch(self, step: Step, child: _Node, names: list[str], depth: int, rival: int, guarded: bool) -> None:
        """Write `if CONDITION and ...:` for a chain of nodes with one child each, then the code of its end."""
        conditions = [f"best > {child.best}"] if guarded else []
        conditions.append(step.condition)
        names = names + step.names()
        while not child.ranks and len(child.children) == 1:
            ((following, after),) = child.children.items()
            if not isinstance(following, Step):
                break
            conditions.append(following.condition)
            names, child = names + following.names(), after
        self.put(depth, f"if {' and '.join(conditions)}:")
        if depth >= NEST_AT:
            self.call(self.generator.helper(child, names), depth + 1)
        else:
            # The conditions have checked that no match so far has a lower rank than the best below.
            self.node(child, names, depth + 1, rival, guarded=False)

    def switch(self, group: Sequence[tuple[AnyStep, _Node]], names: list[str], depth: int, guarded: bool) -> None:
        """Write one dictionary lookup for siblings that compare a subject with constants."""
        cases = [(step, self.generator.helper(child, names)) for step, child in group if isinstance(step, Step)]
        table = f"S{len(self.generator.functions)}"
        # All cases take the same arguments.
        wanted = tuple(name for name in dict.fromkeys(names) if any(name in case.parameters for _, case in cases))
        parameters = ", ".join(["best", *wanted])
        entries = [
            f"{step.constant}: lambda {parameters}: {case.name}({', '.join(['best', *case.parameters])})"
            for step, case in cases
        ]
        self.generator.functions.append(f"{table} = {{{', '.join(entries)}}}\n")
        best = min(child.best for _, child in group)
        guard = f"best > {best} and " if guarded else ""
        self.put(depth, f"if {guard}(case := {table}.get({cases[0][0].subject})) is not None:")
        self.call(_Helper("case", wanted, best), depth + 1)

    # ---- choices and loops

    def fork(self, step: AnyStep, child: _Node, names: list[str], depth: int) -> None:
        """Write a choice or a loop that calls a helper for the steps after it."""
        helper = self.generator.helper(child, [*names, *step.names()])
        self.enter(step, names, depth, _End(helper, helper.parameters))

    def enter(self, step: AnyStep, names: list[str], depth: int, end: _End) -> None:
        """Write a choice or a loop that continues at `end`, unless a better match was found already."""
        best = end.helper.best
        if isinstance(step, Loop):
            self.put(depth, f"for {step.name} in {step.candidates}:")
            self.put(depth + 1, f"if best <= {best}: break")
            self.call(end.helper, depth + 1, end.arguments)
            return
        assert isinstance(step, Choice)
        for alternative in step.alternatives:
            exports = dict(zip(step.exported, alternative.exports, strict=True))
            # An argument of `end` is an expression over names; an alternative binds some of these names.
            arguments = tuple(exports.get(argument, argument) for argument in end.arguments)
            self.alternative(alternative.steps, names, depth, _End(end.helper, arguments))

    def alternative(self, steps: Sequence[AnyStep], names: list[str], depth: int, end: _End) -> None:
        """Write the steps of an alternative, then the call of `end`."""
        conditions = [f"best > {end.helper.best}"]
        for position, step in enumerate(steps):
            if not isinstance(step, Step):
                self.put(depth, f"if {' and '.join(conditions)}:")
                rest = self.generator.remainder(steps[position + 1 :], [*names, *step.names()], end)
                self.enter(step, names, depth + 1, _End(rest, rest.parameters))
                return
            conditions.append(step.condition)
            names = names + step.names()
        self.put(depth, f"if {' and '.join(conditions)}:")
        self.call(end.helper, depth + 1, end.arguments)

    def write_alternative(self, steps: Sequence[AnyStep], end: _End) -> str:
        """The source of a function that continues an alternative."""
        self.alternative(steps, [p for p in self.parameters if p != "best"], 1, end)
        header = [f"def {self.name}({', '.join(self.parameters)}):", "    found = None"]
        return "\n".join([*header, *self.lines, "    return found", ""])

    def call(self, helper: _Helper, depth: int, arguments: Sequence[str] | None = None) -> None:
        given = helper.parameters if arguments is None else arguments
        self.put(depth, f"other = {helper.name}({', '.join(['best', *given])})")
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
