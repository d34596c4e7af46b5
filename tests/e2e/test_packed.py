"""Gemms on the CPU whose weights lie in panels: which are chosen, what the runtime library stores, and the products."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.dialects.ait_rt.buffers import ConstantOp
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.host.cpu import instruction_sets
from ait_mlir.lowering.kernels import Target
from ait_mlir.runtime.loading import runtime_library
from tests.e2e.support import Compiled, compile_graph

EPILOGUE = """ epilogue(%e{i}, %r{i}) {{
  ^bb0(%acc: {t}, %0: {t}, %1: {t}):
    %s = ait.add %acc, %0 : {t}
    %g = ait.gelu %s : {t}
    %y = ait.add %1, %g : {t}
    ait.yield %y : {t}
  }}"""
KINDS = [("f32", "rcr"), ("f32", "rrr"), ("f64", "rcr"), ("f64", "rrr"), ("f16", "rcr"), ("bf16", "rrr")]
SHAPES = [(1, 2), (5, 130), (45, 7), (48, 16), (96, 515), (129, 70), (7, 0)]  # n, k
BYTES = [("i8", "rcr", 70), ("ui8", "rcr", 3), ("i8", "rrr", 67), ("ui8", "rrr", 64)]  # k
NARROW = (1, 4, 6)
"""The shapes that are products of f16 and bf16, too."""


def one(i: int, t: str, layout: str, n: int, k: int, epilogue: bool) -> tuple[str, str]:
    """An input and a gemm with a weight of its own, or with one that two or three params make up."""
    rows, cols = (n, k) if layout[1] == "c" else (k, n)
    text = ""
    if rows > 4:
        parts = [rows // 3, rows - rows // 3 - 1, 1]
        for j, part in enumerate(parts):
            text += f'  %w{i}_{j} = ait.param "w{i}.{j}" : !ait.tensor<{part} x {cols} x {t}>\n'
        names = ", ".join(f"%w{i}_{j}" for j in range(3))
        text += f"  %w{i} = ait.concat {names} dim 0 : !ait.tensor<{rows} x {cols} x {t}>\n"
    else:
        text += f'  %w{i} = ait.param "w{i}" : !ait.tensor<{rows} x {cols} x {t}>\n'
    result = f"!ait.tensor<b x m x {n} x {t}>"
    inputs = f"%x{i}: !ait.tensor<b x m x {k} x {t}>"
    after = ""
    if epilogue:
        text += f'  %e{i} = ait.param "e{i}" : !ait.tensor<{n} x {t}>\n'
        inputs += f", %r{i}: {result}"
        after = EPILOGUE.format(i=i, t="f64" if t == "f64" else "f32")
    text += f"  %y{i} = ait.gemm {layout} %x{i}, %w{i}{after} : {result}\n"
    return inputs, text + f'  ait.output "y{i}" %y{i} : {result}\n'


@pytest.fixture(scope="module")
def gemms(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    made = [
        one(len(KINDS) * s + i, t, layout, n, k, (s + i // 2) % 2 == 0)
        for s, (n, k) in enumerate(SHAPES)
        for i, (t, layout) in enumerate(KINDS)
        if s in NARROW or t in ("f32", "f64")
    ]
    inputs = ", ".join(i for i, _ in made)
    text = f"ait.graph @g({inputs}) dims {{b = 0 to 4, m = 0 to 300}} {{\n{''.join(body for _, body in made)}}}\n"
    return compile_graph(text, tmp_path_factory.mktemp("packed"))


def test_every_weight_lies_in_panels(gemms: Compiled) -> None:
    """But for those without elements."""
    weights = [op for op in gemms.planned.walk() if isinstance(op, ConstantOp) and op.buffer_type.rank == 2]
    weights = [op for op in weights if op.buffer_type.num_elements().as_int() != 0]
    assert len(weights) == 4 * (len(SHAPES) - 1) + 2 * (len(NARROW) - 1)
    assert {op.panels.data for op in weights if op.panels is not None} == {"nk", "kn"}
    assert all(op.panels is not None for op in weights)


@pytest.mark.usefixtures("unit")
@pytest.mark.parametrize("m", [0, 1, 2, 7, 8, 9, 23, 63, 64, 65, 130, 300])
def test_products(gemms: Compiled, m: int) -> None:
    assert gemms.problems({"b": 1, "m": m}) == []
    assert gemms.problems({"b": 3, "m": m}, seed=1) == []


def test_products_of_bytes(tmp_path: Path) -> None:
    """Weights of 8 bits, also of several params, lie in panels of fours; products with inputs have the kernel for any
    strides."""
    made = [one(i, t, layout, 101, k, False) for i, (t, layout, k) in enumerate(BYTES)]
    inputs = [i for i, _ in made]
    body = "".join(re.sub(r"(%y\d+.*|output.*) i?u?i8>", r"\1 i32>", text) for _, text in made)
    inputs.append("%v: !ait.tensor<70 x m x i8>")
    body += "  %z = ait.gemm ccr %v, %w0 : !ait.tensor<m x 101 x i32>\n"
    body += '  ait.output "z" %z : !ait.tensor<m x 101 x i32>\n'
    text = f"ait.graph @g({', '.join(inputs)}) dims {{b = 1 to 3, m = 0 to 300}} {{\n{body}}}\n"
    compiled = compile_graph(text, tmp_path)
    constants = [op for op in compiled.planned.walk() if isinstance(op, ConstantOp)]
    assert sorted(str(op.panels and op.panels.data) for op in constants) == ["None", "kn", "kn", "nk", "nk"]
    for m in (0, 1, 9, 300):
        assert compiled.problems({"b": 2, "m": m}) == []


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """One weight read in panels of both kinds, row-major by an output, and a product with an input that looks alike."""
    return compile_graph(
        """ait.graph @g(%x: !ait.tensor<m x 50 x f32>, %v: !ait.tensor<50 x 50 x f32>, %z: !ait.tensor<50 x m x f32>)
      dims {m = 1 to 40} {
  %w = ait.param "w" : !ait.tensor<50 x 50 x f32>
  %h = ait.param "h" : !ait.tensor<50 x 50 x f16>
  %a = ait.gemm rcr %x, %w : !ait.tensor<m x 50 x f32>
  %b = ait.gemm rrr %x, %w : !ait.tensor<m x 50 x f32>
  %c = ait.gemm rcr %x, %v : !ait.tensor<m x 50 x f32>
  %d = ait.gemm ccr %z, %w : !ait.tensor<m x 50 x f32>
  %e = ait.relu %w : !ait.tensor<50 x 50 x f32>
  %f = ait.gemm rcr %w, %w : !ait.tensor<50 x 50 x f32>
  %i = ait.cast %x : !ait.tensor<m x 50 x f16>
  %j = ait.gemm rcr %i, %h : !ait.tensor<m x 50 x f16>
  ait.output "a" %a : !ait.tensor<m x 50 x f32>
  ait.output "b" %b : !ait.tensor<m x 50 x f32>
  ait.output "c" %c : !ait.tensor<m x 50 x f32>
  ait.output "d" %d : !ait.tensor<m x 50 x f32>
  ait.output "e" %e : !ait.tensor<50 x 50 x f32>
  ait.output "f" %f : !ait.tensor<50 x 50 x f32>
  ait.output "j" %j : !ait.tensor<m x 50 x f16>
}
""",
        tmp_path_factory.mktemp("mixed"),
    )


def test_a_weight_in_several_layouts(mixed: Compiled) -> None:
    constants = [op for op in mixed.planned.walk() if isinstance(op, ConstantOp)]
    layouts = [(op.param_names(), None if op.panels is None else op.panels.data) for op in constants]
    assert sorted(layouts, key=str) == sorted([(["h"], "nk"), (["w"], None), (["w"], "nk"), (["w"], "kn")], key=str)
    assert mixed.problems({"m": 1}) == []
    assert mixed.problems({"m": 33}) == []


def test_what_is_not_a_weight_keeps_its_kernel(mixed: Compiled) -> None:
    """A product with an input and a transposed left side are left to the other kernels."""
    kernels = [op for op in mixed.planned.walk() if isinstance(op, KernelOp)]
    assert sum(op.provider.data == "packed" for op in kernels) == 4


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_named_processors(arch: str, tmp_path: Path) -> None:
    """The same layout, and the same blocks of attention, on registers of 16, 32 and 64 bytes, the last with and without tiles."""
    if arch == "x86-64-v3" and not {"avx2", "fma", "f16c", "bmi2"} <= instruction_sets():
        pytest.skip("this processor has no AVX2")
    if arch == "x86-64-v4" and not {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= instruction_sets():
        pytest.skip("this processor has no AVX-512")
    weights = [one(i, t, layout, 101, 70, t == "f32") for i, (t, layout) in enumerate(KINDS[::2])]
    inputs = [
        *(i for i, _ in weights),
        *(f"%{n}: !ait.tensor<b x m x 3 x 40 x f32>" for n in "qkv"),
    ]
    permuted = "".join(f"  %{n}p = ait.permute %{n} [0, 2, 1, 3] : !ait.tensor<b x 3 x m x 40 x f32>\n" for n in "qkv")
    body = "".join(text for _, text in weights) + permuted
    body += "  %at = ait.attention %qp, %kp, %vp scale 0.2 : !ait.tensor<b x 3 x m x 40 x f32>\n"
    body += '  ait.output "at" %at : !ait.tensor<b x 3 x m x 40 x f32>\n'
    text = f"ait.graph @g({', '.join(inputs)}) dims {{b = 1 to 2, m = 1 to 200}} {{\n{body}}}\n"
    compiled = compile_graph(text, tmp_path, target=Target("cpu", arch))
    for m in (1, 13, 150):
        assert compiled.problems({"b": 2, "m": m}) == []


@pytest.mark.usefixtures("unit")
def test_infinities_and_nan(gemms: Compiled) -> None:
    assert gemms.problems({"b": 1, "m": 65}, special=True) == []


def test_the_matrix_unit_may_be_refused() -> None:
    """By the environment, when the process begins."""
    code = "from ait_mlir.runtime.loading import runtime_library; print(runtime_library('cpu').may_use_amx())"
    told = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "AIT_AMX": text}, capture_output=True, text=True
        )
        for text in ("0", "1")
    ]
    assert [run.returncode for run in told] == [0, 0]
    assert told[0].stdout == "False\n"
    assert told[1].stdout == f"{runtime_library('cpu').may_use_amx()}\n"


def test_a_weight_may_change(gemms: Compiled) -> None:
    """Setting a constant again stores it in panels again."""
    inputs = gemms.inputs({"b": 1, "m": 9})
    before = gemms.run(inputs)["y12"].copy()
    value = np.asarray(gemms.params["w12.1"])
    gemms.model.set_constant("w12.1", -value)
    try:
        changed = gemms.run(inputs)["y12"]
        assert not np.array_equal(changed, before)
    finally:
        gemms.model.set_constant("w12.1", value)
    np.testing.assert_array_equal(gemms.run(inputs)["y12"], before)


RESHAPED = """ait.graph @g(%x: !ait.tensor<b x 36 x f32>, %s: !ait.tensor<b x 1 x f32>, %i: !ait.tensor<b x 5 x 5 x 16 x f32>) dims {b = 1 to 9} {
  %w = ait.param "nk" : !ait.tensor<50 x 3 x 3 x 4 x f32>
  %0 = ait.reshape %w : !ait.tensor<50 x 36 x f32>
  %1 = ait.gemm rcr %x, %0 : !ait.tensor<b x 50 x f32>
  ait.output "nk" %1 : !ait.tensor<b x 50 x f32>
  %v = ait.param "kn" : !ait.tensor<36 x 4 x 5 x f32>
  %2 = ait.reshape %v : !ait.tensor<36 x 20 x f32>
  %3 = ait.gemm rrr %x, %2 : !ait.tensor<b x 20 x f32>
  ait.output "kn" %3 : !ait.tensor<b x 20 x f32>
  %4 = ait.gemm rcr %x, %0 : !ait.tensor<b x 50 x f32>
  %5 = ait.reshape %w : !ait.tensor<25 x 72 x f32>
  %6 = ait.concat %x, %x dim 1 : !ait.tensor<b x 72 x f32>
  %7 = ait.gemm rcr %6, %5 : !ait.tensor<b x 25 x f32>
  ait.output "other rows" %7 : !ait.tensor<b x 25 x f32>
  %u = ait.param "row" : !ait.tensor<8 x f32>
  %8 = ait.reshape %u : !ait.tensor<8 x 1 x f32>
  %9 = ait.gemm rcr %s, %8 : !ait.tensor<b x 8 x f32>
  ait.output "row" %9 : !ait.tensor<b x 8 x f32>
  %c = ait.param "window" : !ait.tensor<16 x 144 x f32>
  %10 = ait.reshape %c : !ait.tensor<16 x 3 x 3 x 16 x f32>
  %11 = ait.conv %i, %10 pad [1, 1] {kernel = #ait.kernel<"winograd", {}>} : !ait.tensor<b x 5 x 5 x 16 x f32>
  ait.output "window" %11 : !ait.tensor<b x 5 x 5 x 16 x f32>
}
"""


def test_weights_in_another_shape(tmp_path: Path) -> None:
    """They lie in panels if their rows stay rows."""
    compiled = compile_graph(RESHAPED, tmp_path)
    constants = [op for op in compiled.planned.walk() if isinstance(op, ConstantOp)]
    layouts = {(op.param_names()[0], None if op.panels is None else op.panels.data) for op in constants}
    assert layouts == {("nk", "nk"), ("kn", "kn"), ("nk", None), ("row", None), ("window", "winograd")}
    assert compiled.problems({"b": 9}) == []


def test_dequantised_operands_are_multiplied_as_they_are_stored(tmp_path: Path) -> None:
    """One launch reads the stored bytes of the weight, in panels, and scales the sums; zero points are sums of their own."""
    text = """ait.graph @g(%q: !ait.tensor<m x 64 x ui8>, %s: !ait.tensor<m x 1 x f32>, %r: !ait.tensor<m x 64 x i8>, %z: !ait.tensor<ui8>)
      dims {m = 1 to 40} {
  %w = ait.param "w" : !ait.tensor<50 x 64 x i8>
  %t = ait.param "t" : !ait.tensor<50 x 1 x f32>
  %c = ait.param "c" : !ait.tensor<50 x f32>
  %v = ait.dequantize %w scale %t : !ait.tensor<50 x 64 x f32>
  %x = ait.dequantize %r scale %s : !ait.tensor<m x 64 x f32>
  %a = ait.gemm rcr %x, %v : !ait.tensor<m x 50 x f32>
  %b = ait.add %a, %c : !ait.tensor<m x 50 x f32>
  %y = ait.relu %b : !ait.tensor<m x 50 x f32>
  %u = ait.dequantize %q scale %s zero %z : !ait.tensor<m x 64 x f32>
  %d = ait.gemm rcr %u, %v : !ait.tensor<m x 50 x f32>
  ait.output "y" %y : !ait.tensor<m x 50 x f32>
  ait.output "d" %d : !ait.tensor<m x 50 x f32>
}
"""
    compiled = compile_graph(text, tmp_path)
    kernels = [op for op in compiled.planned.walk() if isinstance(op, KernelOp) and "gemm" in op.sym_name.data]
    assert [op.provider.data for op in kernels] == ["packed", "packed"]
    panels = [op.panels.data for op in compiled.planned.walk() if isinstance(op, ConstantOp) and op.panels is not None]
    assert panels == ["nk"]
    for m in (1, 13, 40):
        assert compiled.problems({"m": m}) == []
