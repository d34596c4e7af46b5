"""What cuDNN's attention takes, what it is told, and that our declarations of cuDNN agree with its header."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.attention_cudnn import CudnnAttention
from ait_mlir.selection.shortlist import best_by_estimate
from tests.kernels.cudnn import LONGER, cudnn_attention, cudnn_cases
from tests.kernels.harness import Case

ROOT = Path(__file__).parents[2]
CUDA = Target("cuda", "sm_90a")
KERNEL = CudnnAttention()
SAME = {"cols": "s", "sizes": "dims {b = 1 to 9, s = 1 to 512}"}


def case(**options: object) -> Case:
    return cudnn_attention(options.pop("t", "f16"), (), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", cudnn_cases())
def test_takes(name: str) -> None:
    made = cudnn_cases()[name]
    assert KERNEL.matches(made.op, CUDA)
    assert "cudnn" in {k.provider for k in kernels_for(made.op, CUDA)}


@pytest.mark.parametrize(
    "options",
    [
        {"t": "f32"},
        {"t": "f64"},
        {"depth": "12"},
        {"width": "4"},
        {"depth": "136"},
        {"width": "256"},
        {"depth": "d", "sizes": "dims {b = 1 to 9, s = 1 to 9, l = 1 to 9, d = 8 to 8}"},
        {"sizes": "dims {b = 1 to 9, s = 1 to 9, l = 0 to 9}"},
        {"flags": "causal", "sizes": LONGER},
        {"flags": "window 3", "sizes": LONGER},
        {"mask": "b x 3 x s x l"},
        {"flags": "no_softmax"},
        {"sizes": "dims {b = 1 to 4294967296, s = 1 to 9, l = 1 to 9}"},
    ],
    ids=str,
)
def test_declines(options: dict[str, object]) -> None:
    made = case(**options)
    assert not KERNEL.matches(made.op, CUDA)
    assert "cudnn" not in {k.provider for k in kernels_for(made.op, CUDA)}


@pytest.mark.parametrize("target", [Target("cpu", "native"), Target("rocm", "gfx90a")])
def test_declines_other_targets(target: Target) -> None:
    assert not KERNEL.matches(case().op, target)


@pytest.mark.parametrize(
    ("position", "strides", "takes"),
    [
        (0, "576*s, 64, 576, 1", True),
        (3, "192*s, 64, 192, 1", True),
        (0, "576*s, 64, 572, 1", False),
        (1, "576*s, 68, 576, 1", False),
        (2, "s, 64, 576, 1", False),
        (2, "576*s, 0, 576, 1", False),
        (1, "192*s, 64*s, 1, s", False),
    ],
)
def test_strides(position: int, strides: str, takes: bool) -> None:
    op = case().op
    steps = tuple(parse(s) for s in strides.split(","))
    assert KERNEL.accepts(op, position, steps, scope_of(op)) is takes


def test_without_a_card_it_is_not_chosen() -> None:
    op = case(**SAME).op
    found = list(candidates_of(op, CUDA))
    (cudnn,) = (f for f in found if "cudnn" in f.describe())
    assert cudnn.only_timed
    assert best_by_estimate(found) != cudnn
    assert best_by_estimate([replace(f, seconds=f.seconds * (1 if f is cudnn else 9)) for f in found]) != cudnn
    assert best_by_estimate([cudnn]) is cudnn


def test_what_it_is_told() -> None:
    made = cudnn_cases()["causal-bf16"]
    _, code = made.code(0, CUDA)
    for line in (
        "args.dtype = AIT_BF16;",
        "args.causal = 1;",
        "args.window = 0;",
        "args.groups = 3;",
        "args.cols = dim_1;",
        "args.strides_q[1] = (64 * dim_1);",
        "args.scale = 0x1.0000000000000p-3f;",
        "return ait::library_attention(ctx, args);",
    ):
        assert line in code, code


def test_workspace_of_few_rows_holds_the_parts_of_a_split() -> None:
    few, many = (case(sizes=f"dims {{b = 1 to 9, s = 1 to {rows}, l = 1 to 2048}}").op for rows in (16, 17))
    assert KERNEL.workspace(many, {}).as_int() == 256
    # 8 parts of 66 numbers of 4 bytes for each row of 3 heads
    assert str(KERNEL.workspace(few, {})) == "6336*b*s + 256"
    huge = case(sizes="dims {b = 1 to 1000000, s = 1 to 16, l = 1 to 2048}").op
    assert KERNEL.workspace(huge, {}).as_int() == 256


def test_says_what_is_missing(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    source = tmp_path / "load.cc"
    source.write_text(
        '#include <stdio.h>\n#include "cuda/cudnn_api.h"\nint main(int, char** argv) {\n  ait::runtime::dnn::Api api;\n'
        "  std::string error;\n  const bool good = api.load({argv[1], argv[2]}, &error);\n"
        "  puts(error.c_str());\n  return good;\n}\n"
    )
    program = tmp_path / "load"
    include = ROOT / "runtime/src"
    subprocess.run(["g++", "-std=c++17", f"-I{include}", str(source), "-o", str(program), "-ldl"], check=True)
    done = subprocess.run([str(program), "/nowhere/libcudnn.so.9", "libm.so.6"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "cuDNN cannot be loaded: install nvidia-cudnn-cu13, or set AIT_CUDNN" in done.stdout
    assert "/nowhere/libcudnn.so.9: " in done.stdout
    assert "libm.so.6: has no cudnnGetVersion" in done.stdout
