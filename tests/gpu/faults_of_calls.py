"""A run and a load with a fault at each call of the CUDA runtime in turn: `test_faults.py` starts this in a process of its own.

    python -m tests.gpu.faults_of_calls FOLDER

builds into FOLDER a program with state, two streams and a product of cuBLASLt, linked to a library that stands before
libcudart (`failing_cudart.cc`), and prints as JSON how many calls were made to fail, by the name of the function.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ait_mlir.lowering.toolchain import cuda_home, find_cxx

NUMBERS = "!ait.tensor<64 x 64 x f16>"
LENGTH = 3
"""The launches of each of the two chains."""
STEPS = 500
"""More calls than a run or a load makes."""


def failing_cudart(folder: Path) -> tuple[ctypes.CDLL, Path]:
    """The library that stands before libcudart, loaded before anything else that needs one."""
    library, home = folder / "libfailing_cudart.so", cuda_home()
    found = next(path for name in ("lib64", "lib") if (path := home / name / "libcudart.so").exists())
    command = [str(find_cxx()), "-std=c++17", "-O1", "-g", "-shared", "-fPIC", "-isystem", str(home / "include")]
    command += [str(Path(__file__).with_name("failing_cudart.cc")), "-o", str(library), "-Wl,--no-as-needed", str(found)]
    subprocess.run([*command, f"-Wl,-rpath,{found.parent}"], check=True)
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    loaded.fail_after.argtypes = [ctypes.c_int64]
    loaded.calls_left.restype = ctypes.c_int64
    loaded.failed_call.restype = ctypes.c_char_p
    return loaded, library


def program() -> str:
    """A cache that a run adds to, a product of a library, and two chains of launches on two streams."""
    lines = [
        f'%w = ait.param "w" : {NUMBERS}',
        f'%0 = ait.gemm rcr %x, %w {{kernel = #ait.kernel<"cublaslt">}} : {NUMBERS}',
    ]
    for chain in range(2):
        for i in range(LENGTH):
            source = "%0" if i == 0 else f"%b{chain}_{i - 1}"
            lines.append(f"%b{chain}_{i} = ait.cumulative sum {source} dim {chain} : {NUMBERS}")
    lines += [
        f"%y = ait.add %b0_{LENGTH - 1}, %b1_{LENGTH - 1} : {NUMBERS}",
        f"%new = ait.add %cache, %x : {NUMBERS}",
        f'ait.output "y" %y : {NUMBERS}',
        f'ait.output "cache" %new in place of %cache : {NUMBERS}',
    ]
    body = "\n  ".join(lines)
    return f"ait.graph @net(%x: {NUMBERS}, %cache: {NUMBERS} donated) {{\n  {body}\n}}\n"


def libraries(folder: Path, failing: Path) -> Path:
    """The library of the program; this process gets a runtime library that calls libcudart through `failing`."""
    import tvm_ffi

    from ait_mlir import errors
    from ait_mlir.driver import program_of, run_to_phase
    from ait_mlir.ir.context import context
    from ait_mlir.ir.parser import parse_source
    from ait_mlir.ir.source import SourceText
    from ait_mlir.lowering import build
    from ait_mlir.lowering.emit import emit_program
    from ait_mlir.lowering.kernels.base import Target
    from ait_mlir.lowering.toolchain import default_arch, toolchain
    from ait_mlir.options import CompileOptions
    from ait_mlir.runtime import loading

    target = Target("cuda", default_arch("cuda"))
    module = parse_source(context(), SourceText("<text>", program()))
    run_to_phase(module, "planned", CompileOptions("cuda", target.arch, streams=4))
    found = program_of(module)
    assert {op.on for op in found.launches()} == {0, 1}
    found.properties.pop("streams_if_recorded", None)
    shared = (str(failing), f"-L{cuda_home() / 'lib64'}", "-lcudart")
    real = build._runtime_toolchain("cuda", build._link_to_ffi())
    flags = [flag for flag in real.link_flags if flag != "-lcudart_static"]
    built = build._build_runtime(
        "cuda", build._RUNTIME_SOURCES["cuda"], replace(real, link_flags=(*flags, *shared, f"-Wl,-rpath,{folder}"))
    )
    for error in (errors.InputError, errors.ArtifactError, errors.OutOfMemoryError, errors.RunError):
        tvm_ffi.register_error(f"ait.{error.__name__}", error)
    loading._loaded["cuda"] = tvm_ffi.load_module(str(built))
    tools = toolchain("cuda", target.arch)
    tools = replace(tools, link_flags=(*tools.link_flags, "--cudart", "shared", str(failing)))
    return build.build_with(tools, emit_program(module, found, target).files, folder, "compiling with faults")


def main(folder: Path) -> None:
    cudart, path = failing_cudart(folder)
    import torch

    from ait_mlir.errors import OutOfMemoryError, RunError
    from ait_mlir.runtime import Model

    library = libraries(folder, path)
    torch.manual_seed(0)
    x, w = (torch.randn(64, 64).half().cuda() / 64 for _ in range(2))
    cache, y = torch.zeros(64, 64).half().cuda(), torch.empty(64, 64).half().cuda()
    zeros = np.zeros((64, 64), np.float16)
    torch.cuda.synchronize()
    failed: Counter[str] = Counter()

    def load() -> Model:
        return Model.from_library(library, "cuda", constants={"w": w})

    def run(model: Model, graph_mode: bool) -> None:
        model.run_with_tensors([x, cache], [y], graph_mode=graph_mode)

    def with_fault(step: int, body: Callable[[], Any]) -> str:
        """What became of the call `step` of `body`, made to fail: an "error" of ours, "went on" or "no call"."""
        cudart.fail_after(step)
        try:
            body()
        except (RunError, OutOfMemoryError) as error:
            assert str(error)
            assert cudart.calls_left() < 0, f"an error without a fault: {error}"
            failed[cudart.failed_call().decode()] += 1
            return "error"
        finally:
            left = cudart.calls_left()
            cudart.fail_after(-1)
        return "no call" if left >= 0 else "went on"

    def prepare(model: Model) -> None:
        torch.cuda.synchronize()
        model.set_state("cache", cache, zeros)
        y.fill_(torch.nan)

    def check_results() -> None:
        torch.cuda.synchronize()
        assert torch.equal(y, expected), (y - expected).abs().max()
        assert torch.equal(cache, x)

    def check(model: Model, graph_mode: bool) -> None:
        prepare(model)
        run(model, graph_mode)
        check_results()

    with load() as model:
        run(model, False)
        torch.cuda.synchronize()
        expected = y.clone()
    ends = [x.double() @ w.double().T for _ in range(2)]
    for dim in range(2):
        for _ in range(LENGTH):
            ends[dim] = ends[dim].cumsum(dim)
    torch.testing.assert_close(expected.double(), ends[0] + ends[1], atol=0.1, rtol=1e-2)
    for graph_mode in (False, True):
        for earlier in range(4):
            for step in range(STEPS):
                with load() as model:
                    for _ in range(earlier):
                        check(model, graph_mode)
                    prepare(model)
                    found = with_fault(step, partial(run, model, graph_mode))
                    if found == "went on":  # a recording that fails is a plain run
                        check_results()
                        failed[f"{cudart.failed_call().decode()}, and the run went on"] += 1
                    for _ in range(3):
                        check(model, graph_mode)
                if found == "no call":
                    break
            else:
                raise AssertionError("no end of faults")
    step = 0
    while (found := with_fault(step, lambda: load().close())) != "no call":
        assert found == "error", f"{cudart.failed_call().decode()} failed, and the load went on"
        step += 1
    assert step > 3
    print(json.dumps(failed), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
