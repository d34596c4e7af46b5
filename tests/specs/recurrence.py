"""Recurrences of layers as PyTorch has them, and of a cell of two gates."""

from __future__ import annotations

from tests.kernels.recurrence import GRU, LSTM, MINIMAL, RNN
from tests.specs.spec import Spec, form
from tests.specs.tolerance import Tolerance

STATES = Tolerance({"f16": 2, "bf16": 2, "f32": 16}, {"f16": 2e-3, "bf16": 1.5e-2, "f32": 2e-6})
"""h is rounded in each step."""
INPUT, STATE = "s x b x 32 x T", "b x 32 x T"

RECURRENCE = Spec(
    "recurrence",
    (
        form(
            "rnn", f"recurrence %a init(%b) with(%c, %d) {RNN}",
            "32 x 32 x T", STATE, INPUT, "1 x 1 x 32 x T", to=(STATE, INPUT), both=True,
        ),
        form(
            "reverse", f"recurrence %a init(%b) with(%c, %d) reverse {RNN}",
            "32 x 32 x T", STATE, INPUT, "s x b x 1 x T", to=(STATE, INPUT), both=True,
            strides={2: ("32", "32*s", "1"), 5: ("32", "32*s", "1")},
        ),
        form(
            "minimal", f"recurrence %a init(%b) with(%c, %d) {MINIMAL}",
            "64 x 32 x T", STATE, INPUT, INPUT, to=(STATE, INPUT, INPUT), both=True,
        ),
        form(
            "gru", f"recurrence %a init(%b) with(%c, %d, %e) {GRU}",
            "96 x 32 x T", STATE, INPUT, INPUT, INPUT, to=(STATE, INPUT), both=True,
        ),
        form(
            "lstm", f"recurrence %a init(%b, %c) with(%d, %e, %f, %g) {LSTM}",
            "128 x 32 x T", STATE, STATE, INPUT, INPUT, INPUT, INPUT, to=(STATE, STATE, INPUT), both=True,
        ),
    ),
    STATES,
    "b = 0 to 64, s = 0 to 90",
    ({"b": 3, "s": 5}, {"b": 1, "s": 40}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 33, "s": 7}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}),
    ("f16", "bf16", "f32"),
    without={
        "rocm": "HIP has no kernel for it, and no pass makes it there",
        "codegen": "the corpus has the scans that it is made of",
        "graphs": "errors of a step grow with random weights; tests/e2e/test_scans.py has graphs",
    },
)  # fmt: skip

SPECS = (RECURRENCE,)
