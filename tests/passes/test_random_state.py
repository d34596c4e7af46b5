"""Random graphs whose inputs are donated to some value of their type: nothing that is written in place is read later."""

from __future__ import annotations

import random
import re

import pytest

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from tests.generator import random_graph

_GRAPH = re.compile(
    r"(?P<head>ait\.graph @\w+\()(?P<inputs>.*?)(?P<dims>\) dims \{.*?\} \{\n)(?P<body>.*)\}\n", re.DOTALL
)
_INPUT = re.compile(r"(%\w+): (!ait\.tensor<[^>]*>)")
_VALUE = re.compile(r"^ +(%\w+) = ait\.(?!constant|param)\S+ .* : (!ait\.tensor<[^>]*>)$", re.MULTILINE)


def with_state(text: str, rng: random.Random) -> str:
    """The graph with outputs in place of most of its inputs: values of their types, other inputs among them."""
    match = _GRAPH.fullmatch(text)
    assert match is not None, text
    inputs = _INPUT.findall(match["inputs"])
    values = [*_VALUE.findall(match["body"]), *inputs]
    arguments, outputs = [], []
    for name, type_ in inputs:
        donated = rng.random() < 0.9
        arguments.append(f"{name}: {type_}{' donated' if donated else ''}")
        if donated:
            value = rng.choice([v for v, t in values if t == type_])
            outputs.append(f'  ait.output "state {name[1:]}" {value} in place of {name} or copy : {type_}\n')
    return f"{match['head']}{', '.join(arguments)}{match['dims']}{match['body']}{''.join(outputs)}}}\n"


@pytest.mark.parametrize("seed", range(12))
def test_state_is_written_after_it_is_read(seed: int) -> None:
    module = parse_text(context(), with_state(random_graph(seed), random.Random(seed)))
    module.verify()
    checker = SemanticsChecker(module, budget=10**6)
    for step in parse_passes(passes_between("imported", "planned", "cpu", "native")):
        step.apply(context(), module)
        module.verify()
        assert not checker.after(step.name, module)
