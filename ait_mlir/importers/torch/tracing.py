"""Keeps checks of a model's arguments out of its trace.

PyTorch refuses to trace decisions by the values of tensors. The decisions of these checks never change a result of a
program that runs in eager PyTorch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any

from ait_mlir.importers.torch.library import torch


class TraceAgain(BaseException):
    """A trace has met code that has to be changed before it; a new trace starts with the change. Models must not catch
    this.
    """


def _is_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """The caller's `is_causal` for a mask, by default False. PyTorch's function compares the mask's numbers by default,
    to choose a faster kernel; the mask is applied in any case.
    """
    return is_causal is True


@contextlib.contextmanager
def without_checks() -> Generator[None]:
    """During a trace, distributions do not check their parameters, and layers do not compare their masks, nor ask
    whether PyTorch has one fused operation for all that they do.
    """
    layers, distribution, fused = torch.nn.modules.transformer, torch.distributions.Distribution, torch.backends.mha
    kept = layers._detect_is_causal_mask, distribution._validate_args, fused.get_fastpath_enabled()
    layers._detect_is_causal_mask, distribution._validate_args = _is_causal, False
    fused.set_fastpath_enabled(False)
    try:
        yield
    finally:
        layers._detect_is_causal_mask, distribution._validate_args = kept[:2]
        fused.set_fastpath_enabled(kept[2])


@contextlib.contextmanager
def orders_by_example() -> Generator[None]:
    """A context for a trace in which the example's sizes decide the order of `einsum` with three and more tensors.
    Otherwise PyTorch asks the package opt_einsum, if installed, which converts sizes to ints and so fixes every dim.
    """
    package = torch.backends.opt_einsum.get_opt_einsum()
    if package is None:
        yield
        return
    choose = package.contract_path

    def contract_path(equation: str, *operands: Any, **options: Any) -> Any:
        shapes = [tuple(map(example_size, getattr(x, "shape", x))) for x in operands]
        return choose(equation, *shapes, **options | {"shapes": True})

    package.contract_path = contract_path
    try:
        yield
    finally:
        package.contract_path = choose


def example_size(size: Any) -> int:
    """A size in the example; 1 if it depends on values."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    return int(size.node.hint) if size.node.has_hint() else 1


@contextlib.contextmanager
def without_layouts() -> Generator[None]:
    """A context for a trace that records no conditions on dims which decide only the strides of a result.

    PyTorch chooses the strides of a view and of an elementwise result by the sizes of the example: such a condition
    may fail for other sizes, where the result has the same shape and the same elements.
    """
    with contextlib.ExitStack() as stack:
        for place, name, wrap in (
            (torch._refs, "_reshape_view_helper_core_alg", _chosen),
            (torch._prims_common, "compute_elementwise_output_logical_to_physical_perm", _chosen),
            (torch._subclasses.functional_tensor.FunctionalTensorMode, "__torch_dispatch__", _dispatched),
        ):
            kept = getattr(place, name)
            stack.callback(setattr, place, name, kept)
            setattr(place, name, wrap(kept))
        yield


@contextlib.contextmanager
def sizes_of_multiples() -> Generator[None]:
    """A context for a trace in which a size that is padded to a multiple of a number is known to be one:
    `n + (c - n % c) % c` is `c * ((n + c - 1) // c)`. PyTorch has no rule for it, and so cannot cut it into pieces of
    c.
    """
    node = torch.fx.experimental.sym_node.SymNode
    kept = node.add

    def add(size: Any, other: Any) -> Any:
        total = kept(size, other)
        if getattr(total, "_expr", None) is not None:
            total._expr = _multiple(total._expr)
        return total

    node.add = add
    try:
        yield
    finally:
        node.add = kept


def _multiple(size: Any) -> Any:
    """An expression of SymPy, as a multiple of a number if it is a size that is padded to one."""
    functions = torch.utils._sympy.functions
    remainders = (functions.Mod, functions.PythonMod)
    for term in size.args if size.is_Add else ():
        if not isinstance(term, remainders) or not term.args[1].is_Integer or term.args[1] < 1:
            continue
        less, by = term.args
        for factor, part in (item.as_coeff_Mul() for item in less.as_ordered_terms()):
            if isinstance(part, remainders) and part.args[1] == by and factor.is_Integer:
                less += factor * (part.args[0] - part)  # equal but for a multiple of by
        padded = size - term
        if ((padded + less) / by).is_integer:  # so the term is what `padded` lacks to the next multiple
            return by * functions.FloorDiv(padded + by - 1, by)
    return size


def any_size() -> contextlib.AbstractContextManager[Any]:
    """A context for a trace in which a size computed from dims, such as `n - 1`, may also be 0 or 1."""
    return torch.fx.experimental._config.patch(backed_size_oblivious=True)


def _chosen(choose: Callable[..., Any]) -> Callable[..., Any]:
    """`choose`, a function of PyTorch that chooses strides, changed so that it records no conditions on dims.

    A function that may return a view or a copy still records them, because a later write to its result may change its
    operand.
    """

    @functools.wraps(choose)
    def without_conditions(*args: Any, **kwargs: Any) -> Any:
        may_copy = kwargs.get("allow_copy", any(a is True for a in args))
        with contextlib.nullcontext() if may_copy else unrecorded(args):
            return choose(*args, **kwargs)

    return without_conditions


def _dispatched(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """`dispatch`, by which a decomposition calls operations, changed so that views and copies record no conditions on
    dims.

    The trace before the decomposition has already checked that the numbers of elements agree.
    """
    aten = torch.ops.aten
    checked = (aten.view.default, aten._unsafe_view.default, aten.copy_.default)

    @functools.wraps(dispatch)
    def without_conditions(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with unrecorded(args) if func in checked else contextlib.nullcontext():
            return dispatch(self, func, types, args, kwargs)

    return without_conditions


def unrecorded(args: Any) -> contextlib.AbstractContextManager[Any]:
    """A context in which the example's sizes decide conditions on the dims of tensors; the conditions are not
    recorded.
    """
    dims = (d for a in args if isinstance(a, torch.Tensor) for d in a.shape)
    sizes = next((d.node.shape_env for d in dims if isinstance(d, torch.SymInt)), None)
    return contextlib.nullcontext() if sizes is None else sizes.suppress_guards()
