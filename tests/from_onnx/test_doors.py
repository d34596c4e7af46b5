"""A network by `torch.onnx` and by `torch.export`: the same results, and launches that differ only as listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxscript", reason="torch.onnx exports with onnxscript, which is not installed")
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

from ait_mlir.driver import program_of, run_to_phase  # noqa: E402
from ait_mlir.importers.onnx import import_model  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.options import CompileOptions  # noqa: E402
from ait_mlir.reference import evaluate_graph  # noqa: E402
from ait_mlir.tools.report import report  # noqa: E402

BATCH, SEQ = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("seq", min=1, max=64)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


class First(torch.nn.Module):
    """The first result of a model, called with positional arguments."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, first: Any, second: Any = None) -> Any:
        given = (first,) if second is None else (first, second)
        return self.model(**dict(zip(self.names, given, strict=True)))[0]


def tokens(batch: int, seq: int) -> dict[str, Any]:
    return {
        "input_ids": torch.arange(batch * seq).reshape(batch, seq) % 90,
        "attention_mask": torch.ones(batch, seq, dtype=torch.long),
    }


def images(batch: int, seq: int) -> dict[str, Any]:
    return {"pixel_values": torch.linspace(-1, 1, batch * 3 * 32 * 32).reshape(batch, 3, 32, 32)}


def made(name: str, **options: Any) -> Callable[[], Any]:
    config = getattr(transformers, name.replace("Model", "Config"))
    return lambda: getattr(transformers, name)(config(**options))


TOKENS, IMAGES = ({0: BATCH, 1: SEQ}, {0: BATCH, 1: SEQ}), ({0: BATCH},)
NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[int, int], dict[str, Any]], Any, int, str]] = {
    "bert": (
        made("BertModel", vocab_size=99, **SMALL),
        tokens,
        TOKENS,
        2,
        "positions and masks are computed in the run",
    ),
    "vit": (
        made("ViTModel", image_size=32, patch_size=8, **SMALL),
        images,
        IMAGES,
        1,
        "a mask that is true everywhere",
    ),
    "gpt2": (
        made("GPT2Model", vocab_size=99, n_embd=32, n_layer=2, n_head=4, use_cache=False),
        tokens,
        TOKENS,
        0,
        "the same number",
    ),
    "resnet": (
        made("ResNetModel", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
        images,
        IMAGES,
        0,
        "the exporter folds batch norms into convolutions",
    ),
}
"""The network, its inputs and dynamic dims, how many more launches it has by ONNX at most, and why."""


def launches(module: Any) -> Counter[str]:
    """The operations of the launches on the CPU, without what is joined to them."""
    run_to_phase(module, "planned", CompileOptions("cpu", "native"))
    program = program_of(module)
    dims = {n: v for n, v in {"batch": 2, "seq": 16}.items() if n in program.scope}
    return Counter(launch.op.split("_")[0] for launch in report(module, program, dims).launches)


@pytest.mark.parametrize("name", [n if n == "bert" else pytest.param(n, marks=pytest.mark.full) for n in NETWORKS])
def test_both_doors_give_the_same_results_and_launches(name: str, tmp_path: Path) -> None:
    make, inputs, shapes, more, why = NETWORKS[name]
    torch.manual_seed(0)
    given = inputs(3, 7)
    model = First(make().eval(), list(given)).eval()
    path = tmp_path / f"{name}.onnx"
    torch.onnx.export(
        model, tuple(given.values()), path, dynamo=True, dynamic_shapes=(*shapes, *(None,) * (2 - len(shapes)))[: len(given)],
        input_names=list(given), verbose=False, report=False,
    )  # fmt: skip
    dims = {"batch": (1, 8), "seq": (1, 64)} if inputs is tokens else {"batch": (1, 8)}
    imported = import_model(path, dims=dims)
    for batch, seq in ((3, 7), (1, 1), (2, 16)):
        now = inputs(batch, seq)
        with torch.no_grad():
            exact = model.double()(*(v.double() if v.is_floating_point() else v for v in now.values())).numpy()
        model.float()
        sizes = {d.name: batch if d.name == "batch" else seq for d in imported.graph.scope}
        arrays = {n: now[n].numpy() for n in imported.inputs}
        (found,) = evaluate_graph(imported.graph, arrays, imported.constants, sizes).values()
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    other = from_torch(model, tuple(given.values()), dynamic_shapes=shapes)
    ours, theirs = launches(imported.module), launches(other.module)
    for op in ("attention", "gemm", "conv"):
        assert ours[op] == theirs[op], op
    assert sum(ours.values()) <= sum(theirs.values()) + more, why
