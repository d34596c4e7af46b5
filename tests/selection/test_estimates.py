"""Estimates that are fitted to a card: the fit, the tables, and what selection does with them."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from ait_mlir.driver import run_to_phase
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering import estimates
from ait_mlir.lowering.candidates import Candidate, candidates_of, estimate
from ait_mlir.lowering.estimates import Fit, Table, Terms, fit_name, read_table, table_for, write_table
from ait_mlir.lowering.kernels import Target, contraction, kernels_for
from ait_mlir.options import CompileOptions
from ait_mlir.selection.estimated import choice_by_estimate
from ait_mlir.selection.ranges import axis_for
from ait_mlir.selection.shortlist import best_by_estimate
from benchmarks import calibrate, regret
from benchmarks.fit import Sample, fit, samples_of
from benchmarks.problems import FAMILIES, Problem, draw
from tests.selection.cards import tasks_of

H200 = Target("cuda", "sm_90a")
SETTING = {"card": "a card", "driver": "1", "cuda": "13", "libraries": ""}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with coefficients of 1, except for some kernels."""

    def make(arch: str = "sm_90a", **fits: dict[str, float]) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        found = {name.replace("_", " "): Fit(c, 0.1, 10) for name, c in fits.items()}
        write_table(path, Table(arch, "a card", found), SETTING, "the command")
        monkeypatch.setenv("AIT_ESTIMATES", str(path))
        return path

    return make


def product(m: int, n: int = 1024, k: int = 1024, dtype: str = "f16"):
    family = "gemm_f32" if dtype == "f32" else "gemm"
    return Problem.of(family, dtype, {"m": m, "n": n, "k": k}).task().op


# ** the fit **


def test_a_fit_recovers_planted_coefficients():
    planted = {"start": 1.9, "exchange": 0.4, "products": 0.8, "memory": 1.6}
    rng = np.random.default_rng(0)
    samples: list[Sample] = []
    for _ in range(300):
        size = np.exp(rng.uniform(-2, 6, 2)) * 1e-6
        terms = Terms(
            {"start": 1e-6, "exchange": float(rng.integers(0, 3)) * 1e-6}, {"products": size[0], "memory": size[1]}
        )
        noise = math.exp(rng.normal(0, 0.02))
        samples.append(Sample(terms, Fit(planted).seconds(terms) * noise))
    found = fit(samples)
    for name, value in planted.items():
        assert found.coefficients[name] == pytest.approx(value, rel=0.05), name
    assert found.samples == 300 and 0.01 < found.error < 0.03


def test_a_term_without_samples_stays_at_its_rough_rate():
    samples = [Sample(Terms({"start": 1e-6, "never": 0.0}, {"memory": i * 1e-6}), (2 + i) * 1e-6) for i in range(20)]
    found = fit(samples).coefficients
    assert found["never"] == pytest.approx(1.0, rel=0.01) and found["start"] == pytest.approx(2.0, rel=0.1)


def test_slow_candidates_count_less():
    """Times near the best of a problem decide, because only they can be chosen."""
    near = [Sample(Terms({}, {"memory": i * 1e-6}), i * 1e-6, 1.0) for i in range(1, 20)]
    far = [Sample(Terms({}, {"memory": i * 1e-6}), i * 2e-6, 0.1) for i in range(1, 20)]
    assert fit(near + far).coefficients["memory"] == pytest.approx(1.0, rel=0.05)


# ** the terms of the kernels **


def test_every_kernel_with_a_choice_has_terms():
    """Where estimates choose between kernels, all of them have terms, which are finite and not negative."""
    for problem in draw(3, 60):
        op = problem.task().op
        kernels = [k for k in kernels_for(op, H200) if not k.only_timed]
        for kernel in kernels if len(kernels) > 1 else []:
            for config in kernel.every_config(op, H200):
                terms = kernel.terms(op, config, H200)
                assert terms is not None, (problem.title, kernel.provider)
                values = [*terms.first.values(), *terms.work.values()]
                assert all(math.isfinite(v) and v >= 0 for v in values), (problem.title, kernel.provider, terms)
                assert Fit({}).seconds(terms) > 0


@pytest.mark.parametrize("grows", ["m", "n", "k"])
def test_estimates_of_a_configuration_grow_with_the_sizes(grows):
    sizes = {"m": 64, "n": 256, "k": 256}
    before: dict[tuple[str, str], float] = {}
    for _ in range(5):
        op = Problem.of("gemm", "f16", sizes).task().op
        for kernel in kernels_for(op, H200):
            configs = kernel.every_config(op, H200) if kernel.provider != "native" else kernel.configs(op, H200)
            for config in configs:
                if (terms := kernel.terms(op, config, H200)) is not None:
                    seconds, key = Fit({}).seconds(terms), (kernel.provider, json.dumps(config, sort_keys=True))
                    assert seconds >= 0.999 * before.get(key, 0.0), key
                    before[key] = seconds
        sizes[grows] *= 4
    assert {provider for provider, _ in before} == {"native", "hopper", "cublaslt"}


def test_empty_sizes_have_estimates():
    text = """
    ait.graph @g(%x: !ait.tensor<0 x 64 x f16>) {
      %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
      %0 = ait.gemm rcr %x, %w : !ait.tensor<0 x 64 x f16>
      ait.output "y" %0 : !ait.tensor<0 x 64 x f16>
    }
    """
    module = parse_text(context(), text)
    (op,) = (op for op in module.walk() if op.name == "ait.gemm")
    for kernel in kernels_for(op, H200):
        for config in kernel.every_config(op, H200):
            assert (terms := kernel.terms(op, config, H200)) is None or math.isfinite(Fit({}).seconds(terms))


# ** what selection does **


def test_the_choice_follows_the_table(table):
    op = product(512)
    cheap, dear = {"start": 0.01, "products": 0.01, "waves": 0.01}, {"start": 30.0}
    names = ("hopper gemm", "native gemm", "cublaslt gemm")
    for wanted in names:
        table(**{name.replace(" ", "_"): cheap if name == wanted else dear for name in names})
        chosen = best_by_estimate(list(candidates_of(op, H200)))
        assert (chosen.kernels[0][0], len(chosen.kernels)) == (wanted.split()[0], 1)
        assert chosen.seconds == pytest.approx(estimate(op, chosen, H200))


def test_configurations_come_in_the_order_of_the_table(table):
    op = product(512)
    table(hopper_gemm={})
    found = [f for f in candidates_of(op, H200, 40) if f.kernels[0][0] == "hopper" and f.cut is None]
    (kernel,) = (k for k in kernels_for(op, H200) if k.provider == "hopper")
    assert len(found) == len(kernel.every_config(op, H200)) > len(kernel.configs(op, H200))
    assert [f.seconds for f in found] == sorted(f.seconds for f in found)


def test_a_launch_that_cannot_overlap_is_charged(table):
    op = product(512)
    table(cublaslt_gemm={"start": 5.0})
    (kernel,) = (k for k in kernels_for(op, H200) if k.provider == "cublaslt")
    assert kernel.alone
    terms = kernel.terms(op, {}, H200)
    assert terms is not None
    assert kernel.estimate(op, {}, H200) == pytest.approx(
        estimates.in_a_model(Fit({"start": 5.0}).seconds(terms), True)
    )


def kernel_of(family: str, **sizes: int) -> str:
    """The kernel for a problem of f16 by the package's estimates for an H200."""
    return best_by_estimate(list(candidates_of(Problem.of(family, "f16", sizes).task().op, H200, 9))).describe()


def test_k_is_split_into_whole_steps():
    """A step is 64 of K."""
    for k, most in ((24, 1), (64, 1), (72, 2), (296, 4), (4096, 8)):
        op = product(16, 512, k)
        (hopper,) = (kernel for kernel in kernels_for(op, H200) if kernel.provider == "hopper")
        assert max(config["split"] for config in hopper.every_config(op, H200)) == most


def test_the_longest_rows_decide_about_causal_attention_in_one_round():
    """On an H100 the second kernel takes 5.6 us, the native one 7.5 to 10.5."""
    sizes = {"b": 7, "heads": 8, "group": 1, "rows": 241, "cols": 241, "width": 64}
    assert kernel_of("causal_attention", **sizes).startswith("hopper")


@pytest.mark.parametrize(
    ("sizes", "provider"),
    [
        ({"b": 53, "heads": 16, "group": 1, "rows": 4, "cols": 52, "width": 64}, "native"),
        ({"b": 4, "heads": 4, "group": 1, "rows": 1, "cols": 1474, "width": 128}, "split"),
    ],
)
def test_many_short_sequences_are_no_work_for_split_attention(sizes, provider):
    """On an H100 the first takes 6.9 to 10.9 us split, 6.2 native; the second 7.4 split, 29.8 native."""
    assert kernel_of("attention", **sizes).startswith(provider)


def test_dynamic_rows_keep_a_tile_for_few_rows(table):
    text = """
    ait.graph @g(%x: !ait.tensor<m x 1024 x f16>) dims {m = 1 to 4096} {
      %w = ait.param "w" : !ait.tensor<4096 x 1024 x f16>
      %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4096 x f16>
      ait.output "y" %0 : !ait.tensor<m x 4096 x f16>
    }
    """
    table(native_gemm={})
    module = parse_text(context(), text)
    (op,) = (op for op in module.walk() if op.name == "ait.gemm")
    (kernel,) = (k for k in kernels_for(op, H200) if k.provider == "native")
    config, seconds = kernel.ranked(op, H200)[0]
    assert "small_rows" in config and kernel.config_problem(op, config, H200) is None
    assert kernel.estimate(op, config, H200) == pytest.approx(seconds)


# ** tables **


def test_a_table_is_written_and_read(table):
    path = table(hopper_gemm={"start": 1.25}, cublaslt_gemm_f32={"start": 2.0})
    read = read_table(path)
    assert read.fit("hopper", "gemm") == Fit({"start": 1.25}, 0.1, 10)
    assert read.fit("cublaslt", "gemm", "f32") == Fit({"start": 2.0}, 0.1, 10)
    assert read.fit("cublaslt", "gemm") is None
    assert table_for("sm_90a") == read


def test_a_card_without_a_table_uses_the_estimates_of_the_kernels(table):
    op, ampere = product(512), Target("cuda", "sm_80")
    table(hopper_gemm={}, native_gemm={"start": 30.0})
    assert table_for("sm_80") is None
    (kernel,) = (k for k in kernels_for(op, ampere) if k.provider == "native")
    assert kernel.ranked(op, ampere)[0] == (kernel.configs(op, ampere)[0], kernel.seconds(op, ampere))


def test_none_is_no_table(table, monkeypatch):
    monkeypatch.setenv("AIT_ESTIMATES", "none")
    assert table_for("sm_90a") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"fits"', '"fit"'),
        lambda text: text.replace("1.25", "-1.25"),
        lambda text: text.replace("1.25", '"fast"'),
        lambda text: text.replace("1.25", "NaN"),
        lambda text: text.replace('"setting"', '"set"'),
        lambda text: text.replace('"samples"', '"sample"'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_a_corrupt_table_is_an_error_with_its_name(table, change):
    path = table(hopper_gemm={"start": 1.25})
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=f"{path} is no table of estimates.*benchmarks/fit.py"):
        table_for("sm_90a")


def test_a_missing_table_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("AIT_ESTIMATES", str(tmp_path / "missing.json"))
    with pytest.raises(InputError, match=r"missing.json is no table of estimates"):
        table_for("sm_90a")


def test_a_damaged_table_of_the_package_is_left_out_with_a_warning(table, monkeypatch, tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "a.json").write_text("{")
    (folder / "b.json").write_bytes(table(hopper_gemm={"start": 1.25}).read_bytes())
    monkeypatch.setattr(estimates, "FOLDER", folder)
    monkeypatch.delenv("AIT_ESTIMATES")
    estimates._table_for.cache_clear()
    try:
        with pytest.warns(UserWarning, match=r"estimates without a table: .*a.json is no table of estimates"):
            found = table_for("sm_90a")
        assert found is not None and found.card == "a card"  # the other one counts
    finally:
        estimates._table_for.cache_clear()


def test_a_table_of_another_version_does_not_count(table):
    path = table(hopper_gemm={"start": 1.25})
    path.write_text(path.read_text().replace(f'"version": {estimates.VERSION}', '"version": 0'))
    assert read_table(path).fits == {}


def test_the_tables_of_the_package_are_read_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in estimates.FOLDER.glob("*.json"):
            assert read_table(path).fits


# ** problems and samples **


def test_a_seed_gives_the_same_problems_of_all_families():
    one, two = draw(5, 120), draw(5, 120)
    assert one == two != draw(6, 120)
    assert {p.family for p in one} == FAMILIES.keys()
    assert [Problem.read(p.text) for p in one] == one
    assert max(dict(p.sizes).get("m", 0) for p in one) > 2000 and min(dict(p.sizes).get("m", 9) for p in one) == 1


class FakeMeter:
    """A meter whose times are the candidates' estimates."""

    def __init__(self, *_: object, **__: object) -> None:
        self.raced = 0

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None: ...

    def build_together(self, wanted: object) -> None: ...

    def is_built(self, *_: object) -> bool:
        return True

    def abandon(self) -> None: ...

    def race(self, task, point, candidates, seconds):
        self.raced += 1
        return {w: calibrate.Times(estimate(task.op, w, H200), 0.01) for w in candidates[1:]}  # one of them cannot run


def test_samples_go_on_where_they_were_stopped(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(calibrate, "DeviceMeter", FakeMeter)
    monkeypatch.setattr(calibrate, "require_device", lambda target: None)
    monkeypatch.setattr(calibrate, "current_setting", lambda kind: calibrate.Setting(**SETTING))
    path = tmp_path / "samples.jsonl"
    options = ["--seed", "2", "--count", "30", "--families", "gemm,gemm_f32,reduce_rows", "-o", str(path)]
    args = calibrate.parser("").parse_args(options)
    calibrate.measure_into(path, args)
    whole = calibrate.read_samples(path)
    assert [s.problem for s in whole.problems] == draw(2, 30, ["gemm", "gemm_f32", "reduce_rows"])
    lines = path.read_text().split("\n")
    path.write_text("\n".join(lines[:5]) + "\n" + lines[5][:40])  # stopped in the middle of a line
    assert len(calibrate.read_samples(path).problems) == 4
    calibrate.measure_into(path, args)
    assert calibrate.read_samples(path) == whole
    calibrate.measure_into(path, args)
    assert "timed 0 of 0 problems" in capsys.readouterr().out
    # what was timed by the estimates is chosen without regret
    rows = [row for sampled in whole.problems if (row := regret.row(sampled, H200)) is not None]
    assert rows and all(r.regret < 1.2 for r in rows)
    regret.report(rows, save=None)
    assert "geometric mean" in capsys.readouterr().out
    found = samples_of(whole.problems, H200)
    assert {"hopper gemm", "native gemm", "native gemm f32", "split reduce_split rows"} <= found.keys()
    monkeypatch.setattr(calibrate, "current_setting", lambda kind: calibrate.Setting(**SETTING | {"card": "another"}))
    with pytest.raises(calibrate.AitError, match="of another setting"):
        calibrate.measure_into(path, args)


def test_a_file_that_is_no_file_of_samples(tmp_path):
    path = tmp_path / "x.jsonl"
    for text in ("", "{}\n", '{"arch": "sm_90a", "setting": {}}\n'):
        path.write_text(text)
        with pytest.raises(calibrate.AitError, match="no file of samples"):
            calibrate.read_samples(path)


def test_names_of_fits():
    assert fit_name("hopper", "gemm", "") == "hopper gemm"
    assert fit_name("cublaslt", "gemm", "f32") == "cublaslt gemm f32"


# ** dynamic sizes **

ROWS = """
ait.graph @g(%x: !ait.tensor<m x 4096 x f16>) dims {{{dims}}} {{
  %w = ait.param "w" : !ait.tensor<4096 x 4096 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4096 x f16>
  ait.output "y" %0 : !ait.tensor<m x 4096 x f16>
}}
"""
FEW_AND_MANY: dict[str, dict[str, float]] = {
    "stream_gemm": {},
    "hopper_gemm": {"start": 9.0},
    "native_gemm": {"start": 30.0},
}


def chosen(dims: str) -> str:
    module = parse_text(context(), ROWS.format(dims=dims))
    run_to_phase(module, "selected", CompileOptions("cuda"))
    (op,) = (op for op in module.walk() if op.name == "ait.gemm")
    return str(op.attributes["kernel"])


def test_each_range_of_sizes_has_its_own_kernel(table):
    table(**FEW_AND_MANY, cublaslt_gemm={"start": 30.0})
    text = chosen("m = 1 to 5000")
    assert "ranges" in text and 'axis = "m"' in text
    assert text.index('"stream"') < text.index('"hopper"')
    (limits,) = re.findall(r"upto = \[([^]]+)\]", text)
    assert 4 <= int(limits.split()[0]) <= 64
    assert '"stream"' in chosen("m = 1 to 8") and "ranges" not in chosen("m = 1 to 8")
    assert '"hopper"' in chosen("m = 1000 to 5000") and "ranges" not in chosen("m = 1 to 5000 hints [3000]")


def test_a_small_gain_makes_no_branch(table):
    """Estimates are too far off for that."""
    same, none = {"start": 900.0}, {"start": 9000.0}
    table(stream_gemm=same, hopper_gemm=same, native_gemm=none, cublaslt_gemm=none)
    few, many = chosen("m = 1 to 8"), chosen("m = 1000 to 5000")
    assert few != many
    assert "ranges" not in chosen("m = 1 to 24")


def test_without_a_table_one_kernel_serves_all_sizes(table, monkeypatch):
    table(arch="sm_80", **FEW_AND_MANY)
    assert "ranges" not in chosen("m = 1 to 5000")


ANY = """
ait.graph @g(%x: !ait.tensor<a x b x 4 x f32>) dims {a = 1 to 4096, b = 1 to 4096} {
  %0 = ait.compare ne %x, %x : !ait.tensor<a x b x 4 x i1>
  %1 = ait.reduce max %0 dims [0, 1, 2] : !ait.tensor<i1>
  ait.output "y" %1 : !ait.tensor<i1>
}
"""


def test_many_threads_reduce_all_elements_of_dynamic_sizes():
    """The smallest sizes have few elements, for which one thread is offered and no blocks are; the size of a run is
    that of the operand."""
    module = parse_text(context(), ANY)
    run_to_phase(module, "selected", CompileOptions("cuda", "sm_90a"))
    (op,) = (op for op in module.walk() if op.name == "ait.loops")
    text = str(op.attributes["kernel"])
    assert '"split"' in text and '"native"' not in text
    assert str(axis_for(op)) == "a*b"


def test_the_operands_of_an_op_that_changed_are_others():
    op = product(16, 24, 24)
    first = contraction.Problem.contiguous(op)
    assert contraction.Problem.contiguous(op) is first
    op.properties["layout"] = StringAttr("crr")
    changed = contraction.Problem.contiguous(op)
    assert changed == contraction.Problem.of(op, *contraction.contiguous_args(op)) != first


PADDED = """
ait.graph @g(%x: !ait.tensor<b x n x 16 x f16>) dims {b = 1 to 8, n = 1 to 48} {
  %0 = ait.permute %x [0, 2, 1] : !ait.tensor<b x 16 x n x f16>
  %1 = ait.loops(%0) for (d0 = b, d1 = n + 4, d2 = 16) {
  ^bb0(%a: !ait.tensor<b x 16 x n x f16>):
    %2 = ait.at %a[d0, d2, d1 - 2] else 0.0 : f32
    ait.yield %2 : f32
  } : !ait.tensor<b x (n + 4) x 16 x f16>
  ait.output "y" %1 : !ait.tensor<b x (n + 4) x 16 x f16>
}
"""


def test_a_kernel_that_few_elements_have_not_is_estimated_like_the_next_larger_size():
    """Rows of one element have no order that differs from that of the results, so that there is nothing to turn."""
    (task,) = tasks_of(PADDED)
    with pytest.raises(ValueError, match="no kernel"):
        estimate(task.hinted((1, 1)), Candidate(None, (("boxes", (("elements", 2048), ("lanes", 8))),)), H200)
    choice = choice_by_estimate(task, [], H200)
    assert choice is not None and "boxes" in {provider for c in choice.candidates for provider, _ in c.kernels}
