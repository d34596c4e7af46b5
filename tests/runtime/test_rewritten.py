"""An artifact that another process writes in place while it is loaded: the load gives its model or an error."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.errors import ArtifactError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.build import build_deploy_library
from ait_mlir.runtime import Model, artifact

ROOT = Path(__file__).parents[2]
ROWS = 1500

WRITER = """
import sys
from pathlib import Path
contents = [Path(name).read_bytes() for name in sys.argv[2:]]
print("writing", flush=True)
while True:
    for content in contents:
        with open(sys.argv[1], "wb") as file:  # as cp does: truncates, then writes
            for begin in range(0, len(content), 1 << 18):
                file.write(content[begin : begin + (1 << 18)])
"""
OF_PYTHON = """
import sys
import numpy as np
from ait_mlir.errors import ArtifactError
from ait_mlir.runtime import Model

refused = 0
for _ in range(int(sys.argv[2])):
    try:
        with Model(sys.argv[1]) as model:
            y = model.run_with_tensors([np.ones((1, 1500), np.float32)])["y"]
            assert (y == 1500).all() or (y == 3000).all(), y
    except ArtifactError:
        refused += 1
print(refused)
"""
OF_C = """
import ctypes, os, sys
api = ctypes.CDLL(sys.argv[3])
api.ait_last_error.restype = ctypes.c_char_p
refused = 0
for _ in range(int(sys.argv[2])):
    model = ctypes.c_void_p()
    status = api.ait_model_load(os.fsencode(sys.argv[1]), None, ctypes.byref(model))
    assert status in (0, 2), api.ait_last_error()
    refused += status != 0
    api.ait_model_free(model)
print(refused)
"""


def compiled(folder: Path, value: float) -> Path:
    text = f"""
    ait.graph @sums(%x: !ait.tensor<b x {ROWS} x f32>) dims {{b = 1 to 4}} {{
      %w = ait.param "w" : !ait.tensor<{ROWS} x {ROWS} x f32>
      %y = ait.gemm rcr %x, %w : !ait.tensor<b x {ROWS} x f32>
      ait.output "y" %y : !ait.tensor<b x {ROWS} x f32>
    }}
    """
    w = np.full((ROWS, ROWS), value, np.float32)
    return compile_module(parse_text(context(), text), constants={"w": w}, output=folder / f"of_{value}.ait")


@pytest.mark.parametrize("code", [OF_PYTHON, OF_C], ids=["python", "c"])
def test_loads_beside_a_writer(tmp_path: Path, code: str) -> None:
    files = [compiled(tmp_path, 1), compiled(tmp_path, 2)]
    path = tmp_path / "written.ait"
    path.write_bytes(files[0].read_bytes())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER, str(path), *map(str, files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
            load = [sys.executable, "-c", code, str(path), "60", str(build_deploy_library("cpu"))]
            done = subprocess.run(load, capture_output=True, text=True, env=environment, check=False)
        finally:
            writer.kill()
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr}"
    assert int(done.stdout) > 0, "no load met the writer"


def test_what_is_used_is_what_was_hashed(tmp_path: Path) -> None:
    """The file changes after its manifest was read, and is truncated after its libraries were."""
    path = compiled(tmp_path, 1)
    loaded = artifact.read(path, defer_weights=True)
    part = loaded.parts["constants"]
    with path.open("r+b") as file:
        file.seek(part.offset + part.size - 4)
        file.write(np.float32(7).tobytes())
    with pytest.raises(
        ArtifactError, match="part 'constants' does not have the hash in the manifest, unless it was written"
    ):
        _ = loaded.constants
    with pytest.raises(
        ArtifactError, match="part 'constants' does not have the hash in the manifest, unless it was written"
    ):
        loaded.check_constants()
    os.truncate(path, part.offset + 5000)
    with pytest.raises(ArtifactError, match="became shorter while it was read: replace an artifact by renaming"):
        _ = loaded.constants
    with pytest.raises(ArtifactError, match="became shorter while it was read"):  # also where no hash says so
        _ = replace(loaded, verify_weights=False).constants


def test_a_loaded_model_does_not_need_its_file(tmp_path: Path) -> None:
    path = compiled(tmp_path, 1)
    with Model(path) as model:
        os.truncate(path, 0)
        y = model.run_with_tensors([np.ones((1, ROWS), np.float32)])["y"]
        assert (y == ROWS).all()
