"""`compile`: compiles a PyTorch model to one that is called in the same way."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ait_mlir.arguments import checked
from ait_mlir.dialects.ait.ranks import ALONE, Ranks, ranks_of
from ait_mlir.dialects.sdy import parse_axes
from ait_mlir.errors import InputError
from ait_mlir.frontend.target import Target, as_target
from ait_mlir.host.files import copy_atomic
from ait_mlir.importers.checkpoints import read_checkpoint, use_checkpoint
from ait_mlir.importers.torch.capture import capture, check_conditions
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.groups import groups_of, sharded_weights
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.parallelized import local_module, shardings_of, whole_weights
from ait_mlir.importers.torch.program import Imported, import_program
from ait_mlir.importers.torch.signature import skeleton
from ait_mlir.passes.shard_params import plan_text
from ait_mlir.runtime.frameworks import stream_of

if TYPE_CHECKING:
    from ait_mlir.options import CompileOptions, Measure
    from ait_mlir.runtime import Model


@checked(ImportFailure)
def compile(
    module: Any,
    example_inputs: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: Target | str | None = None,
    name: str | None = None,
    workdir: str | Path | None = None,
    hints: Mapping[str, Sequence[int]] | None = None,
    measure: Measure = "auto",
    budget: float | None = None,
    precision: str = "highest",
    deterministic: bool = True,
    streams: int | None = None,
    num_runtimes: int = 1,
    graph_mode: bool = False,
    checkpoint: str | Path | None = None,
    mesh: str = "",
    plan: str | Mapping[str, object] = "",
    groups: Mapping[str, object] | None = None,
    cluster: str = "",
) -> CompiledModule:
    """Compile an unmodified `torch.nn.Module` or a program of `torch.export`.

    The module is exported on the example inputs with `dynamic_shapes` as in `torch.export.export`; a dim without a
    maximum gets 4,096. Without a `target`, the model is compiled for the device that its weights and the example inputs
    are on. `hints` are sizes to choose kernels for, by the name of a `torch.export.Dim`. `measure`,
    `budget`, `precision`, `deterministic`, `streams` and `cluster` are explained in `CompileOptions`, `num_runtimes` in
    `Model`.
    With `graph_mode`, runs on a GPU are replayed as CUDA graphs. Generated sources and IR are kept in `workdir` if it
    is given. The weights of a `checkpoint` replace those of the module, as they are stored: see `read_checkpoint`.

    With a `mesh` of ranks, such as "tp=2", each rank calls this function and runs its part of the model; see
    docs/ranks.md. A `plan` says which layers are divided, as in {"layers.*.up": "colwise", "layers.*.down": "rowwise"}.
    A model with collectives of `torch.distributed` is divided already; `groups` gives the axes of its process groups by
    name, if this process does not have them.

    Raises `ImportFailure` for a model that cannot be imported, with the place in its source; nothing is written then.
    """
    from ait_mlir.options import CompileOptions

    chosen = as_target(target or graph_device(tensors_of(module, example_inputs, example_kwargs)).type)
    options = CompileOptions(
        chosen.kind,
        chosen.arch,
        measure=measure,
        budget=budget,
        precision=precision,
        deterministic=deterministic,
        streams=streams,
        plan=plan if isinstance(plan, str) else plan_text(plan),
        mesh=mesh if plan else "",
        cluster=cluster,
    )
    imported = from_torch(
        module,
        example_inputs,
        example_kwargs,
        dynamic_shapes=dynamic_shapes,
        name=name,
        hints=hints,
        mesh=mesh,
        groups=groups,
    )
    if checkpoint is not None:
        use_checkpoint(imported.module, imported.constants, read_checkpoint(checkpoint))
    compiled = build(imported, options, workdir=workdir, num_runtimes=num_runtimes, graph_mode=graph_mode)
    is_program = isinstance(module, torch.export.ExportedProgram)
    compiled.adopt(module.module(check_guards=False) if is_program else module)
    return compiled


def graph_device(tensors: Iterable[Any]) -> Any:
    """Where tensors are used: the first device that is not the CPU, if there is one."""
    cpu = torch.device("cpu")
    return next((x.device for x in tensors if x.device != cpu), cpu)


def tensors_of(module: Any, example_inputs: Any, example_kwargs: Any) -> Iterator[Any]:
    """The weights of a module or exported program, and the tensors among the inputs, if they have data."""
    weights: Iterable[Any] = ()
    if isinstance(module, torch.export.ExportedProgram):
        weights = (*module.state_dict.values(), *module.constants.values())
        example_inputs, example_kwargs = module.example_inputs or ((), {})
    elif isinstance(module, torch.nn.Module):
        weights = (*module.parameters(), *module.buffers())
    for value in (*weights, *torch.utils._pytree.tree_leaves((example_inputs, example_kwargs))):
        if torch.is_tensor(value) and value.device.type != "meta":
            yield value


@checked(ImportFailure)
def from_torch(
    module: Any,
    example_inputs: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    name: str | None = None,
    hints: Mapping[str, Sequence[int]] | None = None,
    same_dims: Mapping[tuple[int, int], str] | None = None,
    most: Mapping[tuple[int, int], int] | None = None,
    mesh: str = "",
    groups: Mapping[str, object] | None = None,
) -> Imported:
    """The `ait` module of a PyTorch module or exported program, with its weights; see `compile`.

    `same_dims` names dims of the inputs, by leaf of the example inputs and axis; dims with the same name are one dim.
    `most` has maxima for free dims in the same way. `mesh` and `groups` are for models with collectives: see `compile`.
    See `import_program`.
    """
    ranks = groups_of(parse_axes(mesh) if mesh else None, groups, module)
    if isinstance(module, torch.export.ExportedProgram):
        check_conditions(module)
        return import_program(module, name or "model", hints=hints, same_dims=same_dims, groups=ranks)
    for inner, held in module.named_modules() if isinstance(module, torch.nn.Module) else ():
        if isinstance(held, CompiledModule):
            named = f"its module {inner!r}" if inner else "it"
            raise ImportFailure(f"the model is not compiled: {named} is a compiled model; compile the original module")
    whole: dict[str, Any] = {}
    if sharded_weights(module):
        if ranks.mesh is None:
            raise ImportFailure('the mesh of the divided weights has no names; give it, as in mesh="dp=2,tp=2"')
        ranks.weights = shardings_of(module, ranks.mesh)
        whole = whole_weights(module, ranks.weights)
        name = name or _snake(module)
        module = local_module(module, example_inputs, example_kwargs or {}, dynamic_shapes)
    may_call = same_dims is None  # else it is a graph of `torch.compile`: a call would change the caller's tensors
    program, names = capture(module, example_inputs, example_kwargs, dynamic_shapes, may_call=may_call)
    chosen = name or _snake(module)
    imported = import_program(
        program, chosen, dim_names=names, hints=hints, same_dims=same_dims, most=most, groups=ranks
    )
    for weight in imported.constants.keys() & whole.keys():
        if (data := whole[weight]) is None:
            del imported.constants[weight]
        else:
            imported.constants[weight] = data
    return imported


def _snake(module: Any) -> str:
    """The name of a module's class, as in `feed_forward`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(module).__name__).lower()


def build(
    imported: Imported,
    options: CompileOptions,
    *,
    workdir: str | Path | None = None,
    num_runtimes: int = 1,
    graph_mode: bool = False,
) -> CompiledModule:
    """Compile an imported module and load it."""
    from ait_mlir.driver import compile_module, program_of
    from ait_mlir.ir.context import context
    from ait_mlir.ir.parser import parse_text
    from ait_mlir.runtime import Model

    text = str(imported.module) + "\n"
    folder = Path(tempfile.mkdtemp(prefix="ait_"))  # only its owner can read it: the artifact has the weights
    file = folder / "model.ait"
    try:
        module, constants = imported.module.clone(), imported.constants
        compile_module(module, options, output=file, constants=constants, workdir=workdir)
        # this process has just written the file: its weights need no second hash
        model = Model(file, num_runtimes=num_runtimes, verify_weights=False)
        ranks = ALONE
        if model.manifest is not None and model.manifest.ranks > 1:
            ranks = ranks_of(program_of(parse_text(context(), model.ir_text)))
        compiled = CompiledModule(imported, model, file, text, options, graph_mode, ranks)
    except BaseException:
        _remove(folder, os.getpid())
        raise
    weakref.finalize(compiled, _remove, folder, os.getpid())
    return compiled


def _remove(folder: Path, owner: int) -> None:
    """Remove a temporary folder, unless this is a fork of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


class CompiledModule(torch.nn.Module):
    """A compiled model with the calling convention of the module that it was made from.

    `model` is the `Model` that runs it. The artifact that `save` writes runs without PyTorch. `state` has the buffers
    that the module changes, by the names of the model's inputs: tensors on the model's device, which belong to this
    object and start as copies of the module's buffers.

    It is a `torch.nn.Module` with the parameters, buffers and submodules of the module. The compiled model has a copy
    of the weights: `load_state_dict` sets it, other changes do not. It stays on its device, in its dtypes.
    """

    def __init__(
        self,
        imported: Imported,
        model: Model,
        artifact: Path,
        text: str,
        options: CompileOptions,
        graph_mode: bool = False,
        ranks: Ranks = ALONE,
    ) -> None:
        torch.nn.Module.__init__(self)
        self.training = False
        self.model = model
        self._text = text
        self._artifact = artifact
        self._options = options
        self.ranks = ranks
        """The ranks that run the model, and of which weights each has a piece."""
        self._graph_mode = graph_mode
        self._inputs = imported.inputs
        self._outputs = imported.outputs
        self._out_spec = imported.out_spec
        self.imported = imported
        place = "cpu" if model.target == "cpu" else f"cuda:{model.device[1]}"
        self.state: dict[str, Any] = {
            name: value.detach().to(place, copy=True).contiguous() for name, value in imported.state.items()
        }
        self.code: dict[str, Any] = {}
        self._register_state_dict_hook(_put_state)
        self.register_load_state_dict_post_hook(_set_weights)

    def adopt(self, module: Any) -> None:
        """Take the parameters, buffers and submodules of a module as they are. Attributes of this object with the same
        names, such as `model`, hide them."""
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[table] = getattr(module, table).copy()
        kept = {*self.model.get_constant_names(False), *self.imported.state_names.values()}
        self.code = {
            n: b.clone()
            for n, b in self.named_buffers()
            if n not in kept and not (b.is_floating_point() or b.is_complex())
        }
        """The buffers whose numbers are a part of the code."""

    def train(self, mode: bool = True) -> CompiledModule:
        """As that of PyTorch; a call in training mode is an `InputError`."""
        self.training = bool(mode)
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run on tensors in the structure of the example inputs; returns the structure that the module returns.

        Raises `InputError` for another structure, and for tensors that do not fit.
        """
        if self.training:
            raise InputError("a compiled model does not train; call eval() on it, or on the module that holds it")
        if self._is_flat and not kwargs and (found := self._run_flat(args)) is not None:
            return found
        return self._run(self._flatten(args, kwargs), self.state)

    @cached_property
    def _is_flat(self) -> bool:
        """Whether the arguments are the inputs in their order, and the result is one tensor or a tuple of them."""
        inputs, outputs = self._inputs, self._outputs
        leaves, results = ["_"] * inputs.in_spec.num_leaves, ["_"] * len(outputs)
        pytree = torch.utils._pytree
        return (
            not inputs.fixed
            and not self.model.state
            and [item.leaf for item in inputs.tensors] == list(range(len(leaves)))
            and [item.name for item in inputs.tensors] == list(self.model.get_input_name_to_index_map())
            and [value for kind, value in outputs if kind == "output"]
            == list(self.model.get_output_name_to_index_map())
            and all(kind == "output" for kind, _ in outputs)
            and pytree.tree_structure((tuple(leaves), {})) == inputs.in_spec
            and self._out_spec in (pytree.tree_structure("_"), pytree.tree_structure(tuple(results)))
        )

    def _run_flat(self, args: tuple[Any, ...]) -> Any:
        """The result of a call on torch tensors; None, without a run, for other arguments."""
        if len(args) != len(self._inputs.tensors) or any(type(value) is not torch.Tensor for value in args):
            return None
        on_gpu = self.model.target != "cpu"
        stream = 0
        if on_gpu:
            stream = stream_of("torch", args[0].get_device() if args and args[0].is_cuda else self.model.device[1])
        found = self.model.run_torch(args, stream, not on_gpu, self._graph_mode and on_gpu)
        if found is None:
            return None
        return found[0] if self._out_spec.is_leaf() else found

    def run(self, args: tuple[Any, ...], state: Mapping[str, Any]) -> Any:
        """Run like a call, with the caller's tensors as the state, which the run updates in place."""
        if not state and self._is_flat and (found := self._run_flat(args)) is not None:
            return found
        return self._run(self._flatten(args, {}), state)

    def changed_leaves(self) -> list[int]:
        """The leaves of the arguments that a call writes."""
        return [item.leaf for item in self._inputs.tensors if item.name in self.model.state]

    def _run(self, leaves: list[Any], state: Mapping[str, Any]) -> Any:
        given: dict[str, Any] = {}
        for item in self._inputs.tensors:
            leaf = leaves[item.leaf]
            if not isinstance(leaf, torch.Tensor):
                raise InputError(f"argument {item.name!r} has type {type(leaf).__name__}, expected a tensor")
            given[item.name] = leaf
        on_gpu = self.model.target != "cpu"
        results = self.model.run_with_tensors(
            {**given, **state}, sync=not on_gpu, graph_mode=self._graph_mode and on_gpu
        )
        if not given and not state:  # arrays of NumPy on the CPU
            results = {name: _as_torch(value) for name, value in results.items()}
        values = [
            value if kind == "constant" else results[value].item() if kind == "number" else results[value]
            for kind, value in self._outputs
        ]
        return torch.utils._pytree.tree_unflatten(values, self._out_spec)

    def _flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        expected = self._inputs.in_spec
        wanted: list[str] = list(expected.child(1).context) if expected.num_children > 1 else []
        if set(wanted) == set(kwargs):
            kwargs = {name: kwargs[name] for name in wanted}
        leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
        if spec != expected:
            raise InputError(
                f"the arguments are {_outline(args, kwargs)}, but the model was exported with "
                f"{_outline(*skeleton(expected))}; "
                "call it with arguments of the same structure"
            )
        for leaf, value in self._inputs.fixed.items():
            if leaves[leaf] != value:
                raise InputError(
                    f"argument {leaf} is {leaves[leaf]!r}, but the model was exported with {value!r} and computes "
                    "that case only; export it again"
                )
        return cast("list[Any]", leaves)

    @checked(InputError)
    def save(self, path: str | Path) -> Path:
        """Write the artifact, for `ait_mlir.runtime.Model` and `ait run`; returns its path."""
        target = Path(path)
        copy_atomic(self._artifact, target)
        return target

    @checked(InputError)
    def ir(self, phase: str = "imported") -> str:
        """The module as text, at a phase up to `planned`."""
        if phase == "imported":
            return self._text
        from ait_mlir.driver import run_to_phase

        module = self.imported.module.clone()
        run_to_phase(module, phase, replace(self._options, measure=False), known=self.imported.constants.keys())
        return str(module) + "\n"

    @property
    def operations(self) -> int:
        """How many operations the exported program has."""
        return self.imported.operations

    def __repr__(self) -> str:
        return f"<CompiledModule of {self.model!r}>"

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> CompiledModule:
        """`to`, `half`, `cuda` and their kin: allowed where they change nothing."""
        for name, held in (*self.named_parameters(), *self.named_buffers()):
            with torch.no_grad():
                found = fn(held[:0] if held.dim() else held)
            if (found.dtype, found.device) != (held.dtype, held.device):
                raise InputError(
                    f"the model is compiled for {name!r} of {held.dtype} on {held.device}, and cannot be converted to "
                    f"{found.dtype} on {found.device}; convert the module and compile it again"
                )
        return self

    def __deepcopy__(self, memo: Any) -> CompiledModule:
        raise InputError("a compiled model cannot be copied; compile the module again, or load what `save` wrote")

    def __copy__(self) -> CompiledModule:
        return self.__deepcopy__(None)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InputError("a compiled model cannot be pickled; write it with `save`, or pickle its `state_dict()`")


def _as_torch(value: Any) -> Any:
    """A tensor of torch that shares the memory of a NumPy array; a tensor as it is."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.from_numpy(value.view(f"i{value.itemsize}")).view(getattr(torch, value.dtype.name))


def _put_state(compiled: CompiledModule, found: Any, prefix: str, *_: Any) -> None:
    """Let a state dict have the state of the compiled model in place of the module's buffers."""
    for name, buffer in compiled.imported.state_names.items():
        if prefix + buffer in found:
            found[prefix + buffer] = compiled.state[name].detach()


def _set_weights(compiled: CompiledModule, _: Any) -> None:
    """Set the weights and the state of the compiled model to those of its module, after a state dict was loaded."""
    imported, names = compiled.imported, {**dict(compiled.named_parameters()), **dict(compiled.named_buffers())}
    for name, buffer in imported.state_names.items():
        if buffer in names:
            compiled.state[name].copy_(names[buffer])
    if changed := [name for name, code in compiled.code.items() if not torch.equal(names[name], code)]:
        raise InputError(f"the numbers of {changed[0]!r} are a part of the compiled code; compile the module again")
    parts = {f"{n}.{part}": getattr(v, part) for n, v in names.items() if v.is_complex() for part in ("real", "imag")}
    settable = compiled.model.get_constant_names(False)
    values = {
        name: value.detach()[compiled.ranks.place("params", name, tuple(value.shape), compiled.model.rank)].contiguous()
        for name, value in {**names, **parts}.items()
        if name in settable
    }
    compiled.model.set_constants(values)


def _outline(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call as `(tensor, [tensor], mask=tensor)`, without the values."""
    parts = [_outline_of(a) for a in args] + [f"{k}={_outline_of(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"


def _outline_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_outline_of(v)}" for k, v in cast("dict[Any, Any]", value).items()) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(_outline_of(v) for v in cast("list[Any]", value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return "_"
