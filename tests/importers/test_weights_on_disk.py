"""Where the weights of a compiled PyTorch model lie on the disk, and who may read them."""

from __future__ import annotations

import gc
import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.importers.torch import compile
from ait_mlir.runtime import Model


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def ours(temporary: Path) -> list[Path]:
    """PyTorch makes folders there as well."""
    return list(temporary.glob("ait_*"))


def test_weights_are_for_their_owner_alone_and_go_with_the_model(temporary: Path) -> None:
    old = os.umask(0o022)
    try:
        compiled = compile(torch.nn.Linear(8, 8).eval(), (torch.zeros(2, 8),), measure=False)
        assert [mode(path) for path in ours(temporary)] == [0o700]
        # a copy has the mode of any new file, and what is at its place stays as it is
        saved = compiled.save(temporary.parent / "saved.ait")
        assert mode(saved) == 0o644
        compiled.save(Path("/dev/null"))
        (temporary.parent / "link.ait").symlink_to(saved)
        saved.chmod(0o640)
        compiled.save(temporary.parent / "link.ait")
        assert (temporary.parent / "link.ait").is_symlink() and mode(saved) == 0o640
        assert Model(saved).run_with_tensors([np.ones((2, 8), np.float32)])
    finally:
        os.umask(old)
    del compiled
    gc.collect()
    assert not ours(temporary)


def test_a_failed_compilation_leaves_no_weights(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        assert len(ours(temporary)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("ait_mlir.driver.compile_module", fail)
    with pytest.raises(KeyboardInterrupt):
        compile(torch.nn.Linear(8, 8).eval(), (torch.zeros(2, 8),), measure=False)
    assert not ours(temporary)


def test_a_fork_leaves_the_weights_to_its_parent(temporary: Path) -> None:
    compiled = compile(torch.nn.Linear(8, 8).eval(), (torch.zeros(2, 8),), measure=False)
    if (child := os.fork()) == 0:
        try:
            del compiled
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert compiled.save(temporary.parent / "saved.ait").is_file()
