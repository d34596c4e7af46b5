"""What PyTorch has after a trace, and its messages during one."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("torch")

import numpy as np
import torch

from ait_mlir.importers.torch.library import quiet
from ait_mlir.importers.torch.size_floats import float_functions


def test_all_loggers_of_torch_are_quiet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Those with a level of their own are set and get it back; the others follow their parents."""
    loggers = [logging.getLogger(name) for name in ("torch", "torch.ait_own", "torch.ait_own.child", "torch.ait_plain")]
    monkeypatch.setattr(loggers[1], "level", logging.DEBUG)
    before = [one.level for one in loggers]
    set_level, made = logging.Logger.setLevel, list[str]()
    monkeypatch.setattr(
        logging.Logger, "setLevel", lambda self, level: made.append(self.name) or set_level(self, level)
    )
    with quiet():
        for one in loggers:
            one.critical("hidden")
    loggers[1].debug("shown")
    assert caplog.messages == ["shown"] and [one.level for one in loggers] == before
    assert {"torch", "torch.ait_own"} <= set(made) and not {"torch.ait_own.child", "torch.ait_plain"} & set(made)


def test_dynamo_never_keeps_a_function_that_replaces_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table of NumPy's functions, made in the first trace, is by address: another function could get that of a
    replacement.
    """
    rules = torch._dynamo.trace_rules
    monkeypatch.setattr(rules._numpy_function_ids, "function_ids", None)
    with float_functions():
        replacement = np.sin
        assert not rules.is_numpy(replacement)
    assert np.sin is not replacement and rules.is_numpy(np.sin)
