"""`torch.export` with its refusals as clear errors, and names for the dims that it finds."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import re
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

from ait_mlir.importers.torch.choices import ChoiceError
from ait_mlir.importers.torch.compositions import compositions
from ait_mlir.importers.torch.conditions import (
    ASSERTION,
    failing_conditions,
    is_proved,
    is_true_of_floats,
    unproved_guards,
)
from ait_mlir.importers.torch.decisions import Decisions
from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.errors import ImportFailure, place_in_source
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.importers.torch.loops import Loops
from ait_mlir.importers.torch.multihead import heads_apart
from ait_mlir.importers.torch.numbers import BufferNumbers
from ait_mlir.importers.torch.packed import packed_sequences
from ait_mlir.importers.torch.recurrent import whole_layers
from ait_mlir.importers.torch.signature import declare_dims, read_inputs
from ait_mlir.importers.torch.size_floats import WholeParts, float_functions
from ait_mlir.importers.torch.sized import KeptSizes
from ait_mlir.importers.torch.steps import LoopError, Unknown
from ait_mlir.importers.torch.tracing import (
    TraceAgain,
    any_size,
    orders_by_example,
    sizes_of_multiples,
    without_checks,
    without_layouts,
)

DimNames = dict[tuple[int, int], str]
"""Names of dims by leaf of the example inputs and axis."""


def capture(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    may_call: bool = True,
) -> tuple[Any, DimNames]:
    """The exported program of a module on example inputs, and the names that `dynamic_shapes` gives its dims.

    A module that changes its weights is called once, if `may_call`: some modules do so in their first call only. Raises
    `ImportFailure` with the place in the model's source for what cannot be exported: control flow that depends on
    values, a dim that the model fixes although it was declared dynamic, weights without data.
    """
    if not isinstance(module, torch.nn.Module):
        raise ImportFailure(f"expected a torch.nn.Module, found {type(module).__name__}")
    if module.training:
        raise ImportFailure("the model is in training mode; call model.eval() first")
    missing = [n for n, t in (*module.named_parameters(), *module.named_buffers()) if t.device.type == "meta"]
    if missing:
        raise ImportFailure(
            f"{len(missing)} weights are on the meta device and have no data, the first {missing[0]!r}; "
            "load the model's weights, or make the model on a real device"
        )
    _register_caches()
    given, named = _distinct((tuple(args), dict(kwargs or {})))
    roots = _dims(module, given, named, dynamic_shapes)
    names = {place: str(dim.__name__) for place, dim in roots.items()}

    loops, wholes, numbers, decisions = Loops(), WholeParts(), BufferNumbers(module), Decisions()

    def export(**options: Any) -> Any:
        options = {"dynamic_shapes": dynamic_shapes, "strict": False, **options}
        while True:  # until the code of each loop over a dynamic dim is converted
            watched = [one.watched() for one in (loops, wholes, numbers, decisions)]
            watches = *watched, _adapted(), _autocast_inside(module)
            with contextlib.suppress(TraceAgain), torch.no_grad(), contextlib.ExitStack() as stack:
                for watch in watches:
                    stack.enter_context(watch)
                return torch.export.export(module, given, named or None, **options)

    def settled(program: Any) -> tuple[Any, DimNames]:
        """The program, whose dims leave out the small sizes that the module computes otherwise."""
        for name, least in decisions.minima(module, program, (given, named), roots).items() if may_call else ():
            _raise_minima(program, {place: dim for place, dim in roots.items() if dim.__name__ == name}, least)
        return program, names

    try:
        with quiet():
            program = export()
            if may_call and _changes_weights(program):
                _call_once(module, given, named)
                program = export()
            numbers.check(program)
            if may_call and _has_automatic(dynamic_shapes) and (wrong := _unproved(program)):
                raise ImportFailure(
                    f"the model requires {wrong[0]}, which does not hold for all sizes of dims that PyTorch chooses "
                    "(Dim.AUTO): declare dims for which it holds, such as 8 * Dim('blocks'), or leave them fixed"
                )
            return settled(_with_minima(program, roots))
    except ImportFailure:
        raise
    except (Exception, ChoiceError) as error:
        if _is_about_dims(str(error)):
            for again in (
                _with_conditions,
                functools.partial(_with_suggested_minima, error),
                functools.partial(_with_automatic_dims, dynamic_shapes),
            ):
                if (program := again(export, roots)) is not None:
                    return settled(program)
        raise ImportFailure(explain(error, export, loops.refused)) from error


@contextlib.contextmanager
def _adapted() -> Generator[None]:
    """A context whose traces keep recurrent layers, packed sequences and compositions as single calls, keep heads
    apart, drop checks, and know that padded sizes are multiples.
    """
    with (
        whole_layers(),
        heads_apart(),
        packed_sequences(),
        without_checks(),
        orders_by_example(),
        compositions(),
        float_functions(),
        KeptSizes(),
        sizes_of_multiples(),
    ):
        yield


@contextlib.contextmanager
def _autocast_inside(module: Any) -> Generator[None]:
    """A context in which a call of the module enters the surrounding autocast by itself. PyTorch's trace shows only the
    casts of an autocast that begins during the trace.
    """
    around = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    if not around:
        yield
        return
    forward, own = module.forward, module.__dict__.get("forward")

    @functools.wraps(forward)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for kind, dtype in dtypes.items():
                stack.enter_context(torch.autocast(kind, dtype=dtype))
            return forward(*args, **kwargs)

    dtypes = {kind: torch.get_autocast_dtype(kind) for kind in around}
    module.__dict__["forward"] = inside
    try:
        with contextlib.ExitStack() as stack:
            for kind in around:
                stack.enter_context(torch.autocast(kind, enabled=False))
            yield
    finally:
        del module.__dict__["forward"]
        if own is not None:
            module.__dict__["forward"] = own


def _register_caches() -> None:
    """Tell PyTorch how the caches of `transformers` hold tensors: its decoders return one by default."""
    if "transformers" not in sys.modules:
        return
    with contextlib.suppress(ImportError, AttributeError):
        from transformers import cache_utils
        from transformers.integrations import executorch

        cast(Any, executorch).register_dynamic_cache_export_support()
        _register_pair(cast(Any, cache_utils).EncoderDecoderCache)


def _register_pair(cache: Any) -> None:
    """Register the cache of an encoder-decoder: a pair of caches, for self attention and for cross attention."""
    tree, parts = torch.utils._pytree, ("self_attention_cache", "cross_attention_cache")
    if cache in tree.SUPPORTED_NODES:
        return

    def children(both: Any, *_: Any) -> list[Any]:
        return [getattr(both, part) for part in parts]

    def flatten(both: Any) -> tuple[list[Any], None]:
        return children(both), None

    def flatten_with_keys(both: Any) -> tuple[list[Any], None]:
        return [(tree.GetAttrKey(part), getattr(both, part)) for part in parts], None

    def unflatten(values: Sequence[Any], _: Any) -> Any:
        return cache(*values)

    name = f"{cache.__module__}.{cache.__name__}"
    tree.register_pytree_node(
        cache, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=flatten_with_keys
    )
    torch.fx._pytree.register_pytree_flatten_spec(cache, children)


def _changes_weights(program: Any) -> bool:
    """Whether a program writes to a parameter."""
    parameters = program.graph_signature.inputs_to_parameters
    schemas = ((n, getattr(n.target, "_schema", None)) for n in program.graph.nodes)
    return any(s is not None and s.is_mutable and getattr(n.args[0], "name", "") in parameters for n, s in schemas)


def _call_once(module: Any, args: Any, kwargs: Any) -> None:
    """Call a model that changes its weights, since some models change them only in their first call and can be exported
    then.
    """
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    with torch.no_grad():
        module(*args, **kwargs)


_ABOUT_DIMS = (
    "specialized",
    "Constraints violated",
    "Expected op to be '=='",
    "Cannot create Dim with inconsistent",
    "too many values to unpack (expected 2)",
)
"""Parts of PyTorch's errors for conditions on dims; the last three are failures of its solver of conditions."""


def _is_about_dims(text: str) -> bool:
    return any(part in text for part in _ABOUT_DIMS)


def _with_conditions(export: Callable[..., Any], dims: Mapping[tuple[int, int], Any]) -> Any:
    """The program exported with its conditions on dims as assertions, if the importer proves all of them; else None.

    If it proves them only for dims of some size, the dims without a declared minimum get this minimum: `x.chunk(3)` has
    three pieces if x has 5 elements and more. Raises `ImportFailure` if a declared minimum would have to be larger.
    """
    needed: list[tuple[str, int]] = []
    with contextlib.suppress(Exception), quiet(), without_layouts(), any_size():
        program = _with_minima(export(prefer_deferred_runtime_asserts_over_guards=True), dims)
        if _fixes_a_dim(program) or _decides_by_floats(program):
            return None
        without = {place: dim for place, dim in dims.items() if dim.min == 0}
        if (minimum := _proving_minimum(program, without)) is not None:
            _raise_minima(program, without, minimum)
            return program
        for name in sorted({str(dim.__name__) for dim in dims.values()}):
            of_name = {place: dim for place, dim in dims.items() if dim.__name__ == name}
            if (minimum := _proving_minimum(program, of_name)) is not None:
                needed.append((name, minimum))
    if needed:
        raise _too_small(*needed[0])
    return None


def _too_small(name: str, minimum: int) -> ImportFailure:
    advice = f"declare Dim({name!r}, min={minimum})"
    return ImportFailure(f"PyTorch's trace of the model requires that {name} is at least {minimum}: {advice}")


def _fixes_a_dim(program: Any) -> bool:
    """Whether PyTorch left a dynamic dim only one value.

    This happens without an error, for `n` of `2*n`, if the conditions of the trace are assertions.
    """
    sizes = [size for item in read_inputs(program).tensors for size in item.node.meta["val"].shape]
    symbols = {symbol for size in sizes if not isinstance(size, int) for symbol in size.node.expr.free_symbols}
    ranges = [program.range_constraints[symbol] for symbol in symbols if symbol in program.range_constraints]
    return any(found.lower == found.upper for found in ranges)


def _decides_by_floats(program: Any) -> bool:
    """Whether the trace has a condition on a float of dims, such as `x.shape[0] * 0.5 > 2`, that does not hold for all
    sizes. PyTorch asserts conditions on whole numbers only, and leaves the others out.
    """
    sizes = [s for item in read_inputs(program).tensors for s in item.node.meta["val"].shape if not isinstance(s, int)]
    deferred = sizes[0].node.shape_env.deferred_runtime_asserts.values() if sizes else ()
    found = [c.expr for group in deferred for c in group if _has_floats(c.expr)]
    return bool(found) and not all(is_true_of_floats(condition, _table(program)) for condition in found)


def _has_floats(e: Any) -> bool:
    """Whether an expression of SymPy has a part that is no whole number and no condition."""
    is_number = hasattr(e, "is_integer") and not e.is_Boolean and not e.is_Relational
    return (is_number and not e.is_integer) or any(map(_has_floats, e.args))


_SUGGESTED = re.compile(r"^\s*(\w+) = Dim\('\1', min=(\d+)(?:, max=\d+)?\)", re.MULTILINE)


def _with_suggested_minima(
    error: BaseException, export: Callable[..., Any], dims: Mapping[tuple[int, int], Any]
) -> Any:
    """The program exported with the minima that PyTorch's error suggests, for dims without a declared one; else None.

    PyTorch takes each size of a trace to be 2 or more, also `n - 1`. Raises `ImportFailure` if a declared minimum would
    have to be larger.
    """
    suggested = {name: int(least) for name, least in _SUGGESTED.findall(str(error))}
    raised = {id(dim): dim for dim in dims.values() if dim.min < suggested.get(str(dim.__name__), 0)}
    if not raised:
        return None
    for dim in raised.values():
        if dim.min > 0:
            raise _too_small(str(dim.__name__), suggested[str(dim.__name__)])
    with contextlib.ExitStack() as stack, contextlib.suppress(Exception), quiet():
        for dim in raised.values():
            stack.callback(setattr, dim, "min", dim.min)
            dim.min = suggested[str(dim.__name__)]
        return _with_minima(export(), dims)
    return None


def _has_automatic(spec: Any) -> bool:
    """Whether a specification has dims that PyTorch chooses: `Dim.AUTO`, `Dim.DYNAMIC`."""
    return type(spec) is type(torch.export.Dim.AUTO) or any(_has_automatic(inner) for _, inner in _items(spec))


def _unproved(program: Any) -> list[str]:
    """The conditions of a program's trace that its ranges do not prove."""
    return unproved_guards(program, _table(program))


def check_conditions(program: Any) -> None:
    """Raise `ImportFailure` for a condition of an exported program that does not hold for all sizes of the dims."""
    if wrong := failing_conditions(program, _table(program)):
        raise ImportFailure(
            f"the program was exported for sizes with {wrong[0]}, which does not hold for all sizes in its ranges: "
            "export it with dims for which this holds"
        )


def _table(program: Any) -> DimTable:
    table = DimTable()
    declare_dims(table, program, read_inputs(program), {}, {})
    return table


def _with_automatic_dims(dynamic_shapes: Any, export: Callable[..., Any], dims: Mapping[tuple[int, int], Any]) -> Any:
    """The program exported with dims whose range PyTorch finds, in place of those without a declared minimum; None if
    it fixes one of them, finds two dims of one name to be different, or needs a condition that is not proved.

    PyTorch refuses a declared dim for the condition that a result, as of a convolution, does not have size 1. Our dims
    never broadcast, so this needs no condition.
    """
    free = {id(dim) for dim in dims.values() if dim.min == 0}
    automatic = torch.export.Dim.AUTO

    def replaced(spec: Any) -> Any:
        if id(spec) in free:
            return automatic(max=spec.max) if isinstance(spec.max, int) else automatic
        if isinstance(spec, Mapping):
            return {key: replaced(inner) for key, inner in cast("Mapping[Any, Any]", spec).items()}
        return type(spec)(map(replaced, spec)) if type(spec) in (list, tuple) else spec

    with contextlib.suppress(Exception), quiet():
        program = export(dynamic_shapes=replaced(dynamic_shapes))
        if _unproved(program):
            return None
        program = _with_minima(program, dims)
        symbols: dict[str, set[str]] = {}
        for item in read_inputs(program).tensors:
            for axis, size in enumerate(item.node.meta["val"].shape):
                if (dim := dims.get((item.leaf, axis))) is not None and id(dim) in free:
                    symbols.setdefault(dim.__name__, set()).add(str(size))
        found = [symbol for same in symbols.values() for symbol in same]
        if len(found) == len(symbols) == len(set(found)) and not any(map(str.isdigit, found)):
            return program
    return None


LARGEST_MINIMUM = 16
"""The largest minimum that a condition of the model gives to a dim."""


def _proving_minimum(program: Any, dims: Mapping[tuple[int, int], Any]) -> int | None:
    """The least minimum of the dims with which all assertions of a program are proved; None if there is none."""
    declared = dict(program.range_constraints)
    asserted = [n.args[0] for n in program.graph.nodes if str(n.target) == ASSERTION]
    try:
        for least in range(LARGEST_MINIMUM + 1):
            _raise_minima(program, dims, least)
            table = DimTable()
            declare_dims(table, program, read_inputs(program), {}, {})
            if all(is_proved(condition, table) for condition in asserted):
                return least
        return None
    finally:
        program.range_constraints.update(declared)


def _raise_minima(program: Any, dims: Mapping[tuple[int, int], Any], least: int) -> None:
    """Raise the minimum of a dim to `least` if its example is at least as large."""
    for item in read_inputs(program).tensors:
        for axis, size in enumerate(item.node.meta["val"].shape):
            if (item.leaf, axis) not in dims or not size.node.expr.is_Symbol or size.node.hint < least:
                continue
            found = program.range_constraints[size.node.expr]
            program.range_constraints[size.node.expr] = type(found)(max(int(found.lower), least), found.upper)


def _distinct(tree: Any) -> Any:
    """The example inputs with repeated tensors copied, because an export would treat them as one input."""
    seen: set[int] = set()

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.clone()

    return torch.utils._pytree.tree_map(copied, tree)


def explain(error: BaseException, again: Callable[[], Any], loops: Sequence[str] = ()) -> str:
    """The message for an error of `torch.export`: its meaning for the model, the place, and advice.

    `again` runs the export again; `loops` are the reasons why loops have fixed dims.
    """
    text = str(error)
    place = place_in_source("".join(traceback.format_tb(error.__traceback__)), fallback="")
    at = f" at {place}" if place else ""
    kind = type(error).__name__
    if isinstance(error, ChoiceError):
        return f"{error.fault}{at}; {error.advice}"
    if isinstance(error, LoopError):
        return f"the loop over a dynamic dim{at} cannot become a scan: {text}"
    if f"{Unknown.__module__}.{Unknown.__name__}" in text:
        return (
            "the model returns a variable whose value depends on the last step of a loop over a dynamic dim: read in "
            "each step of the loop what it returns"
        )
    if "DataDependent" in kind or "data-dependent" in text or "unbacked" in text:
        return (
            f"the model decides by the values of a tensor{at}; what is computed may depend on shapes only: "
            "compute both sides and choose with torch.where"
        )
    if _is_about_dims(text):
        where = _where_fixed(again)
        advice = _NO_CACHE if "cache_utils" in where else ""
        reasons = "".join(f"; {reason}" for reason in loops) or (_LOOP if _OTHER_LOOP.search(where) else "")
        return f"a dim that was to be dynamic is not{where}: {_essence(text).rstrip('.')}{advice}{reasons}"
    if "dynamic_shapes" in text:
        return f"dynamic_shapes does not fit the example inputs: {_essence(text)}"
    advice = _NO_CACHE if "DynamicCache" in text else ""
    return f"torch.export cannot trace the model{at}: {_essence(text)} ({kind}){advice}"


_LOOP = "; write a loop over a dynamic dim as `for t in range(n)`, with n a size"
_OTHER_LOOP = re.compile(r": .*\b(?:for\b(?!.*\bin range\()|while\b)")
"""A loop in a line of a model, but for those over a range."""
_NO_CACHE = "; set use_cache=False if you need no cache of keys and values"


class _Watch(logging.Handler):
    """Records the places in the model at which PyTorch fixes a size to a number, or meets a condition on sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed: list[str] = []
        self.conditions: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        is_condition = "[guard added]" in message
        if not is_condition and not re.match(r"set_replacement \S+ = \d+ ", message):
            return
        found = self.conditions if is_condition else self.fixed
        place = place_in_source("".join(traceback.format_stack()), fallback="")
        if place and place not in found:
            found.append(place)


def _where_fixed(export: Callable[[], Any]) -> str:
    """The places in the model that fix a dim to a number, else its conditions on dims, from PyTorch's log."""
    logger, watch = logging.getLogger("torch.fx.experimental.symbolic_shapes"), _Watch()
    kept = logger.level, logger.handlers, logger.propagate
    with contextlib.suppress(Exception), quiet():
        logger.handlers, logger.propagate = [watch], False
        logger.setLevel(logging.INFO)
        try:
            export()
        finally:
            logger.handlers, logger.propagate = kept[1:]
            logger.setLevel(kept[0])
    if watch.fixed:
        return f", fixed at {watch.fixed[0]}"
    return f", for the condition at {' and at '.join(watch.conditions[:3])}" if watch.conditions else ""


def _essence(text: str) -> str:
    """The error in a message, without the debugging help after it."""
    lines = [line.strip() for line in text.splitlines()]
    words = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    message = " ".join(words or [line for line in lines if line][:2])
    for marker in (" If you're using", " For more information", " The error above", " Alternatively"):
        message = message.partition(marker)[0]
    return re.sub(r"\s+", " ", message)[:500]


def _dims(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> dict[tuple[int, int], Any]:
    """The `torch.export.Dim`s of a specification, by leaf and axis; for `2*n + 1` it is the Dim `n`."""
    if dynamic_shapes is None:
        return {}
    leaves: list[object] = torch.utils._pytree.tree_leaves((tuple(args), dict(kwargs)))
    leaf_of: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        leaf_of.setdefault(id(leaf), i)
    dims: dict[tuple[int, int], Any] = {}
    try:
        bound: Any = dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
    except TypeError:  # wrong arguments: the export reports them better
        return {}
    if not isinstance(dynamic_shapes, Mapping):
        bound = list(bound.values())
    _collect(bound, dynamic_shapes, leaf_of, dims)
    return dims


def _collect(value: Any, spec: Any, leaf_of: Mapping[int, int], dims: dict[tuple[int, int], Any]) -> None:
    if spec is None:
        return
    if isinstance(value, torch.Tensor):
        for axis, dim in _items(spec):
            dim = getattr(dim, "root", dim)
            name = getattr(dim, "__name__", None)
            if id(value) in leaf_of and isinstance(axis, int) and isinstance(name, str) and name.isidentifier():
                dims[leaf_of[id(value)], axis % max(value.dim(), 1)] = dim
        return
    specs = dict(_items(spec))
    for i, (key, inner) in enumerate(_items(value)):
        _collect(inner, specs.get(key, specs.get(i)), leaf_of, dims)


def _with_minima(program: Any, dims: Mapping[tuple[int, int], Any]) -> Any:
    """The program with the declared minimum of each dim; PyTorch assumes 2 for a dim that occurs only in `2*n + 1`."""
    for item in read_inputs(program).tensors:
        for axis, size in enumerate(item.node.meta["val"].shape):
            low = getattr(dims.get((item.leaf, axis)), "min", None)
            symbols: list[Any] = [] if isinstance(size, int) else list(size.node.expr.free_symbols)
            found = program.range_constraints.get(symbols[0]) if len(symbols) == 1 else None
            if isinstance(low, int) and found is not None and low < found.lower == 2:
                program.range_constraints[symbols[0]] = type(found)(low, found.upper)
    return program


def _items(tree: Any) -> list[tuple[Any, Any]]:
    """The items of a dict, list or tuple, with their keys or numbers."""
    if isinstance(tree, Mapping):
        return list(cast("Mapping[Any, Any]", tree).items())
    return list(enumerate(cast("Sequence[Any]", tree))) if isinstance(tree, list | tuple) else []
