"""The layers of an imported model whose weights can be quantised, and their quantised form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.compositions.quantize import SMALLEST, rounded
from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.base import PureOp
from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME, LARGEST, integer_range, ui8
from ait_mlir.dialects.ait.elementwise import AbsOp, ClampOp, ExpOp, ReluOp, SigmoidOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.pool import AdaptivePoolOp, PoolOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, PermuteOp, ReshapeOp
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.params import WriterBefore, after
from ait_mlir.importers.checkpoints.stored import Array, StoredWeight
from ait_mlir.importers.quantized.recipes import Recipe
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.fold_params import closure, graph_of
from ait_mlir.passes.parse import parse_passes
from ait_mlir.reference.folds import Fold
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.attention_stored import may_read_float8
from ait_mlir.rewrites.families import pattern_set

TYPES = ("float16", "bfloat16", "float32")
Reader = GemmOp | ConvOp


@dataclass(frozen=True)
class Layer:
    """A weight of a model, and the products or convolutions with it."""

    name: str
    """The name of the weight without `.weight`."""
    weight: str
    """The name of the param from which the weight is computed."""
    value: SSAValue
    """The weight as its readers read it: the param, or what a few ops compute of params."""
    readers: tuple[Reader, ...]

    @property
    def stored(self) -> str:
        """The name of the params with the stored numbers, without their last part."""
        return self.weight if self.weight.removesuffix(".weight") == self.name else f"{self.name}.weight"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weight as its readers read it."""
        return tensor_type(self.value).static_shape() or ()

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the quantised weight, which has a row for each column of the result."""
        return self.shape[::-1] if self._is_turned else self.shape

    @property
    def _is_turned(self) -> bool:
        reader = self.readers[0]
        return isinstance(reader, GemmOp) and reader.layout.data == "rrr"

    def whole(self, constants: Mapping[str, Array]) -> Array:
        """The weight; raises `InputError` if a number is not finite."""
        if isinstance(self.value.owner, ParamOp):
            found = constants[self.weight]
        else:
            found = Fold("", graph_of(self.value, closure(self.value), 0)).value(constants)
        if not np.isfinite(found.astype(np.float32)).all():
            raise InputError(f"the weight {self.weight!r} has numbers that are not finite, which no scale fits")
        return found

    def rows(self, whole: Array) -> Array:
        """A weight of this layer as a matrix with a row for each column of the result."""
        return np.ascontiguousarray(whole.T) if self._is_turned else whole.reshape(len(whole), -1)

    def of_rows(self, rows: Array) -> Array:
        """The inverse of `rows`."""
        return np.ascontiguousarray(rows.T if self._is_turned else rows).reshape(self.shape)


@dataclass(frozen=True)
class Attended:
    """An attention whose q, k and v can be quantised."""

    name: str
    """`attention.0`, `attention.1`, ... in the order of the model."""
    op: AttentionOp

    @property
    def shape(self) -> tuple[int, ...]:
        """The heads, and the columns of a head, where these are known."""
        dims = tensor_type(self.op.q).dims
        return tuple(size for d in (dims[1], dims[3]) if (size := d.as_int()) is not None)


def prepared(module: ModuleOp) -> ModuleOp:
    """A copy of a module in which convolutions read channels-last values and weights with the factors of batch norms.

    A module without convolutions is only copied.
    """
    module = module.clone()
    if any(isinstance(op, ConvOp) for op in module.walk()):
        run_passes(context(), module, parse_passes("channels-last"), verify="end")
        rewrite(module, pattern_set("conv:FACTORS", "view:VIEWS"))
    return module


def graph_in(module: ModuleOp) -> GraphOp:
    """The graph of an imported module."""
    return next(op for op in module.ops if isinstance(op, GraphOp))


def attentions_of(module: ModuleOp, recipe: Recipe, leave_out: Sequence[str] = ()) -> list[Attended]:
    """The attentions that a recipe quantises, but for those whose names match one of the patterns `leave_out`.

    These are the ones that a kernel for 8-bit floats takes. All are none where the recipe does not quantise them.
    """
    ops = [op for op in graph_in(module).block.ops if recipe.attends and isinstance(op, AttentionOp)]
    found = [Attended(f"attention.{i}", op) for i, op in enumerate(ops) if may_read_float8(op)]
    return [at for at in found if not any(fnmatchcase(at.name, pattern) for pattern in leave_out)]


def layers_of(module: ModuleOp, recipe: Recipe, leave_out: Sequence[str] = ()) -> list[Layer]:
    """The weights that only products by rows or by columns, or only convolutions read, in the order of the model.

    A weight is a param or is computed from params. Depthwise convolutions and transposed ones are no layers, and all
    are none where the recipe does not quantise them. Layers whose names match one of the patterns `leave_out` are
    missing. Raises `InputError` for a pattern that no layer and no attention matches.
    """
    graph = graph_in(module)
    fixed: set[SSAValue] = set()
    for op in graph.block.ops:
        if isinstance(op, ParamOp | ConstantOp) or (op.operands and all(v in fixed for v in op.operands)):
            fixed.update(op.results)
    weights = dict.fromkeys(
        op.operands[1] for op in graph.block.ops if isinstance(op, GemmOp | ConvOp) and op.operands[1] in fixed
    )
    found: list[Layer] = []
    for value in weights:
        uses = list(value.uses)
        readers = [use.operation for use in uses if use.index == 1 and _is_plain(use.operation)]
        plain = [op for op in readers if isinstance(op, GemmOp | ConvOp)]
        alike = len({type(op) for op in plain}) == 1 and len(plain) == len(uses)
        if alike and BY_IR[tensor_type(value).element_type].name in TYPES:
            params = [op for op in closure(value) if isinstance(op, ParamOp)]
            largest = max(params, key=lambda p: tensor_type(p.output).num_elements().evaluate({}), default=None)
            if largest is None or not _is_read_by_layers(largest.output, fixed):
                continue
            weight = largest.param_name.data
            name, taken = weight.removesuffix(".weight"), {layer.name for layer in found}
            name = next(n for n in (name, *(f"{name}.{i}" for i in range(1, len(found) + 2))) if n not in taken)
            found.append(Layer(name, weight, value, tuple(plain)))
    if not recipe.convolves:
        found = [layer for layer in found if isinstance(layer.readers[0], GemmOp)]
    attentions = [at.name for at in attentions_of(module, recipe)]
    for pattern in leave_out:
        if not any(fnmatchcase(name, pattern) for name in (*(layer.name for layer in found), *attentions)):
            names = ", ".join([*(layer.name for layer in found[:8]), *attentions[:1]]) or "none"
            raise InputError(f"no layer matches {pattern!r}, which is to be left out; the layers are {names}")
    return [layer for layer in found if not any(fnmatchcase(layer.name, pattern) for pattern in leave_out)]


def _is_read_by_layers(value: SSAValue, fixed: set[SSAValue]) -> bool:
    """Whether a value that is computed from a param is only used as the weight of products and convolutions."""
    for use in value.uses:
        results = use.operation.results
        if any(result in fixed for result in results):
            if not all(_is_read_by_layers(result, fixed) for result in results):
                return False
        elif use.index != 1 or not _is_plain(use.operation):
            return False
    return True


def _is_plain(op: Operation) -> bool:
    """Whether an op is a product by rows or columns, or a convolution with whole channels, without an epilogue."""
    if isinstance(op, GemmOp):
        return op.layout.data in ("rcr", "rrr") and not op.epilogue.blocks
    if not isinstance(op, ConvOp) or op.epilogue.blocks or op.is_transposed():
        return False
    return tensor_type(op.weight).dims[-1].as_int() != 1 or op.num_groups() == 1


# ** what is multiplied with a weight **


@dataclass(frozen=True)
class Range:
    """How the activations of a layer are rounded: one scale for all runs, found with examples, and no zero point."""

    element: Attribute
    scale: float

    @classmethod
    def of(cls, element: Attribute, most: float) -> Range:
        """For values whose largest magnitude is `most`."""
        largest = LARGEST.get(element) or float((integer_range(element) or (0, 1))[1])
        return cls(element, max(float(np.float32(most) / np.float32(largest)), SMALLEST))


def element_of_range(layer: Layer, recipe: Recipe) -> Attribute:
    """The type to which the input of a layer is rounded with one scale for all runs: that of the recipe, else i8.

    For convolutions whose inputs are never below 0 it is ui8.
    """
    if recipe.activations is not None and recipe.activations.is_static:
        return BY_NAME[recipe.activations.element].ir
    return ui8 if all(is_never_negative(reader.operands[0]) for reader in layer.readers) else i8


def is_never_negative(value: SSAValue) -> bool:
    """Whether the ops that compute a value are known to give no number below 0."""
    while isinstance(owner := value.owner, Operation):
        if isinstance(owner, ReluOp | SigmoidOp | AbsOp | ExpOp):
            return True
        if isinstance(owner, ClampOp) and owner.low is not None and owner.low.value.data >= 0:
            return True
        if not isinstance(owner, PermuteOp | ReshapeOp | ExpandOp | PoolOp | AdaptivePoolOp):
            return False
        value = owner.operands[0]
    return False


def needs_range(layer: Layer, recipe: Recipe) -> bool:
    """Whether the recipe quantises the other factor of a layer with one scale for all runs."""
    given = recipe.activations
    return given is not None and (given.is_static or isinstance(layer.readers[0], ConvOp))


def quantise_layers(
    layers: Sequence[Layer],
    constants: dict[str, Array],
    recipe: Recipe,
    weights: Mapping[str, StoredWeight],
    ranges: Mapping[str, Range],
) -> None:
    """Let the readers of layers read quantised weights, and quantise what they multiply where the recipe does.

    `weights` are the stored weights and `ranges` the scales for all runs, by the name of the layer. `constants` get the
    stored arrays in place of the weights.
    """
    made: dict[tuple[SSAValue, Range | None], SSAValue] = {}
    activations = recipe.activations
    for layer in layers:
        stored, owner, given = weights[layer.name], layer.value.owner, ranges.get(layer.name)
        assert isinstance(owner, Operation)
        w = WriterBefore(owner)
        value = w.reshape(stored.write(w, layer.stored, tensor_type(layer.value).element_type), layer.stored_shape)
        constants.update(stored.parts(layer.stored))
        for reader in layer.readers:
            x = reader.operands[0]
            if activations is not None and (x, given) not in made:
                w = WriterBefore(after(x))
                if given is None:
                    made[x, given] = activations.rounded(w, x)
                else:
                    made[x, given] = rounded(w, x, given.element, scale=w.scalar(given.scale, f32))
            x = made.get((x, given), x)
            if isinstance(reader, GemmOp):
                reader.output.replace_all_uses_with(WriterBefore(reader).put(GemmOp("rcr", x, value)))
                reader.detach()
                reader.erase()
            else:
                reader.operands[0], reader.operands[1] = x, value


def quantise_attentions(attentions: Sequence[Attended], element: Attribute, ranges: Mapping[str, Range]) -> None:
    """Round q, k and v of attentions with the scale that `ranges` has for the name."""
    for at in attentions:
        made: dict[SSAValue, SSAValue] = {}
        for i, x in enumerate(at.op.operands[:3]):
            if x not in made:
                w = WriterBefore(after(x))
                made[x] = rounded(w, x, element, scale=w.scalar(ranges[at.name].scale, f32))
            at.op.operands[i] = made[x]


def remove_unused(module: ModuleOp, constants: dict[str, Array]) -> None:
    """Remove params that nothing reads any more, with their data, and ops whose results nothing reads."""
    for op in reversed(list(graph_in(module).block.ops)):
        if op.results and isinstance(op, PureOp | ParamOp) and not any(r.uses for r in op.results):
            if isinstance(op, ParamOp):
                constants.pop(op.param_name.data, None)
            op.detach()
            op.erase()
