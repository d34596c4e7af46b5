"""The constants of a model: weights, and values that are computed from weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ait_mlir import callers, hooks
from ait_mlir.constant_names import COMPUTED, FOLDED, LITERAL
from ait_mlir.errors import AitError, ArtifactError, InputError
from ait_mlir.host.forks import ForkLock
from ait_mlir.runtime.artifact import Artifact
from ait_mlir.runtime.data import AITData, Arguments, as_stream, to_numpy
from ait_mlir.runtime.folds import Folds
from ait_mlir.runtime.frameworks import framework_of
from ait_mlir.runtime.loading import runtime_digest
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.mapped import values_file
from ait_mlir.runtime.memory import DeviceMemory
from ait_mlir.runtime.opened import OpenedLibrary

if TYPE_CHECKING:
    from ait_mlir.reference.folds import Fold

_PLAIN = re.compile(r"[\w.]+", re.ASCII)
"""Names that a text of IR has as they are, without escapes."""


class ModelConstants:
    """The constants of a model.

    A model has two sets of constants. Runs read one of them. `set_double_buffer_constant` and its kin write the other
    one while runs go on, and `swap_constants` exchanges the two between runs: each run reads the old values or the new
    ones, never some of both.
    """

    def __init__(self, library: OpenedLibrary, memory: DeviceMemory, manifest: Manifest | None) -> None:
        self._library = library
        self._memory = memory
        self._manifest = manifest
        self._lock = ForkLock()
        self.changed = False
        """Whether a constant was set since the model was loaded."""
        self.unset: list[str] = []
        """Constants that others are computed from and that must be set before the next run."""
        self._artifact_values: Mapping[str, Any] = {}
        self._held: dict[str, Any] = {}
        self._spare_held: dict[str, Any] = {}
        self._spare_folds: Folds | None = None
        self._is_prepared = False
        self._key = ""

    def load(self, artifact: Artifact, is_shared: bool, maps: bool = False) -> None:
        """Copy an artifact's values to the device, one after another. With `is_shared`, models of one artifact share
        them on a device; with `maps`, those of other processes share them, too.
        """
        self._key = artifact.constants_key if maps else ""
        sizes = artifact.constant_bytes()
        own = [name for name in sizes if name in self._library.constants]
        sources = self._sources_among(own)
        others = [name for name in sizes if name not in self._library.constants or name in sources]
        values: dict[str, Any] = dict.fromkeys(own)
        if is_shared and own and self._library.module.adopt_constants(artifact.constants_key):
            values |= {name: artifact.constants[name] for name in others}
        else:

            def copy() -> None:
                if artifact.constants.keys() != sizes.keys():
                    raise ArtifactError(f"{artifact.path} was written while it was read: its constants changed")
                values.update({name: np.array(artifact.constants[name]) for name in others})
                for name in own:
                    self._store({name: artifact.constants[name]}, False, True, None)
                    artifact.release(name)

            if maps and own and not others:
                self._map("", own, False, copy)
            else:
                copy()
            if is_shared and own:
                self._library.module.publish_constants(artifact.constants_key)
        self._artifact_values = values
        if (
            any(name.startswith(FOLDED) and name not in values for name in self._library.constants)
            and self.folds is not None
        ):
            self.unset = self.folds.missing()

    def get_constant_names(
        self, unbound_constants_only: bool = True, constant_folding_only: bool = False, *, unset_only: bool = False
    ) -> list[str]:
        """Names of the constants, as the model was written.

        `unbound_constants_only` leaves out constants whose values are in the artifact. `constant_folding_only` keeps
        constants that fully determine another value, `unset_only` constants that have no value yet.
        """
        self._library.require_open()
        folds = self.folds
        sources = {} if folds is None else folds.sources
        computed = set[str]() if folds is None else folds.names
        if unset_only:
            plain = [name for name in map(str, self._library.module.missing_constants(False)) if name not in computed]
            return [*plain, *(name for name in ([] if folds is None else folds.missing()) if name not in plain)]
        bound = self._artifact_values.keys() | (set[str]() if folds is None else folds.bound)
        names = [*(name for name in self._library.constants if name not in computed and name not in sources), *sources]
        return [
            name
            for name in names
            if not name.startswith((LITERAL, COMPUTED))
            and not (unbound_constants_only and name in bound)
            and not (constant_folding_only and name not in sources and name not in self._foldable())
        ]

    def get_constant_folding_input_names(self, unbound_constants_only: bool = True) -> list[str]:
        """Names of the constants that fully determine another value.

        The model computes this value once, if the data were known when it was compiled, or with
        `do_constant_folding="load"`; else in each run.
        """
        return self.get_constant_names(unbound_constants_only, constant_folding_only=True)

    def _sources_among(self, names: Sequence[str]) -> set[str]:
        """The names of constants from which others are computed; an empty set if none of `names` is one.

        Parsing the folds of a network takes longer than to look for the names in their text.
        """
        text = "" if self._manifest is None else self._manifest.folds
        if all(_PLAIN.fullmatch(name) and f'ait.param "{name}"' not in text for name in names):
            return set()
        return {source for fold in self._read_folds for source in fold.source_types()}

    @cached_property
    def _read_folds(self) -> list[Fold]:
        """The folds of the artifact."""
        from ait_mlir.reference.folds import read_folds

        return read_folds(self._manifest.folds) if self._manifest is not None and self._manifest.folds else []

    @cached_property
    def folds(self) -> Folds | None:
        """The constants that the model computes from others; None if there are none."""
        if self._manifest is None or not self._read_folds:
            return None
        from ait_mlir.lowering.module_target import make_target

        target = make_target(self._manifest.target, self._manifest.arch)

        def value(fold: Fold, data: Mapping[str, Any]) -> Any:
            return hooks.fold_value(fold, data, target)

        return Folds(self._read_folds, self._artifact_values, value)

    def constant_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a constant."""
        if self.folds is not None and name in self.folds.sources:
            return self.folds.sources[name][0]
        return tuple(self._library.constants[self._known(name)]["shape"])

    def constant_dtype(self, name: str) -> str:
        """The dtype of a constant."""
        if self.folds is not None and name in self.folds.sources:
            return self.folds.sources[name][1]
        return str(self._library.constants[self._known(name)]["dtype"])

    def set_constant(self, name: str, value: Any, *, copy: bool = True, stream_ptr: int | None = None) -> None:
        """Set the value of a constant: a tensor on the host or the device, or `AITData` on the device.

        By default the value is copied to the device, after what is on the stream, and the tensor may change when the
        call returns. With `copy=False` nothing is copied: each run reads the tensor itself, so what its owner writes
        into it in place is what the next run reads. The model keeps the tensor alive, but not the memory of `AITData`.
        Such a tensor must be contiguous and on the model's device; constants that the model stores in another order,
        together with others, or computes from others, are refused.

        Waits for current runs. If the model computes constants from this one and others, all of them must be set again
        before the next run. Raises `InputError` for unknown names and for other shapes, dtypes and devices.
        """
        self.set_constants({name: value}, copy=copy, stream_ptr=stream_ptr)

    def set_constants(self, values: Mapping[str, Any], *, copy: bool = True, stream_ptr: int | None = None) -> None:
        """`set_constant` for several: all are checked before one is set, and no run sees some of them without the
        others."""
        self._set(values, spare=False, copy=copy, stream_ptr=stream_ptr)

    def set_double_buffer_constant(
        self, name: str, value: Any, stream_ptr: int | None = None, *, copy: bool = True
    ) -> None:
        """`set_constant` in the set that runs do not read yet, while runs go on; `swap_constants` makes runs read it.

        Constants that are not set there keep the value they have at the first such call after a swap.
        """
        self.set_many_double_buffer_constants({name: value}, stream_ptr, copy=copy)

    def set_many_double_buffer_constants(
        self, values: Mapping[str, Any], stream_ptr: int | None = None, *, copy: bool = True
    ) -> None:
        """`set_double_buffer_constant` for several."""
        self._set(values, spare=True, copy=copy, stream_ptr=stream_ptr)

    def map_double_buffer_constants(self, key: str, values: Callable[[], Mapping[str, Any]]) -> None:
        """`set_many_double_buffer_constants` with what `values` returns, in memory that processes share.

        Processes that do this with the same key, for models of the same artifact, share the values; `values` is called
        in the first of them. The key must differ for different values, and all constants must have values then. A model
        that is not loaded with `map_constants`, or that computes constants from others, copies the values.
        """
        if not self._key or self.folds is not None:
            return self.set_many_double_buffer_constants(values())

        def copy() -> None:
            self._set(values(), spare=True, copy=True, stream_ptr=None)
            if missing := [str(name) for name in self._library.module.missing_constants(True)]:
                raise InputError(f"constants have no value: {', '.join(missing)}")

        self._map(key, list(self._library.constants), True, copy)
        with self._lock:
            self.changed = self._is_prepared = True
            self._spare_held = {}

    def _map(self, key: str, names: Sequence[str], spare: bool, copy: Callable[[], None]) -> None:
        """Map the values of constants that `copy` sets; warns and leaves them in memory of this process if no file can
        have them."""
        self._library.require_open()
        module, has_begun, is_copied = self._library.module, False, False

        def write(handle: int) -> None:
            nonlocal has_begun, is_copied
            has_begun = True
            copy()
            is_copied = True
            module.write_constants(spare, handle)

        try:
            with values_file(f"{runtime_digest('cpu')} {self._key} {key}", write) as handle:
                module.map_constants(spare, handle, list(names))
        except (OSError, AitError) as error:
            if has_begun and not is_copied:  # an error of the values
                raise
            if not is_copied:
                copy()
            callers.warn(f"the weights of model {self._library.name} are in memory of this process alone: {error}")

    def swap_constants(self) -> None:
        """Exchange the two sets of constants: runs that begin after the call read the set from the double buffer.

        Does not wait for runs; each run reads only one of the two sets. Raises `InputError` if nothing was set in
        the double buffer since the last call, or if a constant there has no value.
        """
        self._library.require_open()
        with self._lock:
            if self._spare_folds is not None and (missing := self._spare_folds.missing()):
                raise InputError(f"the model computes constants from several: set {', '.join(missing)}, too, then swap")
            self._library.module.swap_constants()
            if self._spare_folds is not None:
                self.folds, self._spare_folds = self._spare_folds, None
                self.unset = []
            # runs under way may still read the memory to which the old set is bound
            self._held, self._spare_held, self._is_prepared = self._spare_held, self._held, False

    def fold_constants(self, stream_ptr: int | None = None, sync: bool = True, double_buffer: bool = False) -> None:
        """Check that constants with values that follow from them are set, in the set that runs read or in the double
        buffer.
        """
        self._library.require_open()
        with self._lock:
            folds = self._folds_of(double_buffer)
            unset = set(map(str, self._library.module.missing_constants(double_buffer)))
            missing = [*([] if folds is None else folds.missing()), *(n for n in self._foldable() if n in unset)]
            if missing:
                raise InputError(f"constants that others are computed from have no value: set {', '.join(missing)}")

    def _foldable(self) -> tuple[str, ...]:
        return () if self._manifest is None else self._manifest.foldable

    def _set(self, values: Mapping[str, Any], *, spare: bool, copy: bool, stream_ptr: int | None) -> None:
        self._library.require_open()
        if not isinstance(cast(object, values), Mapping):
            raise InputError(f"constants are a {type(values).__name__}, expected a dict of names and tensors")
        if wrong := [name for name in values if not isinstance(cast(object, name), str)]:
            raise InputError(f"a constant is named {wrong[0]!r}, expected a string")
        with self._lock:
            self.changed = self.changed or bool(values)
            folds = self._folds_of(spare)
            sources = [] if folds is None else [name for name in values if name in folds.sources]
            if sources and not copy:
                raise InputError(
                    f"constant '{sources[0]}' is one that others are computed from, so it cannot be read from "
                    "memory of yours: set it with a copy"
                )
            if folds is None or not sources:
                return self._store(values, spare, copy, stream_ptr)
            found = folds.take({name: to_numpy(self._host(values[name])) for name in sources})
            plain = {
                name: value for name, value in values.items() if name in self._library.constants or name not in sources
            }
            if not spare:
                self.unset = found.missing or self.unset
            self._store({**plain, **found.values}, spare, copy, stream_ptr)
            folds.keep(found)
            if not spare:
                self.unset = found.missing

    def _folds_of(self, spare: bool) -> Folds | None:
        if not spare:
            return self.folds
        if self._spare_folds is None and self.folds is not None:
            self._spare_folds = self.folds.copy()
        return self._spare_folds

    def _store(self, values: Mapping[str, Any], spare: bool, copy: bool, stream_ptr: int | None) -> None:
        arguments = Arguments(self._library.device)
        labels = [f"constant '{name}'" for name in values]
        given = [arguments.add(label, value) for label, value in zip(labels, values.values(), strict=True)]
        try:
            self._library.module.set_constants(spare, not copy, as_stream(stream_ptr), list(values), *given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._library.explained(error, labels, list(values.values())) from None
        if spare and values and not self._is_prepared:
            self._spare_held, self._is_prepared = dict(self._held), True
        held = self._spare_held if spare else self._held
        for name, value in values.items():
            held.pop(name, None)
            if not copy:
                held[name] = value

    def _host(self, value: Any) -> Any:
        if isinstance(value, AITData):
            return self._memory.ait_data_to_numpy(value)
        return value.get() if framework_of([value]) == "cupy" else value  # NumPy does not read CuPy's arrays

    def _known(self, constant: str) -> str:
        if constant not in self._library.constants:
            raise InputError(f"model {self._library.name} has no constant '{constant}'")
        return constant
