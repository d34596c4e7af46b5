"""The documented name of an operator, `gemm_rcr_bias_relu`, from an op of `ait`: its layout, window and epilogue."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.grouped import GroupedGemmOp, GroupedNormOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.norm import GroupNormOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.frontend.ops.elementwise import OPS as FUNCTIONS
from ait_mlir.frontend.ops.elementwise import FuncEnum

Grouped = GroupedGemmOp | GroupedNormOp

NAMES = {
    "ait.slice": "dynamic_slice",
    "ait.concat": "concatenate",
    "ait.layer_norm": "layernorm",
    "ait.attention": "mem_eff_attention",
    "ait.jagged_to_padded": "jagged_to_padded_dense",
    "ait.padded_to_jagged": "padded_dense_to_jagged",
    "ait.jagged_vector_product": "batched_dense_vec_jagged_2d_mul",
    "ait.search_sorted": "search_sorted",
}
"""Documented names of operators that differ from the op's name."""

PERMUTES: dict[tuple[int, ...], str] = {
    (0, 2, 1): "permute021",
    (1, 0, 2): "permute102",
    (2, 1, 0): "permute210",
    (0, 2, 1, 3): "permute0213",
}

WORDS: dict[type[Operation], str] = {
    ait.ReluOp: "relu",
    ait.SigmoidOp: "sigmoid",
    ait.TanhOp: "tanh",
    ait.GeluOp: "gelu",
    ait.FastGeluOp: "fast_gelu",
    ait.SiluOp: "swish",
}
"""Words of composite names for functions of one operand."""

FUNC_OF: dict[type[Operation], FuncEnum] = {op: func for func, op in FUNCTIONS.items()}
"""The function that `elementwise` applies, by its op."""


def documented_name(op: Operation) -> str:
    """AITemplate's name for the operator that computes `op`; for other ops a derived name."""
    if type(op) in FUNC_OF:
        return "elementwise"
    if isinstance(op, ait.FusedElementwiseOp):
        return "fused_elementwise"
    if isinstance(op, ReshapeOp):
        return "identity" if op.input.type == op.results[0].type else "reshape"
    if isinstance(op, PermuteOp):
        return PERMUTES.get(op.order(), "permute")
    if isinstance(op, ReduceOp):
        return op.kind.data if op.kind.data == "var" else f"reduce_{op.kind.data}"
    if isinstance(op, ContractionOp | GroupedGemmOp):
        return _with_epilogue(op, _product(op))
    if isinstance(op, ConvOp):
        return _with_epilogue(op, _convolution(op))
    if isinstance(op, GroupedNormOp):
        return _with_epilogue(op, "group_layernorm" if op.kind.data == "layer" else "group_rms_norm")
    if isinstance(op, GroupNormOp):
        return _with_epilogue(op, "group_norm")
    return NAMES.get(op.name) or derived_name(op)


def alpha_of(op: Operation) -> float | None:
    """The factor that an epilogue applies to the product first; None if there is none."""
    steps = _steps(op) if isinstance(op, HasEpilogue) and op.epilogue.blocks else None
    return steps[1] if steps else None


def _product(op: Operation) -> str:
    base = {"ait.grouped_gemm": "group_gemm", "ait.gated_gemm": "dual_gemm"}.get(op.name, op.name.removeprefix("ait."))
    layout = op.properties.get("layout")
    return f"{base}_{layout.data}" if isinstance(layout, StringAttr) else base


def _convolution(op: ConvOp) -> str:
    base = f"{'transposed_' if op.transposed is not None else ''}conv{tensor_type(op.operands[0]).rank - 2}d"
    groups = 1 if op.groups is None else op.groups.value.data
    if groups > 1 and tensor_type(op.operands[1]).dims[-1].as_int() == 1 and op.transposed is None:
        return f"{base}_depthwise"
    return base


def _with_epilogue(op: HasEpilogue | Grouped, base: str) -> str:
    if not op.epilogue.blocks:
        return base
    found = _steps(op)
    return derived_name(op) if found is None else "_".join([base, *found[0]])


def _sums(op: HasEpilogue | Grouped) -> int:
    return 1 if isinstance(op, Grouped) else op.SUMS


def _steps(op: HasEpilogue | Grouped) -> tuple[list[str], float | None] | None:
    """The words of an epilogue of one result that is a chain of documented steps, and the factor before them."""
    last = op.epilogue.block.last_op
    if _sums(op) != 1 or last is None or len(last.operands) != 1:
        return None
    block = op.epilogue.block
    current: SSAValue = block.args[0]
    words: list[str] = []
    alpha: float | None = None
    for inner in block.ops:
        if isinstance(inner, ait.YieldOp | ConstantOp):
            continue
        if current not in inner.operands:
            return None
        if type(inner) in WORDS:
            words.append(WORDS[type(inner)])
        elif (
            isinstance(inner, ait.MulOp) and not words and alpha is None and (n := _number(inner, current)) is not None
        ):
            alpha = n
        elif (word := _combines(op, block, inner, current)) is not None:
            words.append(word)
        else:
            return None
        current = inner.results[0]
    return (words, alpha) if last.operands[0] is current else None


def _number(op: Operation, current: SSAValue) -> float | None:
    """The constant by which the accumulator is multiplied; None if there is none."""
    other = op.operands[1] if op.operands[0] is current else op.operands[0]
    return other.owner.splat() if isinstance(other.owner, ConstantOp) else None


def _combines(op: HasEpilogue | Grouped, block: Block, inner: Operation, current: SSAValue) -> str | None:
    """The word for an op that adds or multiplies an epilogue operand; None for other ops and repeated operands."""
    if not isinstance(inner, ait.AddOp | ait.MulOp):
        return None
    others = [v for v in inner.operands if v is not current]
    if len(others) != 1 or others[0] not in block.args[_sums(op) :]:
        return None
    if isinstance(inner, ait.MulOp):
        return "mul"
    added = op.epilogue_operands[block.args.index(others[0]) - _sums(op)]  # pyright: ignore[reportArgumentType]
    return "bias" if tensor_type(added).rank == 1 else "add"
