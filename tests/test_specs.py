"""No op is forgotten: each has a specification, and whoever draws cases from these reaches it or says why not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.data import ConstantOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.syntax import Word
from ait_mlir.dialects.ait.traits import ScalarLike, ViewLike
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.lowering.kernels import PROVIDERS, Target, kernels_for
from ait_mlir.tools.op_examples import EXAMPLES, NAMES, NO_KERNEL, examples
from ait_mlir.tools.operators import operator_row, operator_table
from tests.codegen.corpus import models
from tests.frontend.documented import ROWS as CALLS
from tests.frontend.documented.row import Row
from tests.frontend.support import graph_of
from tests.generator import SPECIFIED, random_graph
from tests.kernels.harness import Case
from tests.specs import ROWS, SPECS, keys_of
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
    missing = ops - set(SPECS) - set(NO_KERNEL) - {"loops"}  # tests/kernels/loops.py has their cases
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


def test_the_samples_of_cuda_and_hip_have_every_op_and_together_every_form_but_of_functions() -> None:
    cuda, rocm, both = sampled("cuda"), sampled("rocm"), sampled("cuda", "rocm")
    for op, spec in SPECS.items():
        for consumer, found in (("cuda", cuda), ("rocm", rocm)):
            assert bool(found[op][0]) == (consumer not in spec.without) or spec.is_function, f"ait.{op} on {consumer}"
        if "cuda" not in spec.without and "rocm" not in spec.without:
            forms = {form.name for row in ROWS if row.op == op for form in row.forms}
            assert both[op][0] == forms or spec.is_function, f"ait.{op}"


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


@pytest.mark.parametrize("consumer", ["cpu", "cuda", "rocm"])
def test_the_table_of_operators_has_every_type_and_provider_of_the_specifications(consumer: Consumer) -> None:
    """No form of an op finds a kernel that the example of `ait inspect --ops` misses, and no op is without an example."""
    for spec in ROWS:
        if spec.op in NO_KERNEL:
            continue
        row = operator_row(spec.op)[consumer]
        for form, t in spec.keys(consumer):
            if t in row["dtypes"] and t != "f16":  # all forms of one type find all providers
                continue
            found = {kernel.provider for kernel in kernels_for(spec.case(form, t).op, TARGETS[consumer])}
            assert not found or t in row["dtypes"], f"ait.{spec.op}: no example of type {t}, as in {form.name}"
            assert found <= {*row["providers"]}, f"ait.{spec.op}: no example for the kernels of {form.name}"


def test_the_table_of_operators_has_every_kernel() -> None:
    """A kernel that matches none of the examples is missing in what `ait inspect --ops` prints."""
    rows = {op.name.removeprefix("ait."): op for op in AIT.operations if op.name.removeprefix("ait.") not in NO_KERNEL}
    for kernel in PROVIDERS:
        ops = [name for name, op in rows.items() if issubclass(op, kernel.ops)]
        listed = {
            p for name in ops for target in ("cpu", "cuda", "rocm") for p in operator_row(name)[target]["providers"]
        }
        assert not ops or kernel.provider in listed, f"no example of ait.{', ait.'.join(ops)} has {kernel.provider}"


def main_op(row: Row) -> str:
    """The op that a documented operator is: the first of its graph that computes more than elements, else the first."""
    graph = graph_of(row.outputs(row.tensors()))
    ops = [op for op in graph.block.ops if not isinstance(op, OutputOp | ParamOp | ConstantOp)]
    heavy = [op for op in ops if not isinstance(op, ScalarLike | ViewLike)]
    return (heavy or ops)[0].name.removeprefix("ait.") if ops else "graph"


def test_the_table_of_operators_has_the_names_of_aitemplate() -> None:
    found: dict[str, list[str]] = {}
    for name, row in sorted(CALLS.items()):
        found.setdefault(main_op(row), []).append(name)
    assert {op: names.split() for op, names in NAMES.items()} == found
    assert len(CALLS) == 169 + len(
        {"conv2d_groups"}
    )  # the documented ones, and one that only AITemplate's own tests use


def test_the_table_of_operators_says_why_there_is_no_kernel() -> None:
    made = operator_table()
    assert all(f"ait.{op} " in made for op in (*EXAMPLES, *NO_KERNEL, "exp", "add"))
    assert len(set(re.findall(r"none: (.*?)(?=  |$)", made, re.MULTILINE))) == len(set(NO_KERNEL.values())) + 1


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


WORDS = [
    (name, clause.name)
    for name, op in ((op.name.removeprefix("ait."), op) for op in AIT.operations)
    for clause in getattr(op, "SYNTAX", ())
    if isinstance(clause, Word) and name in EXAMPLES
]


@pytest.mark.parametrize(("name", "word"), WORDS)
def test_an_op_refuses_words_that_are_not_in_its_syntax(name: str, word: str) -> None:
    found = [op for t in ("f16", "i32") for op in examples(name, t)]
    assert found
    for op in found:
        op.properties[word] = StringAttr("aside")
        with pytest.raises(VerifyException, match=f'ait.{name}: unknown {word} "aside"; expected one of '):
            op.verify(verify_nested_ops=False)
