"""The ways to cut one op into ops that a kernel each can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.gemm import ContractionOp, GatedGemmOp, GemmOp
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.kernels.gemm_packed import is_weight


@dataclass(frozen=True)
class Fragment:
    """Ops that together compute what one op computes, in a graph of their own; views between them are not counted.

    `cut` is how many ops of the epilogue stay in the contraction, None for all.
    """

    ops: tuple[Operation, ...]
    graph: GraphOp
    cut: int | None = None


def fragments(op: Operation, target: Target) -> Iterator[Fragment]:
    """The op itself, and for a contraction on a GPU its epilogue cut after each op into a gemm and one fused kernel.

    A gated product is cut before its epilogue, on every target: few kernels have two sums of a result.
    """
    graph, alone = standalone(op, keep_weights=not target.is_gpu)
    yield Fragment((alone,), graph)
    for cut in _cuts(op, target):
        graph, alone = standalone(op, keep_weights=not target.is_gpu)
        parts = place(alone, cut)
        if len(parts) > 1:
            yield Fragment(parts, graph, cut)


def standalone(op: Operation, keep_weights: bool = False, shared: bool = True) -> tuple[GraphOp, Operation]:
    """A graph that holds a copy of `op` and nothing else, with the op's operands as inputs; and the copy.

    With `keep_weights` operands that are weights are params, so that kernels see that they can be packed. An operand
    that occurs twice is one input, unless `shared` is False.
    """
    operands = list(dict.fromkeys(op.operands) if shared else op.operands)
    weights = [v for v in operands if keep_weights and is_weight(v)]
    inputs = [v for v in operands if v not in weights]
    graph = GraphOp("candidate", [(f"x{i}", tensor_type(v)) for i, v in enumerate(inputs)], scope_of(op))
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, graph.block.args, strict=True))
    for i, value in enumerate(weights):
        param = ParamOp(f"w{i}", tensor_type(value))
        graph.block.add_op(param)
        mapping[value] = param.output
    clone = op.clone(mapping)
    for i, value in enumerate([] if shared else graph.block.args):
        clone.operands[i] = value
    clone.attributes.pop("kernel", None)
    graph.block.add_op(clone)
    for i, result in enumerate(clone.results):
        graph.block.add_op(OutputOp(f"y{i}", result))
    return graph, clone


def place(op: Operation, cut: int | None) -> tuple[Operation, ...]:
    """Cut `op` where it stands; returns the ops that are there now, but for views, `op` alone when it cannot be cut
    there."""
    if cut is None or not isinstance(op, ContractionOp):
        return (op,)
    parts = split_epilogue(op, cut)
    if parts is None or op.parent is None:
        return (op,)
    for part in parts:
        part.location = op.location
        op.parent.insert_op_before(part, op)
    op.results[0].replace_all_uses_with(parts[-1].results[0])
    parts[-1].results[0].name_hint = op.results[0].name_hint
    op.detach()
    op.erase()
    return tuple(part for part in parts if not isinstance(part, ViewLike))


def is_usual_cut(op: Operation, cut: int | None) -> bool:
    """Whether an op with this cut is as good a way to run it as any, by how it was written: whole, or a gated product
    as a product and its epilogue."""
    return cut is None or isinstance(op, GatedGemmOp)


def _cuts(op: Operation, target: Target) -> range:
    """After how many ops of its epilogue an op can be cut."""
    if isinstance(op, GatedGemmOp):
        return range(1)
    if not isinstance(op, ContractionOp) or not op.epilogue.blocks or not target.is_gpu:
        return range(0)
    return range(sum(1 for inner in op.epilogue.block.ops if inner.name not in ("ait.yield", "ait.constant")))


def split_epilogue(op: ContractionOp, cut: int) -> tuple[Operation, ...] | None:
    """The contraction with the first `cut` ops of its epilogue, and the rest as a fused elementwise op; of a gated
    product, all of whose epilogue is the rest, the view of the halves stands between them.

    None unless a single value crosses the cut. That value is stored in the operands' element type between the two, so
    this
    fragment rounds once more than the whole.
    """
    if isinstance(op, GatedGemmOp):
        return _halves(op) if cut == 0 else None
    block = op.epilogue.block
    inner = [o for o in block.ops if o.name not in ("ait.yield", "ait.constant")]
    head, tail = inner[:cut], inner[cut:]
    crossing = head[-1].results[0] if head else block.args[0]
    made_in_head = {r for o in head for r in o.results} | {block.args[0]}
    if any(v in made_in_head and v is not crossing for o in tail for v in o.operands):
        return None
    last = block.last_op
    assert last is not None
    if any(v in made_in_head and v is not crossing for v in last.operands):
        return None
    if crossing.type != compute_type(tensor_type(op.a).element_type):
        return None
    stored = tensor_type(op.output).dims, tensor_type(op.a).element_type
    result = type(tensor_type(op.output)).get(*stored)
    extras = list(op.epilogue_operands)
    gemm_operands, gemm_region = _copy_ops(block, head, block.args[0], crossing, extras) if head else ([], Region())
    gemm = type(op)(op.layout.data, op.a, op.b, gemm_operands, gemm_region, result)
    rest_operands, rest_region = _copy_ops(block, tail, crossing, last.operands[0], extras)
    rest = FusedElementwiseOp([gemm.output, *rest_operands], [op.output.type], rest_region)
    return gemm, rest


def _halves(op: GatedGemmOp) -> tuple[Operation, ...]:
    """A gated product as a product, a split and what the epilogue does."""
    result = tensor_type(op.output)
    *rows, columns = result.dims
    whole = TensorType.get((*rows, op.split_b()[2]), tensor_type(op.a).element_type)
    product = GemmOp(op.layout.data, op.a, op.b, (), None, whole)
    halves = SplitOp(product.output, result.rank - 1, [columns, columns])
    rest = FusedElementwiseOp([*halves.results, *op.epilogue_operands], [result], op.epilogue.clone())
    return product, halves, rest


def _copy_ops(
    block: Block, ops: list[Operation], first: SSAValue, result: SSAValue, extras: list[SSAValue]
) -> tuple[list[SSAValue], Region]:
    """A region that starts from `first`, runs copies of `ops` and yields `result`; and the extra tensors it reads."""
    new = Block(arg_types=[first.type])
    mapped: dict[SSAValue, SSAValue] = {first: new.args[0]}
    operands: list[SSAValue] = []
    for op in ops:
        for v in op.operands:
            if v in mapped:
                continue
            owner = v.owner
            if isinstance(owner, Block):
                index = list(block.args).index(v)  # pyright: ignore[reportArgumentType]
                mapped[v] = new.insert_arg(v.type, len(new.args))
                operands.append(extras[index - 1])
            else:
                constant = owner.clone()
                new.add_op(constant)
                mapped[v] = constant.results[0]
        clone = op.clone(mapped)
        new.add_op(clone)
        mapped.update(zip(op.results, clone.results, strict=True))
    new.add_op(YieldOp(mapped[result]))
    return operands, Region(new)
