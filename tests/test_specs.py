"""No op is forgotten: each has a specification, and whoever draws cases from these reaches it or says why not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.tools.operators import operator_table
from ait_mlir.tools.operators import operators as operator_rows
from tests.codegen.corpus import models
from tests.frontend.documented import ROWS as CALLS
from tests.generator import SPECIFIED, random_graph
from tests.kernels.harness import Case
from tests.specs import NO_KERNEL, ROWS, SPECS, keys_of, operators
from tests.specs.draw import draw, sample
from tests.specs.spec import CONSUMERS, Consumer

TARGETS: dict[Consumer, Target] = {
    "cpu": Target("cpu", "native"),
    "gpu": Target("cuda", "sm_90a"),
    "cuda": Target("cuda", "sm_90a"),
    "rocm": Target("rocm", "gfx90a"),
}


def test_every_op_has_a_specification() -> None:
    ops = {op.name.removeprefix("ait.") for op in AIT.operations}
    missing = ops - set(SPECS) - set(NO_KERNEL)
    assert not missing, f"no row in tests/specs for {', '.join(f'ait.{op}' for op in sorted(missing))}"
    unknown = (set(SPECS) | set(NO_KERNEL)) - ops
    assert not unknown, f"tests/specs has rows for ops that are not there: {', '.join(sorted(unknown))}"


def test_forms_have_names_of_their_own() -> None:
    for spec in ROWS:
        names = [form.name for form in spec.forms]
        assert len(set(names)) == len(names), f"ait.{spec.op}: {names}"


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_each_op_is_drawn_or_there_is_a_reason(consumer: Consumer) -> None:
    for spec in ROWS:
        reason = spec.without.get(consumer)
        if reason is None:
            assert spec.keys(consumer), f"{consumer} draws no form of ait.{spec.op}, and no reason is given"
        else:
            assert len(reason.split()) >= 3, f"why does {consumer} not draw ait.{spec.op}? {reason!r}"


def sampled(*consumers: Consumer) -> dict[str, tuple[set[str], set[str]]]:
    """The forms and the element types of each op in the samples of some consumers."""
    found: dict[str, tuple[set[str], set[str]]] = {op: (set(), set()) for op in SPECS}
    for consumer in consumers:
        drawn = draw(consumer)
        for name in sample(consumer):
            forms, types = found[drawn[name].spec.op]
            forms.add(drawn[name].form.name)
            types.add(drawn[name].type)
    return found


@pytest.mark.parametrize("consumer", ["cpu", "codegen"])
def test_the_sample_has_every_form_and_type(consumer: Consumer) -> None:
    found = sampled(consumer)
    for op in SPECS:
        keys = keys_of(op, consumer)
        assert found[op] == ({form for form, _ in keys}, {t for _, t in keys}), f"ait.{op}"


def test_the_samples_of_cuda_and_hip_have_every_op_but_functions_and_together_every_form() -> None:
    cuda, rocm, both = sampled("cuda"), sampled("rocm"), sampled("cuda", "rocm")
    for op, spec in SPECS.items():
        for consumer, found in (("cuda", cuda), ("rocm", rocm)):
            assert bool(found[op][0]) == (consumer not in spec.without) or spec.is_function, f"ait.{op} on {consumer}"
        if "cuda" not in spec.without and "rocm" not in spec.without:
            forms = {form.name for row in ROWS if row.op == op for form in row.forms}
            assert both[op][0] == forms, f"ait.{op}"


@pytest.mark.parametrize("consumer", TARGETS)
def test_each_form_has_a_kernel(consumer: Consumer) -> None:
    """In one element type of each form: a target without a kernel needs a reason in the specification."""
    target = TARGETS[consumer]
    drawn = draw(consumer)
    for name in sorted(sample(consumer)):
        op = drawn[name].case.op
        kernels = [kernel.provider for kernel in kernels_for(op, target)]
        assert "native" in kernels, f"{name}: no native kernel for {op.name} on {target.kind}, but {kernels}"


def ops_in(texts: list[str]) -> set[str]:
    return {op for text in texts for op in re.findall(r"= ait\.(\w+)", text)}


def test_sources_are_compiled_for_every_op() -> None:
    missing = {op for op, spec in SPECS.items() if "codegen" not in spec.without} - ops_in(
        [text for _, text in models(full=False)]
    )
    assert not missing, f"no source for nvcc and hipcc has ait.{', ait.'.join(sorted(missing))}"


def test_random_graphs_have_every_op() -> None:
    missing = {op for op, spec in SPECS.items() if "graphs" not in spec.without} - ops_in(
        [random_graph(seed) for seed in range(len(SPECIFIED))]
    )
    assert not missing, f"no random graph has ait.{', ait.'.join(sorted(missing))}"


def test_the_table_of_operators_is_what_the_code_says() -> None:
    assert operators.PATH.read_text() == operators.text(), "old: python -m tests.specs.operators writes it again"


def test_the_table_of_operators_has_every_name_and_no_gap_without_a_reason() -> None:
    made = operator_table()
    assert sum(len(found["names"]) for found in operator_rows().values()) == len(CALLS)
    assert len(CALLS) == 169 + len(
        {"conv2d_groups"}
    )  # the documented ones, and one that only AITemplate's own tests use
    assert "none: " in made and len(set(re.findall(r"none: (.*?)(?=  |$)", made, re.MULTILINE))) <= 10


def test_a_case_with_no_larger_dims_than_it_runs() -> None:
    """Dims keep their lower bound and two values at least; those that an op binds keep theirs."""
    tensors = "%x: !ait.tensor<b x s x f32>, %m: !ait.tensor<b x s x i1>"
    text = (
        f"ait.graph @g({tensors}) dims {{b = 0 to 64, s = 3 to 10, n = 0 to b*s bound}} {{\n"
        "  %y, %n = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>\n"
        '  ait.output "y" %y : !ait.tensor<n x f32>\n}'
    )
    case = Case(text, [{"b": 0, "s": 7, "n": 0}, {"b": 5, "s": 3, "n": 15}])
    assert str(scope_of(case.no_larger().op)) == "b = 0 to 5, s = 3 to 7, n = 0 to b*s bound"
    one = replace(case, envs=[{"b": 0, "s": 3, "n": 0}]).no_larger()
    assert str(scope_of(one.op)) == "b = 0 to 1, s = 3 to 4, n = 0 to b*s bound"
    assert str(scope_of(replace(case, envs=[{"b": 64, "s": 99}]).no_larger().op)) == str(scope_of(case.op))
