"""Attention on cuDNN on the card: against float64, beside PyTorch's own, in a CUDA graph, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.runtime.loading import cudnn_candidates
from tests.gpu.libraries import library_of
from tests.kernels.cudnn import ENVS, cudnn_attention, cudnn_cases
from tests.kernels.harness import Case, Library, check
from tests.kernels.library_gemm import GemmLibrary, on_kernel

pytestmark = pytest.mark.gpu

CASES = cudnn_cases()
# The weights are rounded to the element type before the second product.
MANY = 140
"""More shapes than there are plans kept."""
FLOOR = {"f16": 1e-3, "bf16": 8e-3}

HEADS = "dims {b = 1 to 64, s = 1 to 4096}"
BESIDE = {
    f"{name}-{t}": on_kernel(cudnn_attention(t, (), cols="s", sizes=HEADS, **options), "cudnn")  # type: ignore[arg-type]
    for t in ("f16", "bf16")
    for name, options in {
        "64": {"heads": 12, "groups": 12},
        "128-causal": {"heads": 32, "groups": 8, "depth": "128", "width": "128", "flags": "causal"},
    }.items()
}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    os.environ.setdefault("AIT_CUDNN", cudnn_candidates()[0])
    return library_of(request, CASES, BESIDE, kind=GemmLibrary)


@pytest.mark.parametrize("name", CASES)
def test_cudnn(library: Library, name: str) -> None:
    t = name.rsplit("-", 1)[-1]
    check(library, CASES[name], 0.6, FLOOR[t])


def tensors(t: str, batch: int, heads: int, groups: int, rows: int, width: int):
    import torch

    torch.manual_seed(rows)
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[t]
    shapes = [(batch, count, rows, width) for count in (heads, groups, groups)]
    q, k, v = (torch.randn(shape, dtype=kind, device="cuda") for shape in shapes)
    return q, k, v, torch.full_like(q, float("nan"))


def exact(q, k, v, causal: bool):
    import torch

    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = q.double() @ k.mT * 0.125
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(("batch", "rows"), [(1, 128), (2, 197), (1, 512)])
def test_error_is_that_of_torch(library: Library, name: str, batch: int, rows: int) -> None:
    import torch

    causal, t = "causal" in name, name.rsplit("-", 1)[-1]
    heads, groups, width = (32, 8, 128) if causal else (12, 12, 64)
    q, k, v, o = tensors(t, batch, heads, groups, rows, width)
    library.call(BESIDE[name], {"b": batch, "s": rows}, [x.data_ptr() for x in (q, k, v, o)])
    torch.cuda.synchronize()
    theirs = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, scale=0.125, enable_gqa=heads != groups
    )
    want = exact(q, k, v, causal)
    errors = [(x.double() - want).abs() for x in (o, theirs)]
    assert errors[0].max() <= 2 * errors[1].max()
    assert errors[0].square().mean().sqrt() <= 1.5 * errors[1].square().mean().sqrt()


def test_replays_in_a_graph_after_many_other_shapes(library: Library) -> None:
    """More shapes than plans are kept: those that a recorded graph launches stay, others go and are made again."""
    import torch

    case = BESIDE["64-f16"]
    q, k, v, o = tensors("f16", 2, 12, 12, 128, 64)
    pointers = [x.data_ptr() for x in (q, k, v, o)]
    dims = {"b": 2, "s": 128}
    library.call(case, dims, pointers)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), pytest.raises(RuntimeError, match="run once before"):
        library.call(case, {"b": 2, "s": 96}, pointers, torch.cuda.current_stream().cuda_stream)
    want = o.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        library.call(case, dims, pointers, torch.cuda.current_stream().cuda_stream)
    for rows in range(1, MANY):
        library.call(case, {"b": 1, "s": rows}, pointers)
    o.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, want)


def test_refuses_misaligned_tensors(library: Library) -> None:
    case = on_kernel(cudnn_attention("f16", ENVS[:1]), "cudnn")
    assert isinstance(case, Case)
    q, k, v, o = tensors("f16", 2, 12, 12, 128, 64)
    pointers = [q.data_ptr() + 2, k.data_ptr(), v.data_ptr(), o.data_ptr()]
    with pytest.raises(RuntimeError, match="16-byte boundaries"):
        library.call(BESIDE["64-f16"], {"b": 1, "s": 64}, pointers)


def model_text(provider: str) -> str:
    head = "!ait.tensor<b x 12 x s x 64 x f16>"
    lines = [
        f"  %{n}0 = ait.slice %x offsets [0, 0, {768 * i}] : !ait.tensor<b x s x 768 x f16>\n"
        f"  %{n}1 = ait.reshape %{n}0 : !ait.tensor<b x s x 12 x 64 x f16>\n"
        f"  %{n} = ait.permute %{n}1 [0, 2, 1, 3] : {head}\n"
        for i, n in enumerate("qkv")
    ]
    return (
        "ait.graph @heads(%x: !ait.tensor<b x s x 2304 x f16>) dims {b = 1 to 8, s = 1 to 512} {\n"
        + "".join(lines)
        + f'  %a = ait.attention %q, %k, %v scale 0.125 {{kernel = #ait.kernel<"{provider}", {{}}>}} : {head}\n'
        + "  %p = ait.permute %a [0, 2, 1, 3] : !ait.tensor<b x s x 12 x 64 x f16>\n"
        + "  %y = ait.reshape %p : !ait.tensor<b x s x 768 x f16>\n"
        + '  ait.output "y" %y : !ait.tensor<b x s x 768 x f16>\n}\n'
    )


def test_a_model_reads_and_writes_in_place_and_replays(tmp_path: Path) -> None:
    import torch

    module = parse_text(context(), model_text("cudnn"))
    path = compile_module(module, CompileOptions("cuda"), output=tmp_path / "heads.ait")
    names = [str(op.kernel.root_reference.data) for op in module.walk() if isinstance(op, LaunchOp)]
    assert names == ["attention_0"]  # it reads the parts of the input and writes the output where they lie
    with Model(path) as model:
        for batch, rows in ((1, 128), (8, 512), (2, 77)):
            x = torch.randn(batch, rows, 2304, device="cuda", dtype=torch.float16)
            y = torch.empty(batch, rows, 768, device="cuda", dtype=torch.float16)
            q, k, v = (part.unflatten(2, (12, 64)).transpose(1, 2) for part in x.split(768, 2))
            want = exact(q, k, v, False).transpose(1, 2).flatten(2)
            for _ in range(4):  # plainly, recorded, replayed
                y.fill_(float("nan"))
                model.run_with_tensors({"x": x}, {"y": y}, graph_mode=True)
                torch.cuda.synchronize()
                assert (y.double() - want).abs().max() < 1e-3
        assert model.graph_stats()["fallbacks"] == 0
