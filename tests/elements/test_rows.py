"""Every row of the table of elements beside the op's reference: each form of each op, as loops."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import f16

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.elements import ROWS, NoElements
from tests.elements.support import as_loops, assert_same
from tests.specs import ROWS as SPECS
from tests.specs.spec import Form, Spec

REFUSED = {
    "pool-max-places": "the place of the last NaN",
}
"""Forms that stay as they are, and why."""

CASES = {
    spec.name(form, t): (spec, form, t)
    for spec in SPECS
    if f"ait.{spec.op}" in ROWS
    for form in spec.forms
    for t in spec.types_of(form)
}


def first_output(text: str) -> str:
    """The text with its first output alone: further ones may have other shapes."""
    first, *others = re.findall(r"^  ait\.output .*\n", text, re.MULTILINE)
    for line in others:
        text = text.replace(line, "")
    return text


@pytest.mark.parametrize("name", CASES)
def test_elements_are_those_of_the_op(name: str) -> None:
    spec, form, t = CASES[name]
    case = spec.case(form, t, few=True)
    text = first_output(case.text)
    try:
        module, loops = as_loops(text)
    except NoElements as error:
        pytest.fail(f"{name}: {error}")
    assert isinstance(loops, LoopsOp)
    for seed, env in enumerate(case.envs):
        dims = {n: env[n] for n in re.findall(r"\w+", " ".join(env)) if n in env}
        assert_same(text, module, dims, seed, special=spec.special is not None)
