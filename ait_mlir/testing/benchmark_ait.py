"""Times a model on a pool of inputs, so that a run does not find the inputs of the run before it in the cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Tensors = Mapping[str, torch.Tensor]


def make_input_output_pools(
    *,
    pool_size: int,
    eval_pt_func: Callable[[], Tensors],
    input_filter_func: Callable[[str, torch.Tensor], bool],
    output_filter_func: Callable[[str, torch.Tensor], bool],
) -> tuple[list[dict[str, torch.Tensor]], list[dict[str, torch.Tensor]]]:
    """The inputs and the outputs of `pool_size` runs, by name.

    Each call of `eval_pt_func` makes the tensors of one run. The filters say which are inputs, and which are like the
    outputs, for which empty tensors are made.
    """
    made = [eval_pt_func() for _ in range(pool_size)]
    inputs = [{name: t for name, t in run.items() if input_filter_func(name, t)} for run in made]
    outputs = [{name: torch.empty_like(t) for name, t in run.items() if output_filter_func(name, t)} for run in made]
    return inputs, outputs


def run_module_with_pools(
    *,
    ait_module: Any,
    inputs_pool: Sequence[Tensors],
    outputs_pool: Sequence[Tensors],
    num_iters: int,
    stream_ptr: int | None = None,
    sync: bool = False,
    graph_mode: bool = False,
) -> None:
    """Run a model `num_iters` times, taking inputs and outputs from the pools in turn."""
    for i in range(num_iters):
        inputs, outputs = inputs_pool[i % len(inputs_pool)], outputs_pool[i % len(outputs_pool)]
        ait_module.run_with_tensors(inputs, outputs, stream_ptr=stream_ptr, sync=sync, graph_mode=graph_mode)


def run_benchmark(
    *,
    ait_module: Any,
    inputs_pool: Sequence[Tensors],
    outputs_pool: Sequence[Tensors],
    num_iters: int,
    num_warmup_iters: int,
    stream: torch.cuda.Stream | None = None,
    sync: bool = False,
    graph_mode: bool = False,
) -> float:
    """The mean time of a run in milliseconds, after `num_warmup_iters` untimed runs; without a GPU, by the host's
    clock.
    """
    on_gpu = torch.cuda.is_available()
    used = (stream or torch.cuda.default_stream()) if on_gpu else None

    def run(count: int) -> None:
        run_module_with_pools(
            ait_module=ait_module,
            inputs_pool=inputs_pool,
            outputs_pool=outputs_pool,
            num_iters=count,
            stream_ptr=used.cuda_stream if used is not None else None,
            sync=sync,
            graph_mode=graph_mode,
        )

    run(num_warmup_iters)
    if used is None:
        begin = time.perf_counter()
        run(num_iters)
        return (time.perf_counter() - begin) * 1e3 / num_iters
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record(used)
    run(num_iters)
    end.record(used)
    torch.cuda.synchronize()
    return start.elapsed_time(end) / num_iters
