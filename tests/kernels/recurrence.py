"""Cells of recurrences, and cases on given plans: clusters, warps that share sums, weights in shared memory, odd sizes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.kernels.harness import Case
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

FACTOR = 0.1
"""Of products of 32 columns with random weights: with a larger factor, errors grow from step to step."""


def scaled(region: str, hidden: int) -> str:
    """A region with the factor for another number of columns."""
    return region.replace(f"ait.constant {FACTOR} ", f"ait.constant {FACTOR * (32 / hidden) ** 0.5:.4f} ")


def _region(gates: int, inputs: int, states: int, *lines: str) -> str:
    names = [
        *(f"%g{i}_" for i in range(gates)),
        *(f"%x{i}_" for i in range(inputs)),
        *(f"%s{i}_" for i in range(states)),
    ]
    scaled = [f"%f_ = ait.constant {FACTOR} : f32", *(f"%p{i}_ = ait.mul %g{i}_, %f_ : f32" for i in range(gates))]
    text = [f"{line} : f32" for line in lines[:-1]]
    count = lines[-1].count(",") + 1
    end = f"ait.yield {lines[-1]} : {', '.join(['f32'] * count)}"
    return (
        f"{{\n  ^bb0({', '.join(f'{n}: f32' for n in names)}):\n    " + "\n    ".join([*scaled, *text, end]) + "\n  }"
    )


RNN = _region(1, 2, 1, "%a_ = ait.add %p0_, %x0_", "%b_ = ait.add %a_, %x1_", "%h_ = ait.tanh %b_", "%h_, %h_")
"""Takes an input and a bias; yields h, stacked too."""
MINIMAL = _region(
    2, 2, 1,
    "%a_ = ait.add %p0_, %x0_", "%z_ = ait.sigmoid %a_", "%b_ = ait.add %p1_, %x1_", "%n_ = ait.tanh %b_",
    "%d_ = ait.sub %s0_, %n_", "%e_ = ait.mul %z_, %d_", "%h_ = ait.add %n_, %e_", "%h_, %z_, %h_",
)  # fmt: skip
"""A gated unit of two gates; stacks its gate and h."""
GRU = _region(
    3, 3, 1,
    "%a_ = ait.add %p0_, %x0_", "%r_ = ait.sigmoid %a_", "%b_ = ait.add %p1_, %x1_", "%z_ = ait.sigmoid %b_",
    "%c_ = ait.mul %r_, %p2_", "%d_ = ait.add %c_, %x2_", "%n_ = ait.tanh %d_", "%e_ = ait.sub %s0_, %n_",
    "%m_ = ait.mul %z_, %e_", "%h_ = ait.add %n_, %m_", "%h_, %h_",
)  # fmt: skip
LSTM = _region(
    4, 4, 2,
    "%a_ = ait.add %p0_, %x0_", "%i_ = ait.sigmoid %a_", "%b_ = ait.add %p1_, %x1_", "%j_ = ait.sigmoid %b_",
    "%c_ = ait.add %p2_, %x2_", "%k_ = ait.tanh %c_", "%d_ = ait.add %p3_, %x3_", "%o_ = ait.sigmoid %d_",
    "%u_ = ait.mul %i_, %k_", "%v_ = ait.mul %j_, %s1_", "%w_ = ait.add %u_, %v_", "%t_ = ait.tanh %w_",
    "%h_ = ait.mul %o_, %t_", "%h_, %w_, %h_",
)  # fmt: skip
LAST = _region(1, 1, 1, "%a_ = ait.add %p0_, %x0_", "%h_ = ait.relu %a_", "%h_")
"""Stacks nothing."""
CELLS = {"rnn": (1, 1, RNN), "minimal": (2, 1, MINIMAL), "gru": (3, 1, GRU), "lstm": (4, 2, LSTM), "last": (1, 1, LAST)}
"""Gates, states and the region."""
ENVS = ({"b": 11, "s": 4}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 3})


def recurrence(
    t: str, cell: str, hidden: int, config: Mapping[str, int], *, reverse: bool = False, **options: object
) -> ConfiguredCase:
    """A cell on [s, b, hidden] with a plan."""
    gates, states, region = CELLS[cell]
    step, state = f"!ait.tensor<s x b x {hidden} x {t}>", f"!ait.tensor<b x {hidden} x {t}>"
    inputs = [step] * gates + ([f"!ait.tensor<1 x 1 x {hidden} x {t}>"] if cell == "rnn" else [])
    stacked = [step] * {"minimal": 2, "last": 0}.get(cell, 1)
    given = [("w", f"!ait.tensor<{gates * hidden} x {hidden} x {t}>")]
    given += [(f"i{n}", state) for n in range(states)] + [(f"x{n}", of) for n, of in enumerate(inputs)]
    results = [state] * states + stacked
    named = [f"%r{n}" for n in range(len(results))]
    text = (
        f"ait.graph @g({', '.join(f'%{n}: {of}' for n, of in given)}) dims {{b = 0 to 200, s = 0 to 64}} {{\n"
        f"  {', '.join(named)} = ait.recurrence %w init({', '.join(f'%i{n}' for n in range(states))}) "
        f"with({', '.join(f'%x{n}' for n in range(len(inputs)))}){' reverse' if reverse else ''} {scaled(region, hidden)} : "
        f"{', '.join(results)}\n"
        + "".join(f'  ait.output "{n[1:]}" {n} : {of}\n' for n, of in zip(named, results, strict=True))
        + "}"
    )
    return on_kernel(Case(text, **({"envs": ENVS} | options)), "native", config)  # type: ignore[arg-type]


def plan(cluster: int, rows: int, across: int, split: int) -> dict[str, int]:
    return {"cluster": cluster, "rows": rows, "across": across, "split": split}


def recurrence_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type."""
    return {
        "rnn-f16": recurrence("f16", "rnn", 64, plan(1, 8, 4, 1)),
        "rnn-odd-bf16": recurrence("bf16", "rnn", 37, plan(1, 8, 1, 2), reverse=True),
        "rnn-cluster-f16": recurrence("f16", "rnn", 96, plan(4, 8, 2, 2)),
        "minimal-bf16": recurrence("bf16", "minimal", 40, plan(2, 16, 2, 2)),
        "gru-f16": recurrence("f16", "gru", 48, plan(2, 8, 1, 2), constants=(0,)),
        "gru-wide-bf16": recurrence("bf16", "gru", 32, plan(1, 32, 2, 1), envs=({"b": 45, "s": 3},)),
        "lstm-bf16": recurrence("bf16", "lstm", 64, plan(2, 8, 4, 1)),
        "lstm-odd-f16": recurrence("f16", "lstm", 90, plan(16, 8, 1, 2), reverse=True),
        "lstm-shared-f16": recurrence("f16", "lstm", 64, plan(1, 8, 1, 1), envs=({"b": 3, "s": 3},)),
        "last-f16": recurrence("f16", "last", 16, plan(1, 8, 1, 1)),
        "rnn-f32": recurrence("f32", "rnn", 40, plan(1, 8, 1, 2), reverse=True),
        "gru-cluster-f32": recurrence("f32", "gru", 50, plan(4, 8, 1, 2), envs=({"b": 11, "s": 3}, {"b": 2, "s": 0})),
        "lstm-f32": recurrence("f32", "lstm", 32, plan(2, 16, 2, 1), envs=({"b": 19, "s": 3},), constants=(0,)),
        "strided-f16": recurrence(
            "f16", "rnn", 24, plan(1, 8, 2, 1),
            strides={2: ("24", "24*s", "1"), 5: ("1", "s", "b*s")}, offset=1,
        ),
    }  # fmt: skip
