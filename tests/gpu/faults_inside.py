"""Runs and calls after a kernel wrote to an address that is not there: `test_faults.py` starts this in a process of its own.

    python -m tests.gpu.faults_inside plain|replay|unwaited STRAY.ait OTHER.ait

prints as JSON, by name of the call, the class of the error and its message; null for a call without an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
import torch

from ait_mlir.runtime import Model


def main(how: str, stray_path: str, other_path: str) -> None:
    """One run whose kernel strays, then calls of its model and of another one."""
    stray, other = Model(stray_path), Model(other_path)
    x, y = torch.ones(4, 8, device="cuda"), torch.zeros(4, 8, device="cuda")

    def run(model: Model, graph_mode: bool = False, sync: bool = True) -> None:
        model.run_with_tensors([x], [y], graph_mode=graph_mode, sync=sync)

    for model, expected in ((stray, 1), (other, 3)):
        for _ in range(3):  # plainly, recorded, replayed
            y.zero_()
            run(model, graph_mode=True)
            assert torch.equal(y, torch.full_like(y, expected))
    assert stray.graph_stats()["hits"] == other.graph_stats()["hits"] == 1
    x.fill_(-1)
    torch.cuda.synchronize()
    found: dict[str, list[str] | None] = {}

    def told(name: str, call: Callable[[], object]) -> None:
        try:
            call()
            found[name] = None
        except Exception as error:
            found[name] = [type(error).__name__, str(error)]

    if how == "unwaited":
        told("the launch", lambda: run(stray, sync=False))
        told("the fault", stray.synchronize)
    else:
        told("the fault", lambda: run(stray, graph_mode=how == "replay"))
    told("a run", lambda: run(stray))
    told("a run of another model", lambda: run(other))
    told("a replay", lambda: run(other, graph_mode=True))
    told("a launch of another model", lambda: run(other, sync=False))
    told("setting a constant", lambda: other.set_constant("w", np.ones(8, np.float32)))
    told("memory", lambda: other.allocate_memory(1 << 20))
    told("closing", stray.close)
    told("closing another model", other.close)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
