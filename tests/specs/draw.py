"""Cases drawn from the specifications for one consumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tests.kernels.harness import Case
from tests.specs import FAMILIES
from tests.specs.spec import CONSUMERS, Consumer, Form, Spec

EACH = 8
"""One of so many elementwise functions is in the sample of an emulated target."""


@dataclass(frozen=True)
class Drawn:
    """A form of an op at an element type."""

    spec: Spec
    form: Form
    type: str
    few: bool

    @cached_property
    def case(self) -> Case:
        return self.spec.case(self.form, self.type, self.few)


def draw(consumer: Consumer, families: Iterable[str] = FAMILIES) -> dict[str, Drawn]:
    """Every form of every op at every element type, by name, for `make test-full`."""
    return {name: drawn for family in families for name, drawn in _drawn(consumer, family).items()}


@cache
def _drawn(consumer: Consumer, family: str) -> dict[str, Drawn]:
    """The cases of a family; several files draw the same, and a case is parsed once."""
    few = consumer in ("cuda", "rocm")
    keys = [(spec, form, t) for spec in FAMILIES[family] for form, t in spec.keys(consumer)]
    return {spec.name(form, t): Drawn(spec, form, t, few) for spec, form, t in keys}


def sample(consumer: Consumer, families: Iterable[str] = FAMILIES) -> set[str]:
    """The names of the sample, which each consumer draws in another way.

    It has every form and every element type of every op. Emulated kernels cost the compiler half a second each, and those of
    CUDA and HIP have one source: of an op of several forms, each target has half of them. Elementwise functions are one
    template, and what computes an element is one function of C++ for CPU and GPU, which the CPU tests call for every op: each
    target has an eighth of them.
    """
    turn = CONSUMERS.index(consumer)
    if consumer in ("cuda", "rocm"):
        return {name for family in families for name in _in_turn(consumer, family, turn)}
    return {
        spec.name(form, t)
        for family in families
        for spec in FAMILIES[family]
        for form, t in spec.sample(consumer, turn)
    }


def _in_turn(consumer: Consumer, family: str, turn: int) -> Iterator[str]:
    """Half of the forms of each op, or an eighth of the functions, with the element types in turn."""
    half = int(consumer == "rocm")
    functions = [spec for spec in FAMILIES[family] if spec.is_function]
    elsewhere = [spec.op for i, spec in enumerate(functions) if i % EACH != half * EACH // 2]
    for spec in FAMILIES[family]:
        forms = [] if spec.op in elsewhere else spec.forms_of(consumer)
        for form in [f for i, f in enumerate(forms) if i % 2 == half or f.both or len(forms) == 1]:
            types = spec.types_of(form)
            yield spec.name(form, types[turn % len(types)])
            turn += 1
