"""The tables of passes and phases: the pattern sets of each pass, and the passes of each phase.

The tables hold only names; modules are imported on first use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ait_mlir.errors import AitError
from ait_mlir.rows import Row, table

if TYPE_CHECKING:
    from ait_mlir.lowering.target import Capability
    from ait_mlir.rewrites.engine.language import PatternSet


@dataclass(frozen=True)
class Pass(Row):
    """A pass defined by a class; `module` is its module, relative to `ait_mlir`."""

    module: str
    cls: str
    optimizes: bool = False
    """Whether a model can be compiled without it."""

    def load(self) -> type[Any]:
        """The class of the pass."""
        return getattr(import_module(f"ait_mlir.{self.module}"), self.cls)


@dataclass(frozen=True)
class Patterns(Row):
    """A pass that applies sets of patterns, `FAMILY:SET` of `ait_mlir.rewrites`, together until none matches."""

    summary: str
    sets: tuple[str, ...]
    dialect: str = "ait"
    """The dialect whose operations the patterns may match by trait or name."""
    assumption: str = ""
    """The assumption that a module must declare for the pass to apply (`assumptions.py`); empty if none."""
    capability: Capability | None = None
    """The capability that the target must have for the pass to apply, or that it must lack; None if any will do."""
    lacking: bool = False

    def load(self) -> type[Any]:
        """The class of the pass."""
        from ait_mlir.passes.patterns import pattern_pass

        return pattern_pass(
            self.name, self.summary, self.sets, self.dialect, self.assumption, self.capability, self.lacking
        )


SIMPLIFY = (
    "elementwise.algebra:ALGEBRA",
    "elementwise.clamp:CLAMP",
    "bags:BAGS",
    "norm:SPELLINGS",
    "gemm.spellings:SPELLINGS",
    "rotary:ROTARY",
    "quantize:STORED",
    "view:VIEWS",
    "concat:CONCATS",
)

PASSES: dict[str, Pass | Patterns] = table(
    "passes",
    (
        Pass("shard-params", "passes.shard_params", "ShardParamsPass"),
        Pass("partition", "passes.partition", "PartitionPass"),
        Patterns(
            "narrow-row-ops",
            "Compute norms and softmax of widened values from the narrow type, where a framework's rounding may go.",
            ("norm:NARROW", "norm:SPELLINGS", "gemm.spellings:SPELLINGS"),
            assumption="framework_rounding",
        ),
        Patterns(
            "fuse-masked-attention",
            "Make attention whatever the spelling of its mask, where scores are finite.",
            (
                *SIMPLIFY,
                "attention_masks:CHOICES",
                "attention:ATTENTION",
                "attention_scores:SCORES",
                "attention_masks:TRIANGLES",
            ),
            assumption="finite_scores",
        ),
        Pass("channels-last", "passes.channels_last", "ChannelsLastPass"),
        Patterns(
            "simplify",
            "Remove neutral elements, identities and no-ops; compose and cancel views; name what models spell out.",
            (*SIMPLIFY, "conv:POINTS"),
        ),
        Patterns(
            "phase-convolutions",
            "Make plain convolutions of transposed ones whose weight follows from params, one for each phase of the"
            " stride, or one for all; a compilation that knows the data of the params does so before it folds them.",
            ("conv_phases:PHASES", "view:VIEWS"),
        ),
        Patterns(
            "multiply-planes",
            "Multiply channels-first images as they lie in memory; a compilation for a GPU that folds params does so.",
            ("gemm.planes:PLANES",),
        ),
        Patterns(
            "merge-concats",
            "Make one concat or split of nested ones; take pieces from what was joined; join neighbours by a slice.",
            ("view:VIEWS", "concat:CONCATS"),
        ),
        Patterns(
            "fold-factors",
            "Let factors and offsets that follow from params join weights and biases; a compilation that knows the"
            " data of the params does so before it folds them.",
            ("conv:FACTORS", "view:VIEWS"),
        ),
        Patterns(
            "block-channels",
            "Let convolutions with steps of 2 and few channels read blocks of places as channels, where what they read"
            " is finite; for targets with tensor cores, where the data of the params are known.",
            ("conv:BLOCKS", "view:VIEWS"),
            assumption="finite_images",
        ),
        Patterns(
            "fill-channels",
            "Give convolutions of odd channels whole accesses of 16 bytes; for targets with tensor cores, where the"
            " data of the params are known.",
            ("conv:CHANNELS", "view:VIEWS"),
        ),
        Patterns(
            "attend-float8",
            "Let attention read q, k and v of 8-bit floats as they are stored, on a card whose kernel does.",
            ("attention_stored:FLOATS",),
            capability="wgmma",
        ),
        Patterns(
            "fuse-attention",
            "Make attention of bmm, elementwise operations, softmax or not, bmm; let it share repeated heads, read"
            " concats in pieces, and compute what cheap operations make of smaller tensors.",
            (
                *("attention:ATTENTION", "attention_scores:SCORES", "attention_scores:PRODUCTS", "attention:HEADS"),
                *("attention:PIECES", "attention_masks:BROADCASTS", "attention_masks:ZEROS"),
                "attention_scores:OPERANDS",
            ),
        ),
        Patterns(
            "merge-parallel-gemms",
            "Multiply one input with several params at once, and add their biases at once.",
            ("gemm.products:PARALLEL_GEMMS",),
        ),
        Patterns(
            "merge-single-source-gemms",
            "Multiply one input with several params at once, whatever reads the products; add their biases at once.",
            ("gemm.products:SINGLE_SOURCE",),
        ),
        Patterns(
            "multiply-stored",
            "Multiply integers of 8 bits as they are stored, and scale the sums; read large weights of 4 and 8 bits as"
            " they are stored.",
            ("gemm.scaled:STORED", "gemm.stored:WEIGHTS"),
        ),
        Patterns(
            "multiply-float8",
            "Multiply floats of 8 bits as they are stored, and scale the sums, on a card that multiplies them; multiply"
            " one input with several of them at once.",
            ("gemm.products:STORED", "gemm.scaled:FLOATS", "quantize:GROUPS"),
            capability="float8",
        ),
        Patterns(
            "widen-float8",
            "Convert 8-bit floats that a target does not multiply.",
            ("gemm.scaled:WIDENED", "attention_stored:WIDENED"),
            capability="float8",
            lacking=True,
        ),
        Patterns(
            "convolve-stored",
            "Convolve integers of 8 bits as they are stored, and scale the sums, where kernels of bytes are faster; let"
            " what follows make integers again.",
            ("conv_stored:STORED",),
            capability="stored_panels",
        ),
        Patterns(
            "read-stored",
            "Read large weights of 4 and 8 bits as they are stored, for any number of rows, where kernels unpack them.",
            ("gemm.stored:ROWS",),
            capability="stored_panels",
        ),
        Patterns("fuse-bias", "Let a product add the bias that alone uses it.", ("gemm.epilogue:BIAS",)),
        Patterns(
            "fuse-epilogue",
            "Let elementwise operations that alone use a contraction, also behind a reshape, join its epilogue.",
            ("gemm.epilogue:EPILOGUE", "gemm.reshaped:RESHAPED"),
        ),
        Patterns("fuse-norm", "Let norms compute the residual sums that they read.", ("norm:NORM",)),
        Patterns(
            "fuse-elementwise",
            "Make one operation of connected elementwise operations.",
            ("elementwise.merge:ELEMENTWISE",),
        ),
        Patterns(
            "gate-products",
            "Make a gated product of a product and what alone reads both of its halves.",
            ("gemm.products:GATED_PRODUCTS",),
        ),
        Patterns(
            "fuse-siblings",
            "Make one launch of elementwise operations that are not connected; the last fusion, so that it takes"
            " nothing that another one would put elsewhere.",
            ("elementwise.siblings:SIBLINGS", "elementwise.neighbours:NEIGHBOURS"),
        ),
        Patterns(
            "fuse-results",
            "Let a product or convolution also compute what one launch makes of its result, which others read, too.",
            ("gemm.results:RESULTS",),
        ),
        Patterns(
            "quantize-results",
            "Let a product store its result in 8 bits, where the scale is known before the result.",
            ("gemm.quantized:RESULTS",),
            capability="mma",
        ),
        Patterns(
            "remove-no-ops",
            "Remove views to the type that a value has, splits into one part, concats of one.",
            ("documented:NO_OPS",),
        ),
        Patterns("remove-elementwise-no-ops", "Remove x + 0, x - 0, x * 1, x / 1.", ("documented:NEUTRAL",)),
        Patterns("merge-view-ops", "Make one reshape or expand of several in a row.", ("documented:VIEW_CHAINS",)),
        Patterns(
            "transform-permute-to-reshape",
            "Reshape instead of permuting where only dims of 1 move.",
            ("documented:ONES",),
        ),
        Patterns(
            "fuse-permute-bmm-and-gemm",
            "Read a transposed operand of a product in the other layout.",
            ("documented:TRANSPOSES",),
        ),
        Patterns(
            "fuse-expand-bmm",
            "Multiply what an expand repeats for the batch of the other factor, without repeating it.",
            ("gemm.batches:REPEATED",),
        ),
        Patterns(
            "expand-batches",
            "Expand factors of a product whose batch has more loops than kernels.",
            ("gemm.batches:MANY_LOOPS",),
        ),
        Patterns(
            "fuse-bmm-permute",
            "Store a product whose result is transposed in the other order.",
            ("gemm.batches:TRANSPOSED",),
        ),
        Patterns(
            "fuse-mm-reshape-permute",
            "Multiply in batches, one for each head, where the columns of a product are parted and moved.",
            ("gemm.batches:HEADS",),
        ),
        Patterns(
            "part-batches",
            "Give products the heads as a dim of their batch, where these are then moved after the rows.",
            ("gemm.batches:MERGED_HEADS",),
        ),
        Patterns(
            "join-parallel-gemms",
            "Make one batched product of neighbouring products of one size that a concat joins.",
            ("gemm.batches:NEIGHBOURS",),
        ),
        Patterns(
            "fuse-parallel-gemms",
            "Make one batched product of products of the parts of a tensor that a concat joins.",
            ("gemm.batches:SIDE_BY_SIDE",),
        ),
        Patterns(
            "apply-padding",
            "Fill odd sizes of products of two-byte elements with a zero, so that they are even.",
            ("gemm.padding:PADDING",),
        ),
        Patterns(
            "dedup-make-jagged-ops",
            "Let jagged views of one tensor with one set of offsets be one.",
            ("documented:JAGGED",),
        ),
        Pass("make-inputs-jagged", "passes.make_inputs_jagged", "MakeInputsJaggedPass"),
        Pass("rotate-products", "passes.rotate_products", "RotateProductsPass", optimizes=True),
        Pass("store-heads", "passes.store_heads", "StoreHeadsPass", optimizes=True),
        Pass("pad-products", "passes.pad_products", "PadProductsPass", optimizes=True),
        Pass("form-loops", "passes.form_loops", "FormLoopsPass", optimizes=True),
        Pass("quantize-attention", "passes.quantize_attention", "QuantizeAttentionPass", optimizes=True),
        Pass("form-recurrences", "passes.form_recurrences", "FormRecurrencesPass", optimizes=True),
        Pass("split-products", "passes.split_products", "SplitProductsPass", optimizes=True),
        Pass("group-products", "passes.group_products", "GroupProductsPass", optimizes=True),
        Pass("group-norms", "passes.group_norms", "GroupNormsPass", optimizes=True),
        Pass("group-embeddings", "passes.group_embeddings", "GroupEmbeddingsPass", optimizes=True),
        Pass("order-scatters", "passes.order_scatters", "OrderScattersPass", optimizes=True),
        Pass("join-norms", "passes.join_norms", "JoinNormsPass", optimizes=True),
        Patterns(
            "process-singleton-elementwise",
            "Make a fused_elementwise of each elementwise operation by itself.",
            ("documented:SINGLETONS",),
        ),
        Patterns(
            "transform-special-ops",
            "Make products of convolutions whose window is one element, and a multiplication of products with K = 1.",
            ("documented:SPECIAL",),
        ),
        Pass("remove-duplicates", "passes.remove_duplicates", "RemoveDuplicatesPass"),
        Pass("unroll-scans", "passes.unroll_scans", "UnrollScansPass"),
        Pass("apply-patterns", "passes.apply_patterns", "ApplyPatternsPass"),
        Pass("resolve-libraries", "passes.resolve_libraries", "ResolveLibrariesPass"),
        Pass("select", "selection.select", "SelectPass"),
        Pass("bufferize", "passes.bufferize", "BufferizePass"),
        Patterns(
            "remove-copies",
            "Read views in place and write into the parts of a concat, where the kernels accept the strides.",
            ("buffers:REMOVE_COPIES", "nested_buffers:NESTED"),
            dialect="ait_rt",
        ),
        Pass("lower-copies", "passes.lower_copies", "LowerCopiesPass"),
        Pass("assign-streams", "passes.assign_streams", "AssignStreamsPass"),
        Pass("plan-memory", "passes.plan_memory", "PlanMemoryPass"),
        Pass("verify-plan", "passes.checks.verify_plan", "VerifyPlanPass"),
    ),
)


def patterns_of(name: str) -> PatternSet:
    """The patterns of a pass of the table."""
    from ait_mlir.rewrites.families import pattern_set

    row = PASSES[name]
    assert isinstance(row, Patterns), f"{name} is no pass of patterns"
    return pattern_set(*row.sets)


@dataclass(frozen=True)
class Phase(Row):
    """A state of a module between import and artifact, and the passes that lead to it from the previous phase. `{card}`
    stands for the options of the target, `{order}` for these and whether floats are added in order, `{peers}` for these
    and whether cards write into each other's memory, `{target}` for the options of target and selection, `{streams}`
    for those of streams."""

    passes: tuple[str, ...] = ()


PHASE_TABLE: dict[str, Phase] = table(
    "phases",
    (
        Phase("imported"),
        Phase(
            "canonical",
            (
                "partition",
                "multiply-float8{{{card}}}",
                "multiply-stored",
                "convolve-stored{{{card}}}",
                "read-stored{{{card}}}",
                "widen-float8{{{card}}}",
                "narrow-row-ops",
                "fuse-masked-attention",
                "channels-last",
            ),
        ),
        Phase("simplified", ("unroll-scans", "simplify", "remove-duplicates")),
        Phase(
            "fused",
            (
                "form-recurrences{{{card}}}",
                "fuse-attention",
                "attend-float8{{{card}}}",
                "fuse-parallel-gemms",
                "merge-parallel-gemms",
                "simplify",
                "rotate-products{{{card}}}",
                "pad-products{{{card}}}",
                "split-products{{{card}}}",
                "fuse-expand-bmm",
                "expand-batches",
                "fuse-bmm-permute",
                "part-batches",
                "fuse-epilogue",
                "fuse-norm",
                "fuse-elementwise",
                "gate-products",
                "fuse-siblings",
                "fuse-results",
                "store-heads{{{card}}}",
                "quantize-results{{{card}}}",
                "remove-duplicates",
                "form-loops{{{card}}}",
                "quantize-attention{{{card}}}",
            ),
        ),
        Phase(
            "selected",
            (
                "resolve-libraries",
                "group-products{{{card}}}",
                "group-norms{{{card}}}",
                "group-embeddings{{{card}}}",
                "order-scatters{{{order}}}",
                "join-norms{{{peers}}}",
                "select{{{target}}}",
            ),
        ),
        Phase("bufferized", ("bufferize", "remove-copies", "lower-copies")),
        Phase("planned", ("assign-streams{{{streams}}}", "plan-memory", "verify-plan")),
        Phase("source"),
        Phase("built"),
    ),
)
"""The phases in order. `ait_mlir.lowering` makes `source` and `built` from a planned module."""

PHASES: tuple[str, ...] = tuple(PHASE_TABLE)


def _name(step: str) -> str:
    return step.partition("{")[0]


def _is_optimization(step: str) -> bool:
    row = PASSES[_name(step)]
    return row.optimizes if isinstance(row, Pass) else row.dialect == "ait"


def _distinct(steps: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_name, steps)))


OPTIMIZATIONS: tuple[str, ...] = _distinct(s for p in PHASE_TABLE.values() for s in p.passes if _is_optimization(s))
"""The passes on graphs that a model can be compiled without, in the order in which they first run."""

OPTIONAL: tuple[str, ...] = (*OPTIMIZATIONS, "remove-copies")
"""All passes that a model can be compiled without."""


def phase_index(phase: str) -> int:
    """The index of a phase in `PHASES`; `AitError` for an unknown phase."""
    if phase not in PHASES:
        raise AitError(f"unknown phase {phase!r}; the phases are {', '.join(PHASES)}")
    return PHASES.index(phase)


def check_optional(without: Collection[str]) -> None:
    """Raise `AitError` for a pass that is not `OPTIONAL`."""
    if needed := [name for name in without if name not in OPTIONAL]:
        raise AitError(f"cannot leave out {needed[0]!r}; a model can be compiled without {', '.join(OPTIONAL)}")


def passes_between(
    start: str,
    end: str,
    target: str = "cpu",
    arch: str = "",
    selection: str = "",
    *,
    without: Collection[str] = (),
    streams: int | None = None,
    waves: int = 0,
) -> str:
    """The pipeline that takes a module from phase `start` to phase `end`, without the passes in `without`. `selection`
    has further options of `select`; `streams` and `waves` are options of `assign-streams`. `AitError` for an unknown
    phase, the wrong order, or a pass in `without` that is not `OPTIONAL`."""
    first, last = phase_index(start), phase_index(end)
    if first > last:
        raise AitError(f"phase {end!r} comes before {start!r}; the phases are {', '.join(PHASES)}")
    check_optional(without)
    card = f'target="{target}"' + (f' arch="{arch}"' if arch else "")
    options = card + (f" {selection}" if selection else "")
    given = {"streams": streams, "waves": waves or None}
    limit = " ".join(f"{name}={value}" for name, value in given.items() if value is not None)
    steps = [step for phase in PHASES[first + 1 : last + 1] for step in PHASE_TABLE[phase].passes]
    steps = [step for step in steps if _name(step) not in without]
    order = card + " deterministic=false" * ("deterministic=false" in selection.split())
    peers = card + " peer-memory=false" * ("peer-memory=false" in selection.split())
    parts = {"card": card, "order": order, "peers": peers, "target": options, "streams": limit}
    return ",".join(step.format(**parts).removesuffix("{}") for step in steps)
