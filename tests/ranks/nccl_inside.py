"""One of the ranks of `test_nccl.py` and `tests/gpu/test_ranks.py`: runs a model for cuda, where the folder has a fake of
the CUDA runtime on that.

`nccl_inside.py MODE FOLDER ARTIFACT`: the artifact runs on its pieces of `inputs.npz`, launched, recorded and replayed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi

from ait_mlir.dialects.ait.ranks import ranks_of
from ait_mlir.driver import program_of
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.runtime import Model
from tests.runtime.fake_device import use_fake


def main(mode: str, folder: Path, name: str) -> None:
    rank = int(os.environ["RANK"])
    if (fake := folder / "libfake_cudart.so").is_file():
        use_fake(fake)
    try:
        run(mode, folder, name, rank)
    except AitError as error:
        (folder / f"{rank}.error").write_text(str(error))


class Card:
    """Tensors on the card of a model: PyTorch's, or the fake's, which lie in the memory of the host."""

    def __init__(self, model: Model, is_fake: bool) -> None:
        self.model, self.is_fake = model, is_fake

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        number = self.model.device[1]
        if not self.is_fake:
            import torch

            return torch.from_numpy(array).to(f"cuda:{number}")
        found = self.model._library.module.empty(number, tvm_ffi.dtype(array.dtype.name), tvm_ffi.Shape(array.shape))
        ctypes.memmove(found.data_ptr(), array.ctypes.data, array.nbytes)
        return found

    def get(self, tensor: Any, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not self.is_fake:
            return tensor.cpu().numpy()
        data = ctypes.string_at(tensor.data_ptr(), like.nbytes)
        return np.frombuffer(data, like.dtype).reshape(like.shape)


RESULTS = {
    "all.ait": {"y": ((8, 2), "float16"), "sent": ((4, 8), "int8"), "z": ((4, 8), "int8")},
    "small.ait": {"y": ((2, 4), "float32")},
}
"""The results of a rank on a fake card."""


def run(mode: str, folder: Path, name: str, rank: int) -> None:
    if mode == "card" and rank == 1:
        os.environ["LOCAL_RANK"] = "7"
    if mode == "refused" and rank == 1:
        os.environ["FAKE_NCCL_REFUSES"] = "5"
    model = Model(folder / name)
    card = Card(model, (folder / "libfake_cudart.so").is_file())
    ranks = ranks_of(program_of(parse_text(context(), model.ir_text)))
    whole = np.load(folder / f"{name}.npz")
    pieces = {n: np.ascontiguousarray(a[ranks.place("inputs", n, a.shape, rank)]) for n, a in whole.items()}
    given = {n: card.put(piece) for n, piece in pieces.items()}
    results = {n: np.zeros(shape, dtype) for n, (shape, dtype) in RESULTS.get(name, {}).items()}
    outputs = {n: card.put(array) for n, array in results.items()} if card.is_fake else None
    found: dict[str, Any] = {}
    for turn in range(4):
        if rank == 1 and (mode, turn) in (("dies", 1), ("dies first", 0)):
            os._exit(3)
        if rank == 1 and (mode, turn) == ("shapes", 1):
            given = {n: card.put(np.concatenate([piece, piece])) for n, piece in pieces.items()}
            outputs = {n: card.put(np.concatenate([array, array])) for n, array in results.items()}
        if outputs is None:  # the runs that follow have the same addresses
            outputs = found = model.run_with_tensors(given, graph_mode=mode == "graphs")
        else:
            model.run(given, outputs, graph_mode=mode == "graphs")
            found = outputs
    if mode == "graphs":
        stats = model.graph_stats()
        assert stats["captures"] == 1 and stats["hits"] == 2, stats
    arrays = {n: card.get(tensor, results[n] if card.is_fake else np.empty(0)) for n, tensor in found.items()}
    np.savez(folder / f"{name}.{rank}.npz", **arrays)  # pyright: ignore[reportArgumentType]


main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
