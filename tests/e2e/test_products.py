"""Products of the builder, compiled for the CPU in one model: launches that read and write where
the others expect it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.frontend import IntVar, JaggedDim, Tensor, compile_model, ops
from ait_mlir.frontend.ops import CausalType
from tests.frontend.support import evaluate

BATCH, SEQ, TOTAL = IntVar([1, 8], name="batch"), IntVar([1, 16], name="seq"), IntVar([0, 48], name="total")
LONGEST = 6


class Inputs:
    """Makes inputs, by default of f32, and remembers them."""

    def __init__(self) -> None:
        self.made: list[Tensor] = []

    def __call__(self, *shape, dtype: str = "float32") -> Tensor:
        x = Tensor(shape=list(shape), dtype=dtype, name=f"x{len(self.made)}", is_input=True)
        self.made.append(x)
        return x


def results(x: Inputs) -> dict[str, Tensor]:
    q, k, v = x(BATCH, SEQ, 8), x(BATCH, SEQ, 8), x(BATCH, SEQ, 4)
    a, w, c = x(SEQ, 8), x(6, 8), x(6)
    ends = x(3, dtype="int32")
    offsets = x(BATCH + 1, dtype="int32")
    jagged = ops.make_jagged(BATCH, [JaggedDim(0, LONGEST)])(
        [x(TOTAL, 2, 8), x(TOTAL, 2, 8), x(TOTAL, 2, 4)], [offsets]
    )
    heads = [x(BATCH, SEQ, 2, 8), x(BATCH, SEQ, 2, 8), x(BATCH, SEQ, 2, 4)]
    exp = ops.elementwise(ops.FuncEnum.EXP)
    upper, lower = CausalType.UPPER_RIGHT_EMPTY, CausalType.LOWER_LEFT_EMPTY
    groups = [[a, w, c], [x(SEQ, 3), x(5, 3), x(5)], [x(SEQ, 16), x(7, 16), x(7)]]
    return {
        "joined": ops.group_gemm_rcr_bias_sigmoid()(groups, output_stride_dim=1),
        "group": ops.group_gemm_rcr_bias_relu()([[x(BATCH, 4), x(3, 4), x(3)], [x(7, 9), x(2, 9), x(2)]])[1],
        "ragged": ops.ragged_gemm()(a, x(3, 8, 5), ends),
        "ragged_view": ops.ragged_gemm()(a, ops.permute021()(x(3, 5, 8)), ends),
        "softmax": ops.gemm_rcr_bias_softmax()(a, w, bias=c),
        "bmm_softmax": ops.bmm_rcr_softmax()(q, k),
        "small": ops.gemm_rrr_small_nk()(a, x(8, 7)),
        "n1": ops.bmm_rcr_n1()(q, x(BATCH, 1, 8), 0.5),
        "k1": ops.bmm_rrr_k1_tanh()(x(BATCH, SEQ, 1), x(BATCH, 1, 5)),
        "div": ops.dual_bmm_rrr_div()(exp(q), x(BATCH, 8, 4), exp(x(BATCH, 8, 1))),
        "perm102": ops.perm102_bmm_rcr_bias()(x(SEQ, 3, 8), x(3, 6, 8), x(3, 6)),
        "perm102_rrr": ops.perm102_bmm_rrr()(x(SEQ, 3, 8), x(3, 8, 6)),
        "perm021": ops.perm021fc_ccr_bias()(x(BATCH, 8, SEQ), x(1, 6, 8), c),
        "perm021_permute": ops.perm021fc_ccr_bias_permute()(x(BATCH, 8, SEQ), x(1, 6, 8), c),
        "perm021_crc": ops.perm021fc_crc_bias()(x(1, 8, 6), x(BATCH, 8, SEQ), c),
        "attend": ops.bmm_softmax_bmm(0.3)(q, k, v),
        "attend_permute": ops.bmm_softmax_bmm_permute((2,), 0.3, True)(x(6, SEQ, 8), x(6, SEQ, 8), x(6, SEQ, 4)),
        "classic": ops.classic_b2b_bmm(lower, "Sigmoid", 0.3, 0.7, True)(q, k, v, x(BATCH, SEQ, SEQ)),
        "fmha": ops.fmha_style_b2b_bmm(upper, "SiLu", 0.3, 0.7)(*heads, x(1, 1, SEQ, SEQ)),
        "sequences": ops.grouped_fmha_style_b2b_bmm(upper, "SiLu", 0.3, 0.7, True)(*jagged),
        "cat": ops.concatenate_tanh()([q, v], dim=2),
        "norms": ops.group_layernorm_sigmoid_mul()([q, a], [x(8), None], [x(8), None], [[8], [8]])[0],
        "batch_norm": ops.batch_layernorm_sigmoid_mul()(q, x(BATCH, 8), x(BATCH, 8)),
        "places": ops.arange("float32")(BATCH, BATCH + SEQ) * ops.arange("float32")(SEQ),
    }


@pytest.mark.full
def test_products_run_as_the_reference_says(tmp_path: Path) -> None:
    inputs = Inputs()
    outputs = [y.mark_as_output(name) for name, y in results(inputs).items()]
    rng = np.random.default_rng(0)
    with compile_model(outputs, "cpu", tmp_path, "products") as model:
        for batch, seq in ((3, 9), (1, 1)):
            lengths = rng.integers(0, LONGEST + 1, batch)
            dims = {"batch": batch, "seq": seq, "total": int(lengths.sum())}
            given = {
                t.name or "": rng.standard_normal([d.evaluate(dims) for d in t.type.dims]).astype(t.dtype())
                for t in inputs.made
            }
            ends, offsets = (t.name or "" for t in inputs.made if t.dtype() == "int32")
            given[ends] = np.array([2, -1, 5], np.int32)
            given[offsets] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            got = model.run_with_tensors({n: torch.from_numpy(a) for n, a in given.items()})
            want = evaluate(outputs, given, **dims)
            for y, expected in zip(outputs, want, strict=True):
                np.testing.assert_allclose(got[y.name].numpy(), expected, rtol=2e-5, atol=2e-5, err_msg=y.name or "")
