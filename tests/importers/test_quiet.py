"""PyTorch's messages during a trace."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("torch")

from ait_mlir.importers.torch.library import quiet


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
