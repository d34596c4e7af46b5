"""Specifications of ops from which their cases are generated: the text of an op, and the sampled dims and types.

A `Form` is one way to write an op, with the types of its operands `%a, %b, ...`: dims by name, and `T` for the element type
that is sampled, `S` for the type that floats of `T` have in a region. A `Spec` has the forms of an op, the element types,
the dims, and how close a result must be. From these come cases of one op (CPU kernels, emulator, GPU tests), graphs that
hold the forms of an op side by side (code generation), and single ops in random graphs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ait_mlir.dims import Scope
from ait_mlir.lowering.target import Capability
from tests import tiers
from tests.kernels.harness import Case
from tests.specs.tolerance import Tolerance

Env = Mapping[str, int]
Consumer = Literal["cpu", "gpu", "cuda", "rocm", "codegen", "graphs"]
CONSUMERS: tuple[Consumer, ...] = ("cpu", "gpu", "cuda", "rocm", "codegen", "graphs")
"""CPU kernel tests, tests on a card, emulated kernels of CUDA and of HIP, sources for nvcc and hipcc, random graphs."""

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "ui8", "i16", "i32", "i64")
STORED = ("f8E4M3FN", "f8E5M2", "f8E8M0FNU", "i4", "ui4")
"""Types that are only moved and converted."""
WIDE = {"f16": "f32", "bf16": "f32", **dict.fromkeys(STORED[:3], "f32"), "i4": "i8", "ui4": "ui8"}
"""The types of scalars in a region, where they are others."""
_NAME = re.compile(r"%([a-z]\w*)")


@dataclass(frozen=True)
class Form:
    """One way to write an op. A field that is None is the spec's."""

    name: str
    text: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    types: tuple[str, ...] | None = None
    envs: Sequence[Env] | None = None
    few: Sequence[Env] | None = None
    strides: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    offset: int = 0
    constants: tuple[int, ...] = ()
    """The operands that nothing ever writes."""
    below: Mapping[int, int] = field(default_factory=dict[int, int])
    """Of operands that are indices: what all of them are below."""
    offsets: Mapping[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Of operands that are offsets of sequences: the rows there are, and the longest sequence."""
    within: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Operands or results that lie in the buffer of an earlier one, so many elements behind its first."""
    both: bool = False
    """Whether it alone reaches some template, so that `make test` runs it on both emulated targets."""
    without: frozenset[Consumer] = frozenset()
    """Who does not draw this form: it says nothing new there, or it is too large."""

    def typed(self, t: str) -> Form:
        """The form at an element type."""

        def put(text: str) -> str:
            return re.sub(r"\bS\b", WIDE.get(t, t), re.sub(r"\bT\b", t, text))

        return Form(self.name, put(self.text), tuple(map(put, self.operands)), tuple(map(put, self.results)))


def form(name: str, text: str, *operands: str, to: str | Sequence[str] = "", **options: object) -> Form:
    """A form; `to` are the types of the results, one like the first operand unless said."""
    results = (to,) if isinstance(to, str) and to else tuple(to) or operands[:1]
    return Form(name, text, operands, results, **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Spec:
    """An op of the dialect, without `ait.`."""

    op: str
    forms: tuple[Form, ...]
    close: Tolerance
    dims: str
    """The dims of all forms, with bounds."""
    envs: Sequence[Env]
    """The dims at which a kernel runs on a CPU and on a card: of 0, 1, odd and large."""
    few: Sequence[Env]
    """The same on the emulator, which takes a microsecond an access."""
    types: tuple[str, ...] = FLOATS
    special: Env | None = None
    """The dims at which special values go through an elementwise op."""
    without: Mapping[Consumer, str] = field(default_factory=dict[Consumer, str])
    """Who does not draw from this spec, and why."""
    needs: Capability | None = None
    """What an architecture must have for any kernel of the op; sources are compiled for those alone."""

    @property
    def all_types(self) -> tuple[str, ...]:
        """Of any form."""
        return tuple(dict.fromkeys(t for form in self.forms for t in self.types_of(form)))

    @property
    def is_function(self) -> bool:
        """Whether it is an elementwise op of one form: its kernels differ from those of others in one expression."""
        return self.special is not None and len(self.forms) == 1

    def types_of(self, form: Form) -> tuple[str, ...]:
        return self.types if form.types is None else form.types

    def forms_of(self, consumer: Consumer) -> list[Form]:
        return [] if consumer in self.without else [f for f in self.forms if consumer not in f.without]

    def keys(self, consumer: Consumer) -> list[tuple[Form, str]]:
        """Every form at every element type."""
        return [(f, t) for f in self.forms_of(consumer) for t in self.types_of(f)]

    def sample(self, consumer: Consumer, turn: int = 0) -> list[tuple[Form, str]]:
        """Some of `keys`: every form and every element type."""
        by_types: dict[tuple[str, ...], dict[str, Form]] = {}
        for f in self.forms_of(consumer):
            by_types.setdefault(self.types_of(f), {})[f.name] = f
        groups = by_types.items()
        return [(forms[name], t) for types, forms in groups for name, t in tiers.pairs(list(forms), types, turn)]

    def name(self, form: Form, t: str) -> str:
        return "-".join(part for part in (self.op, form.name, t) if part)

    def case(self, form: Form, t: str, few: bool = False) -> Case:
        """The op alone, at the dims of a consumer."""
        if few:
            envs = next(e for e in (form.few, self.few) if e is not None)
        else:
            envs = next(e for e in (form.envs, self.envs) if e is not None)
        text = self.graph([(form, t)])
        return Case(
            text,
            list(envs),
            form.strides,
            form.offset,
            constants=form.constants,
            below=form.below,
            offsets=form.offsets,
            within=form.within,
        )

    def find(self, name: str) -> Form:
        """A form by its name."""
        return next(f for f in self.forms if f.name == name)

    def drawn(self, name: str, t: str) -> Case:
        """The case of a form by its name: a new one, for a library of its own."""
        return self.case(self.find(name), t)

    def graph(self, forms: Sequence[tuple[Form, str]], bound: bool = False) -> str:
        """The text of a graph that holds some forms side by side, each on inputs of its own.

        `bound`: with an input that has every dim, as a program needs one.
        """
        inputs: list[str] = []
        lines: list[str] = []
        for i, (found, t) in enumerate(forms):
            typed = found.typed(t)
            inputs += [f"%{c}{i}: !ait.tensor<{x}>" for c, x in zip("abcdefghij", typed.operands, strict=False)]
            results = [f"%{c}{i}" for c in "rstuvwx"[: len(typed.results)]]
            types = [f"!ait.tensor<{x}>" for x in typed.results]
            text = _NAME.sub(lambda m, i=i: f"%{m[1]}{i}", typed.text)
            lines.append(f"  {', '.join(results)} = ait.{text} : {', '.join(types)}")
            lines += [f'  ait.output "{r[1:]}" {r} : {x}' for r, x in zip(results, types, strict=True)]
        body = "\n".join(lines)
        used = set(re.findall(r"\w+", " ".join((*inputs, body))))
        for dim in reversed(Scope.parse(self.dims).dims):
            used |= set(re.findall(r"\w+", str(dim))) if dim.name in used else set()
        dims = [d for d in Scope.parse(self.dims).dims if d.name in used]
        if bound and (sizes := [d.name for d in dims if not d.is_given]):
            inputs.append(f"%dims: !ait.tensor<{' x '.join(sizes)} x i8>")
        ranges = ", ".join(map(str, dims))
        return f"ait.graph @g({', '.join(inputs)}) dims {{{ranges}}} {{\n{body}\n}}"
