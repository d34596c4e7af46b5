"""One of the ranks that tests start: runs a model on its pieces and stores the outputs, or the reason why not.

`inside.py MODE FOLDER ARTIFACT...`: each artifact runs on its pieces of `inputs.npz`, twice.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from ait_mlir.dialects.ait.ranks import ranks_of
from ait_mlir.driver import program_of
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.runtime import Model


def main(mode: str, folder: Path, *names: str) -> None:
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["RANK"])
    try:
        if mode == "files" and rank == 1:
            names = ("other.ait",)
        if mode == "absent" and rank == 1:
            return
        for name in names:
            run(mode, folder, name, rank)
    except AitError as error:
        (folder / f"{rank}.error").write_text(str(error))


def run(mode: str, folder: Path, name: str, rank: int) -> None:
    model = Model(folder / name)
    ranks = ranks_of(program_of(parse_text(context(), model.ir_text)))
    whole = np.load(folder / f"{name}.npz")
    if mode == "late" and rank == 1:
        time.sleep(6)
        return
    if mode == "dies" and rank == 1:
        os._exit(3)
    given = {n: np.ascontiguousarray(a[ranks.place("inputs", n, a.shape, rank)]) for n, a in whole.items()}
    if mode == "shapes" and rank == 1:
        given = {n: np.concatenate([a, a]) for n, a in given.items()}
    found = [{n: np.array(a) for n, a in model.run_with_tensors(given).items()} for _ in range(2)]
    for key, array in found[0].items():
        assert array.tobytes() == found[1][key].tobytes(), "two runs differ"
    np.savez(folder / f"{name}.{rank}.npz", **found[0])  # pyright: ignore[reportArgumentType]


main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
