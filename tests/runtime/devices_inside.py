"""The CUDA runtime on two devices of a fake (fake_cuda/cudart.cc): devices, graphs, faults.

`test_devices.py` runs these in a process of their own, because a process has one runtime library for a target.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr

from ait_mlir.driver import program_of, run_to_phase
from ait_mlir.errors import InputError, OutOfMemoryError, RunError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering import build
from ait_mlir.lowering.emit import emit_program
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from tests.runtime.conftest import SOURCE, B, W, tiny_inputs, tiny_reference
from tests.runtime.fake_device import CUDART, compiled, use_fake


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The fake, behind the runtime library for target cuda of this process."""
    return use_fake(compiled(CUDART, tmp_path_factory.mktemp("fake") / "libfake_cudart.so"))


@pytest.fixture(scope="session")
def tiny(fake: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as one for CUDA, whose launches are the fake's."""
    text = SOURCE.read_text().replace('"tiny", "cpu"', '"tiny", "cuda"')
    # The fake's memory is the host's, so the run may read constants there.
    return build.build_library({"model.cc": text}, Target("cpu", "native"), tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def model(tiny: Path) -> Iterator[Model]:
    with Model.from_library(tiny, "cuda", constants={"w": W, "b": B}, num_runtimes=2) as model:
        yield model


class Case:
    """The tensors of a run on a device, and the expected results."""

    def __init__(self, model: Model, device: int, batch: int = 4, seq: int = 5, seed: int = 0) -> None:
        import tvm_ffi

        x, m = tiny_inputs(batch, seq, seed)
        self.y, self.s = tiny_reference(x, m)
        shapes = ((batch, 2 * seq), (batch, seq), (batch, 2 * seq), (batch,))
        tensors = [
            model._library.module.empty(device, tvm_ffi.dtype("float32"), tvm_ffi.Shape(shape)) for shape in shapes
        ]
        self.inputs, self.outputs = tensors[:2], tensors[2:]
        for tensor, value in zip(self.inputs, (x, m), strict=True):
            ctypes.memmove(tensor.data_ptr(), value.ctypes.data, value.nbytes)

    def read(self, which: int) -> np.ndarray:
        like = (self.y, self.s)[which]
        return np.frombuffer(ctypes.string_at(self.outputs[which].data_ptr(), like.nbytes), like.dtype).reshape(
            like.shape
        )

    def check(self, scale: float = 1.0) -> None:
        np.testing.assert_allclose(self.read(0), self.y * scale, rtol=1e-6)
        ctypes.memset(self.outputs[0].data_ptr(), 255, self.y.nbytes)


def test_a_run_is_on_the_device_of_its_tensors(model: Model, fake: ctypes.CDLL) -> None:
    cases = [Case(model, device) for device in (0, 1)]
    before = [fake.fake_launches(device) for device in (0, 1)]
    for graph in (False, True, True, True):
        for case in (*cases, *cases):
            model.run(case.inputs, case.outputs, graph_mode=graph)
            case.check()
    assert model.devices() == [0, 1]
    assert [fake.fake_launches(device) - n for device, n in zip((0, 1), before, strict=True)] == [8, 8]
    assert model.stats()["runs"] == 16 and model.stats()["graph_hits"] > 0
    assert model.infer_output_shapes(cases[1].inputs) == {"y": (4, 10), "s": (4,)}
    made = model._runner._buffers(cases[1].inputs)
    assert [tuple(map(int, t.__dlpack_device__())) for t in made] == [(2, 1), (2, 1)]


def test_tensors_on_two_devices_are_refused_before_a_launch(model: Model, fake: ctypes.CDLL) -> None:
    one, other = Case(model, 0), Case(model, 1)
    before = fake.fake_launches(0) + fake.fake_launches(1)
    with pytest.raises(InputError, match="input 'm' is on cuda:1, expected cuda:0"):
        model.run([one.inputs[0], other.inputs[1]], one.outputs)
    with pytest.raises(InputError, match="output 'y' is on cuda:0, expected cuda:1"):
        model.run(other.inputs, one.outputs)
    assert fake.fake_launches(0) + fake.fake_launches(1) == before
    model.run(other.inputs, other.outputs)
    other.check()


def test_a_model_of_one_device(tiny: Path) -> None:
    with Model.from_library(tiny, "cuda", constants={"w": W, "b": B}, device=1) as model:
        here, there = Case(model, 1), Case(model, 1)
        model.run(here.inputs, here.outputs)
        here.check()
        assert model.devices() == [1] and model.device == (2, 1)
        with Model.from_library(tiny, "cuda", constants={"w": W, "b": B}) as general:
            there = Case(general, 0)
        with pytest.raises(InputError, match="input 'x' is on cuda:0, expected cuda:1"):
            model.run(there.inputs, there.outputs)
    with pytest.raises(RunError, match="there is no cuda:2"):
        Model.from_library(tiny, "cuda", device=2)


def test_constants_are_set_on_all_devices(model: Model) -> None:
    cases = [Case(model, device) for device in (0, 1)]

    def runs(scale: float) -> None:
        for case in cases:
            model.run(case.inputs, case.outputs)
            case.check(scale)

    runs(1)
    model.set_constants({"w": 2 * W, "b": 2 * B})
    runs(2)
    model.set_many_double_buffer_constants({"w": 3 * W, "b": 3 * B})
    runs(2)
    model.swap_constants()
    runs(3)
    with pytest.raises(InputError, match="runs on 2 devices"):
        model.set_constant("w", W, copy=False)
    runs(3)


def test_a_new_device_gets_the_values_of_both_sets(model: Model) -> None:
    model.set_constants({"w": 2 * W, "b": 2 * B})
    model.set_many_double_buffer_constants({"w": 3 * W, "b": 3 * B})
    case = Case(model, 1)
    model.run(case.inputs, case.outputs)
    case.check(2)
    model.swap_constants()
    model.run(case.inputs, case.outputs)
    case.check(3)


@pytest.mark.parametrize("graph_mode", [False, True])
def test_a_fault_at_each_step_of_a_run(tiny: Path, fake: ctypes.CDLL, graph_mode: bool) -> None:
    """An exception, nothing leaked, the next run right: at a first run, a recording, a replay, on either device."""
    faults = 0
    for device in (0, 1):
        for earlier in range(4):
            for step in range(200):
                with Model.from_library(tiny, "cuda", constants={"w": W, "b": B}) as model:
                    case = Case(model, device)
                    for _ in range(earlier):
                        model.run(case.inputs, case.outputs, graph_mode=graph_mode)
                    one = partial(model.run, case.inputs, case.outputs, graph_mode=graph_mode)
                    failed = _with_fault(fake, step, one)
                    ctypes.memset(case.outputs[0].data_ptr(), 255, case.y.nbytes)
                    for _ in range(3):
                        model.run(case.inputs, case.outputs, graph_mode=graph_mode)
                        case.check()
                    del case, one
                    if failed is None:
                        break
                    faults += 1
            else:
                pytest.fail("no end of faults")
    assert faults >= 16
    assert fake.fake_objects() == 0
    assert fake.fake_bytes(0) == fake.fake_bytes(1) == 0


def test_a_fault_at_each_step_of_a_load_and_of_setting_constants(tiny: Path, fake: ctypes.CDLL) -> None:
    def load() -> Model:
        return Model.from_library(tiny, "cuda", constants={"w": W, "b": B})

    loads = 0
    while (error := _with_fault(fake, loads, lambda: load().close())) is not None:
        assert isinstance(error, RunError | OutOfMemoryError), "a device that fails while a model is closed says so"
        loads += 1
    assert loads > 3 and fake.fake_bytes(0) == 0
    with load() as model:
        cases = [Case(model, device) for device in (0, 1)]
        steps = 0
        while _with_fault(fake, steps, lambda: model.set_constants({"w": W, "b": B})) is not None:
            model.set_constants({"w": W, "b": B})
            for case in cases:
                model.run(case.inputs, case.outputs)
                case.check()
            steps += 1
        assert steps > 3
        del cases, case
    assert fake.fake_objects() == 0 and fake.fake_bytes(0) == fake.fake_bytes(1) == 0


def test_a_run_that_failed_later_is_an_error_of_close(tiny: Path, fake: ctypes.CDLL) -> None:
    """Unless another error is under way; the model is free either way, and in a forked process nothing is waited for."""

    def model_with_a_run(fails: bool = True) -> Model:
        model = Model.from_library(tiny, "cuda", constants={"w": W, "b": B})
        case = Case(model, 0)
        model.run(case.inputs, case.outputs, sync=False)
        if fails:
            fake.fake_fault_after(0)
        return model

    model = model_with_a_run()
    with pytest.raises(RunError, match="an earlier run failed on the device"):
        model.close()
    model.close()
    with pytest.raises(RunError, match="an earlier run failed on the device"), model_with_a_run():
        pass
    with pytest.raises(ValueError, match="of the caller"), model_with_a_run():
        raise ValueError("of the caller")
    assert fake.fake_steps_left() < 0
    model = model_with_a_run(fails=False)
    if os.fork() == 0:
        fake.fake_fault_after(0)
        model.close()
        os._exit(0)
    assert os.wait()[1] == 0
    model.close()
    assert fake.fake_objects() == 0 and fake.fake_bytes(0) == fake.fake_bytes(1) == 0


def _with_fault(fake: ctypes.CDLL, step: int, body: Callable[[], object]) -> Exception | None:
    """The error of `body`, if its step `step` is made to fail; None if it has fewer, or goes on without it."""
    fake.fake_fault_after(step)
    try:
        body()
    except (RunError, OutOfMemoryError) as error:
        return error
    finally:
        left = fake.fake_steps_left()
        fake.fake_fault_after(-1)
    return None if left >= 0 else RuntimeError("the run went on without the step")


# ** several streams **

NUMBERS = "!ait.tensor<64 x 64 x f16>"
KERNEL = """
extern "C" __attribute__((weak)) int ait_test_launch(void* stream, void (*body)(const void*), const void* work, size_t bytes, int count);
struct Work { void* out; const void* ins[8]; int count; };
static int32_t add_up(const ait::Context& ctx, const Work& work) {  // every byte of the result: 1 + the sum of the operands'
  const auto body = [](const void* data) {
    const Work& w = *static_cast<const Work*>(data);
    for (int i = 0; i < 8192; ++i) {
      unsigned char sum = 1;
      for (int k = 0; k < w.count; ++k) sum += static_cast<const unsigned char*>(w.ins[k])[i];
      static_cast<unsigned char*>(w.out)[i] = sum;
    }
  };
  return ait_test_launch(ctx.stream, body, &work, sizeof(work), 1 + work.count) == 0 ? 0 : ctx.fail("a launch failed");
}
"""


def parallel_chains() -> str:
    """Two chains of launches behind one, and a launch that reads their ends."""
    lines = [f"%0 = ait.cumulative sum %x dim 1 : {NUMBERS}"]
    for b in range(2):
        for i in range(5):
            source = "%0" if i == 0 else f"%b{b}_{i - 1}"
            lines.append(f"%b{b}_{i} = ait.cumulative sum {source} dim {b} : {NUMBERS}")
    lines.append(f"%y = ait.add %b0_4, %b1_4 : {NUMBERS}")
    body = "\n  ".join([*lines, f'ait.output "y" %y : {NUMBERS}'])
    return f"ait.graph @net(%x: {NUMBERS}) {{\n  {body}\n}}\n"


def streamed_library(folder: Path, if_recorded: bool) -> Path:
    """The program of these chains as it is generated for a card, with kernels of the test."""
    module = parse_source(context(), SourceText("<text>", parallel_chains()))
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a", streams=4))
    program = program_of(module)
    assert {op.on for op in program.launches()} == {0, 1}
    program.properties.pop("streams_if_recorded", None)
    if if_recorded:
        program.properties["streams_if_recorded"] = UnitAttr()
    text = emit_program(module, program, Target("cuda", "sm_90a")).files["program.cc"]
    kernels = ['#include "ait/context.h"', "#include <cstddef>", KERNEL]
    for name, parameters in re.findall(r'extern "C" int32_t (k_\w+)\((.*)\);', text):
        types = [part.strip() for part in parameters.split(",")]
        ins = sum(t == "const void*" for t in types)
        named = ", ".join(f"{t} p{i}" for i, t in enumerate(types))
        operands = ", ".join(f"p{1 + i}" for i in range(ins))
        kernels.append(
            f'extern "C" int32_t {name}({named}) {{ return add_up(p0, Work{{p{1 + ins}, {{{operands}}}, {ins}}}); }}'
        )
    files = {"program.cc": text, "kernels.cc": "\n".join(kernels)}
    return build.build_library(files, Target("cpu", "native"), folder)


@pytest.mark.parametrize("if_recorded", [False, True])
def test_plain_runs_use_one_stream_where_the_program_says_so(
    fake: ctypes.CDLL, tmp_path: Path, if_recorded: bool
) -> None:
    """The streams and events of plain runs, of recordings and of recordings of the caller, and the results of all."""
    import tvm_ffi

    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, 8192, dtype=np.uint8)
    chain = x + np.uint8(6)  # the first launch and five more
    expected = chain * np.uint8(2) + np.uint8(1)
    with Model.from_library(streamed_library(tmp_path, if_recorded), "cuda") as model:
        given, found = (
            model._library.module.empty(0, tvm_ffi.dtype("float16"), tvm_ffi.Shape((64, 64))) for _ in range(2)
        )
        ctypes.memmove(given.data_ptr(), x.ctypes.data, x.nbytes)
        for how in ("plain", "first with graphs", "recording", "replay", "plain"):
            fake.fake_forget()
            ctypes.memset(found.data_ptr(), 0, x.nbytes)
            model.run([given], [found], graph_mode=how != "plain")
            y = np.frombuffer(ctypes.string_at(found.data_ptr(), x.nbytes), np.uint8)
            np.testing.assert_array_equal(y, expected)
            if how == "replay":
                continue
            several = how == "recording" or not if_recorded
            assert fake.fake_streams() == (2 if several else 1)
            assert fake.fake_events() == (4 if several else 0)
        assert model.stats()["graph_captures"] == model.stats()["graph_hits"] == 1
        del given, found


def test_a_forked_process_is_told_so(model: Model, tiny: Path) -> None:
    """Of a model of the parent, and of one that the child would load."""
    case = Case(model, 0)
    reads, writes = os.pipe()
    if os.fork() == 0:
        told: list[str] = []
        for use in (
            lambda: model.run(case.inputs, case.outputs),
            lambda: model.allocate_memory(16),
            lambda: model.set_constant("w", W),
            lambda: Model.from_library(tiny, "cuda"),
        ):
            try:
                use()
                told.append("works")
            except Exception as error:
                told.append(f"{type(error).__name__}: {error}")
        os.write(writes, "\n".join(told).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as file:
        lines = file.read().splitlines()
    os.wait()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("RunError: CUDA was used before this process was forked"), lines
    model.run(case.inputs, case.outputs)
    case.check()
