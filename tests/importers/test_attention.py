"""The spellings of attention that PyTorch has: ranks, masks, groups of heads, and its fused kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ait_mlir.dialects.ait.attention import AttentionOp  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.reference import evaluate_graph  # noqa: E402

sdpa = torch.nn.functional.scaled_dot_product_attention
aten = torch.ops.aten
Q5, K5, Q4, K4 = (2, 3, 4, 5, 8), (2, 3, 4, 7, 8), (2, 4, 5, 8), (2, 4, 7, 8)
CASES: dict[str, tuple[Callable[..., Any], *tuple[tuple[int, ...], ...]]] = {
    "2 dims": (lambda q, k: sdpa(q, k, k), (5, 8), (7, 8)),
    "2 dims, mask": (lambda q, k, m: sdpa(q, k, k, m), (5, 8), (7, 8), (5, 7)),
    "3 dims, mask": (lambda q, k, m: sdpa(q, k, k, m), (4, 5, 8), (4, 7, 8), (4, 5, 7)),
    "3 dims, one mask": (lambda q, k, m: sdpa(q, k, k, m), (4, 5, 8), (4, 7, 8), (1, 5, 7)),
    "mask of each head": (lambda q, k, m: sdpa(q, k, k, m), Q4, K4, (4, 5, 7)),
    "bool mask of each batch": (lambda q, k, m: sdpa(q, k, k, m > -1), Q4, K4, (2, 1, 1, 7)),
    "causal, more columns": (lambda q, k: sdpa(q, k, k, is_causal=True), Q4, K4),
    "causal, more rows": (lambda q, k: sdpa(q, k, k, is_causal=True), K4, Q4),
    "groups": (lambda q, k: sdpa(q, k, k, enable_gqa=True, scale=0.3), Q4, (2, 2, 7, 8)),
    "5 dims": (lambda q, k: sdpa(q, k, k), Q5, K5),
    "5 dims, groups": (lambda q, k: sdpa(q, k, k, enable_gqa=True), Q5, (2, 3, 2, 7, 8)),
    "5 dims, causal": (lambda q, k: sdpa(q, k, k, is_causal=True), Q5, K5),
    "5 dims, mask of some batch dims": (lambda q, k, m: sdpa(q, k, k, m), Q5, K5, (3, 1, 5, 7)),
    "5 dims, mask": (lambda q, k, m: sdpa(q, k, k, m), Q5, K5, (*Q5[:3], 5, 7)),
    "5 dims, bool mask": (lambda q, k, m: sdpa(q, k, k, m > -1), Q5, K5, (2, 1, 1, 1, 7)),
    "flash on the CPU": (
        lambda q, k, m: aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, attn_mask=m)[0], Q4, K4, (*Q4[:3], 7)
    ),
    "products": (lambda q, k: aten._scaled_dot_product_attention_math(q, k, k, is_causal=True)[0], Q4, Q4),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_attention_is_one_op_and_means_what_pytorch_computes(name: str) -> None:
    function, *shapes = CASES[name]

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    torch.manual_seed(0)
    args = tuple(torch.randn(shape) for shape in shapes)
    imported = from_torch(Module().eval(), args)
    assert [isinstance(op, AttentionOp) for op in imported.graph.walk()].count(True) == 1
    given = {n: a.numpy() for (n, _), a in zip(imported.graph.inputs(), args, strict=True)}
    (found,) = evaluate_graph(imported.graph, given, imported.constants, {}).values()
    np.testing.assert_allclose(found, function(*args).numpy(), rtol=1e-5, atol=1e-6)


def test_the_fused_kernels_of_a_gpu_have_rows() -> None:
    """They cannot be traced here; each gives the result first, and some call the mask a bias."""
    from ait_mlir.importers.torch.rows import TABLE

    for kernel in ("cudnn", "efficient", "flash", "fused"):
        rows = [row for row in TABLE if f"_scaled_dot_product_{kernel}_attention" in row]
        assert rows, kernel
        for row in rows:
            schema = getattr(aten, row.split(".")[1]).default._schema
            names = {argument.name for argument in schema.arguments}
            assert {"query", "key", "value", "dropout_p", "is_causal"} <= names and schema.returns[0].name in (
                "output",
                "",
            )
