"""`deployment`: an artifact as an application of Ray Serve."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime import artifact as artifacts
from ait_mlir.serve.joining import find_batch_dim
from ait_mlir.serve.server import read_weights

_LEAST_ONGOING = 16


def deployment(
    artifact: str | os.PathLike[str],
    *,
    name: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    batch: str | bool = True,
    max_batch_size: int | None = None,
    batch_wait_timeout_s: float = 0.0,
    num_runtimes: int = 1,
    map_weights: bool = True,
    ray_actor_options: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """An application of Ray Serve that answers requests to a model, as in `serve.run(deployment("net.ait"))`.

    Requests that wait are joined along `batch`, a dim of the model; with True along the first dim that is axis 0 of all
    outputs and along which runs show that rows do not influence each other. A run has at most `max_batch_size` rows, by
    default the dim's maximum. A request waits for others while runs are under way, and at least `batch_wait_timeout_s`.

    The artifact is at the same path on each node. `weights` is a safetensors file with values of constants, instead of
    those in the artifact. `serve.run` with the same artifact and options, and other `weights`, changes them in the
    replicas that run. With `map_weights`, the replicas of a node have the weights in memory once, on a CPU. `name` is
    the deployment's, by default the model's. Without `num_gpus` in `ray_actor_options`, a replica of a model for GPUs
    takes one. Further options are those of `serve.deployment`, such as `num_replicas`.

    Raises `ArtifactError` for a damaged file, `InputError` for a dim that cannot be a batch dim, for a model of several
    ranks and for weights of other shapes or dtypes than those in the artifact, `ToolchainError` without Ray.
    """
    path = Path(artifact).absolute()
    read = artifacts.read(path, defer_weights=True)
    manifest = read.manifest
    if manifest.ranks > 1:
        raise InputError(f"model {manifest.name} runs on {manifest.ranks} ranks; a replica is one process")
    if max_batch_size is not None and max_batch_size < 1:
        raise InputError(f"max_batch_size is {max_batch_size}, expected at least 1")
    dim = find_batch_dim(manifest, batch)
    rows = 1 if dim is None else min(dim.hi, max_batch_size or dim.hi)
    if weights is not None:
        _check_weights(read, str(Path(weights).absolute()))
    actor = dict(ray_actor_options or {})
    if manifest.target != "cpu":
        actor.setdefault("num_gpus", 1)
    arguments = (str(path), batch, max_batch_size, float(batch_wait_timeout_s), num_runtimes, map_weights)

    from ait_mlir.serve.ray_library import serve  # Ray is loaded by who deploys
    from ait_mlir.serve.replica import Replica

    made = serve.deployment(
        Replica,
        name=name or manifest.name,
        ray_actor_options=actor,
        user_config={} if weights is None else {"weights": str(Path(weights).absolute())},
        **{"max_ongoing_requests": max(2 * rows, _LEAST_ONGOING), **options},
    )
    # Without a version, serve.run starts new replicas where a call of `reconfigure` would do.
    version = hashlib.sha256(repr((read.digest, arguments)).encode()).hexdigest()[:16]
    return made.options(version=version, _internal=True).bind(*arguments)


def _check_weights(read: artifacts.Artifact, path: str) -> None:
    """Refuse weights that differ from the artifact's in shape or dtype: a replica that cannot take them would end."""
    stored = read.constant_places()
    for name, x in read_weights(path).items():
        if name in stored and (x.shape, x.dtype.name) != (stored[name].shape, stored[name].dtype):
            raise InputError(
                f"{path}: '{name}' has shape {list(x.shape)} and dtype {x.dtype.name}, but in {read.path} it has "
                f"{list(stored[name].shape)} and {stored[name].dtype}"
            )
