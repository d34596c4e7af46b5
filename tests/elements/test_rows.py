"""Every row of the table of elements beside the op's reference: each form of each op, as loops."""

from __future__ import annotations

import re

import pytest

from ait_mlir.elements import ROWS, NoElements
from ait_mlir.elements.table import CONDITIONS
from tests.elements.support import as_loops, assert_same
from tests.specs import ROWS as SPECS
from tests.specs.spec import Form, Spec
from tests.tiers import pairs, params

REFUSED = {
    ("pool", 1): "the places of the largest elements",
    ("adaptive_pool", 1): "the places of the largest elements",
    ("resize", "nearest-nchw"): "whether the scale counts depends on the sizes of a run",
    ("resize", "scales"): "whether the scale counts depends on the sizes of a run",
    ("resize", "exact-kept"): "no short fraction",
    ("resize", "linear-kept"): "no short fraction",
}
"""Results and forms that stay as they are, by op and position or form, and the error."""

CASES = {
    spec.name(form, t): (spec, form, t)
    for spec in SPECS
    if f"ait.{spec.op}" in ROWS and f"ait.{spec.op}" not in CONDITIONS
    for form in spec.forms
    for t in spec.types_of(form)
}
SAMPLE = [
    spec.name(form, t)
    for spec, _, _ in {id(case[0]): case for case in CASES.values()}.values()
    for types in {spec.types_of(form) for form in spec.forms}
    for form, t in pairs([form for form in spec.forms if spec.types_of(form) == types], types)
]
"""Every form and every type of each op."""
OUTPUT = re.compile(r"^  ait\.output .*\n", re.MULTILINE)


def one_output(text: str, position: int) -> str:
    """The text with one of its outputs: several may have different shapes."""
    for i, line in enumerate(OUTPUT.findall(text)):
        text = text if i == position else text.replace(line, "")
    return text


def refusal(spec: Spec, form: Form, position: int) -> str | None:
    return REFUSED.get((spec.op, position)) or REFUSED.get((spec.op, form.name))


@pytest.mark.parametrize("name", params(CASES, SAMPLE))
def test_elements_are_those_of_the_op(name: str) -> None:
    spec, form, t = CASES[name]
    case = spec.case(form, t, few=True)
    for position in range(len(OUTPUT.findall(case.text))):
        text = one_output(case.text, position)
        if (why := refusal(spec, form, position)) is not None:
            with pytest.raises(NoElements, match=why):
                as_loops(text)
            continue
        module, _ = as_loops(text)
        for seed, env in enumerate(case.envs):
            assert_same(text, module, env, seed)


@pytest.mark.parametrize("name", [n for n, (spec, _, _) in CASES.items() if spec.special is not None])
def test_elements_of_special_values(name: str) -> None:
    spec, form, t = CASES[name]
    text = spec.case(form, t).text
    module, _ = as_loops(text)
    assert spec.special is not None
    assert_same(text, module, spec.special, special=True)
