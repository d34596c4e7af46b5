"""Attention on a CUDA device: check every kernel against f64 and PyTorch, time it beside PyTorch's and cuDNN's.

    python3 benchmarks/device/attention.py [--build DIR | --library DIR] [--only check,prefill,decode] [--out DIR]

Needs nvcc, a Hopper card and a PyTorch with CUDA; reads nothing outside the repository. `--build` only compiles,
`--library` takes what it made. A check passes when no element's error against f64 is above twice the largest of
PyTorch's on the same inputs. Times are medians of CUDA-graph replays in microseconds; keys and values of the decode
rows rotate, so that they come from memory. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from replays import graph_of, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".cu").resolve()


@dataclass(frozen=True)
class Variant:
    """One kernel: its family, template arguments, element type; whether the forms with a window are compiled."""

    family: str
    tile: tuple[int, ...]
    half: bool = True
    windows: bool = False

    @property
    def dtype(self) -> torch.dtype:
        return torch.float16 if self.half else torch.bfloat16

    @property
    def name(self) -> str:
        return f"{self.family}_{'_'.join(map(str, self.tile))}{'' if self.half else '_bf16'}"

    @property
    def source(self) -> str:
        template = {"hopper": "FlashTile", "split": "SplitTile", "mma": "AttentionTile"}[self.family]
        lines = [f"#define TILE {template}<{', '.join(map(str, self.tile))}>", f"#define NAME {self.name}"]
        lines += [f"#define TYPE ait::{'half' if self.half else 'bfloat16'}", f"#define {self.family.upper()}"]
        lines += ["#define WINDOWS"] if self.windows else []
        return "\n".join([*lines, f'#include "{SOURCE}"', ""])


VARIANTS = [
    *(Variant("hopper", t, windows=t in ((64, 2, 128, 2), (128, 2, 128, 2))) for t in (
        (64, 1, 128, 2), (64, 2, 128, 2), (64, 2, 224, 2), (64, 3, 128, 2),
        (128, 1, 128, 2), (128, 2, 128, 2), (128, 2, 160, 2),
    )),
    Variant("hopper", (64, 2, 128, 2), half=False), Variant("hopper", (128, 2, 128, 2), half=False, windows=True),
    *(Variant("split", t, windows=True) for t in (
        (64, 1, 4), (64, 2, 4), (64, 1, 8), (128, 1, 4), (128, 1, 8), (128, 2, 4), (128, 2, 8),
    )),
    Variant("split", (128, 1, 4), half=False), Variant("split", (64, 2, 4), half=False),
    *(Variant("mma", t) for t in ((64, 4, 64), (64, 4, 128), (128, 4, 64), (128, 4, 128))),
]  # fmt: skip


class Call(ctypes.Structure):
    _fields_ = (
        [
            (n, ctypes.c_int64)
            for n in (
                "batch",
                "heads",
                "rows",
                "cols",
                "depth",
                "width",
                "group",
                "window",
                "masked",
                "causal",
                "option",
            )
        ]
        + [("strides", ctypes.c_int64 * 12), ("mask", ctypes.c_int64 * 4)]
        + [(n, ctypes.c_void_p) for n in ("q", "k", "v", "m", "o", "stream")]
        + [("scale", ctypes.c_float)]
    )


def build(out: Path) -> None:
    """Compiles every variant at once and links them; prints what ptxas says of spills and of products in a row."""
    out.mkdir(parents=True, exist_ok=True)
    flags = [
        "-std=c++17",
        "-O3",
        "-DNDEBUG",
        "-lineinfo",
        "-Xcompiler",
        "-fPIC",
        f"-I{ROOT}/runtime/include",
        "-Xptxas",
        "-v",
    ]
    flags += ["-gencode", "arch=compute_90a,code=sm_90a"]

    def compile_one(variant: Variant) -> str:
        path = out / f"{variant.name}.cu"
        path.write_text(variant.source)
        done = subprocess.run(
            ["nvcc", *flags, "-c", str(path), "-o", str(path.with_suffix(".o"))], capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{variant.name}:\n{done.stdout}{done.stderr}")
        return done.stderr

    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
        logs = list(pool.map(compile_one, VARIANTS))
    for variant, log in zip(VARIANTS, logs, strict=True):
        bad = [
            line
            for line in log.splitlines()
            if "serialized" in line or ("spill" in line and " 0 bytes spill stores" not in line)
        ]
        if bad:
            print(f"{variant.name}: {len(bad)} remarks, the first: {bad[0].strip()[:150]}")
    objects = [str(out / f"{v.name}.o") for v in VARIANTS]
    subprocess.run(["nvcc", "-shared", "-cudart", "shared", *objects, "-o", str(out / "libattention.so")], check=True)
    print(f"built {len(VARIANTS)} variants")


class Problem:
    """Inputs and result: q, k and v are parts of one tensor [batch, length, heads, depth] each."""

    def __init__(
        self, batch: int, heads: int, rows: int, cols: int, depth: int, *, dtype: torch.dtype = torch.float16,
        group: int = 1, causal: bool = False, window: int = 0, mask: str = "", width: int | None = None,
        copies: int = 1, shared: bool = False,
    ) -> None:  # fmt: skip
        width = depth if width is None else width
        kv = heads // group

        def packed(length: int) -> torch.Tensor:
            return torch.randn(batch, length, heads * depth + kv * (depth + width), device="cuda").to(dtype)

        def part(x: torch.Tensor, at: int, count: int, size: int) -> torch.Tensor:
            return x[..., at : at + count * size].unflatten(-1, (count, size)).transpose(1, 2)

        pairs = []
        for _ in range(copies):
            both = packed(cols)
            k = part(both, heads * depth, kv, depth)
            pairs.append((k, part(both, (heads + kv) * depth, kv, width)))
        if shared:  # one cache for all batches
            pairs = [tuple(x[:1].expand(batch, -1, -1, -1) for x in pair) for pair in pairs]
        self.pairs = pairs
        self.q = part(both if rows == cols else packed(rows), 0, heads, depth)
        self.o = torch.full((batch, rows, heads, width), float("nan"), device="cuda", dtype=dtype).transpose(1, 2)
        self.causal, self.window, self.group, self.scale = causal, window, group, depth**-0.5
        self.dims = (batch, heads, rows, cols, depth, width)
        shape = {"": None, "row": (batch, 1, 1, cols), "full": (1, heads, rows, cols)}[mask]
        self.mask = None if shape is None else torch.randn(shape, device="cuda").to(dtype)

    def __str__(self) -> str:
        flags = (
            [f"group {self.group}"] * (self.group > 1)
            + ["causal"] * self.causal
            + [f"window {self.window}"] * (self.window > 0)
        )
        return " ".join(["b{} h{} s{} l{} d{} e{}".format(*self.dims), *flags, *["masked"] * (self.mask is not None)])

    @property
    def flops(self) -> float:
        batch, heads, rows, cols, depth, width = self.dims
        return 2.0 * batch * heads * rows * cols * (depth + width) / (2 if self.causal and rows > 1 else 1)

    @property
    def bytes(self) -> int:
        tensors = (self.q, *self.pairs[0], self.o)
        return sum(t.numel() * t.element_size() for t in tensors)

    def run(self, function: Callable[..., int], option: int = 8, copy: int = 0) -> None:
        k, v = self.pairs[copy % len(self.pairs)]
        strides = [s for t in (self.q, k, v, self.o) for s in t.stride()[:3]]
        steps = [0] * 4
        if self.mask is not None:
            steps = [0 if size == 1 else s for size, s in zip(self.mask.shape, self.mask.stride(), strict=True)]
        call = Call(*self.dims, self.group, self.window, self.mask is not None, self.causal, option)
        call.strides, call.mask = (ctypes.c_int64 * 12)(*strides), (ctypes.c_int64 * 4)(*steps)
        call.q, call.k, call.v, call.o = (t.data_ptr() for t in (self.q, k, v, self.o))
        call.m = None if self.mask is None else self.mask.data_ptr()
        call.stream, call.scale = torch.cuda.current_stream().cuda_stream, self.scale
        if function(ctypes.byref(call)) != 0:
            raise RuntimeError(f"not launched: {self}")

    def visible(self) -> torch.Tensor | None:
        """Which columns each row sees."""
        if not (self.causal or self.window):
            return None
        rows, cols = self.dims[2:4]
        at = torch.arange(rows, device="cuda")[:, None] + cols - rows
        col = torch.arange(cols, device="cuda")[None, :]
        seen = torch.ones(rows, cols, dtype=torch.bool, device="cuda")
        if self.causal:
            seen &= col <= at
        if self.window:
            seen &= (col - at).abs() < self.window
        return seen

    def torch(self, dtype: torch.dtype | None = None, device: str = "cuda") -> torch.Tensor:
        """On `device` in `dtype`; float64 is the reference."""
        k, v = (x.repeat_interleave(self.group, 1) for x in self.pairs[0])
        q, k, v = (x.to(device=device, dtype=dtype) for x in (self.q, k, v))
        bias = None if self.mask is None else self.mask.to(device=device, dtype=dtype)
        seen = self.visible()
        seen = None if seen is None else seen.to(device)
        if dtype is None:
            if seen is not None:
                hidden = torch.zeros(seen.shape, device=device, dtype=q.dtype).masked_fill(~seen, float("-inf"))
                bias = hidden if bias is None else hidden + bias
            return sdpa(q, k, v, attn_mask=bias, scale=self.scale)
        s = q @ k.mT * self.scale
        s = s if bias is None else s + bias
        s = s if seen is None else s.masked_fill(~seen, float("-inf"))
        return s.softmax(-1) @ v


def check_one(
    variant: Variant, function: Callable[..., int], problem: Problem, option: int, device: str
) -> tuple[bool, float]:
    """Whether it is right; its largest error over PyTorch's on `device`."""
    problem.o.fill_(float("nan"))
    problem.run(function, option)
    torch.cuda.synchronize()
    want, got = problem.torch(torch.float64, device), problem.o.to(device)
    sane = want.isfinite()
    if not bool((got.isnan() == want.isnan()).all()):
        print(f"FAILED {variant.name} option {option} {problem}: NaN at wrong places", flush=True)
        return False, float("inf")
    ours = (got.double() - want)[sane].abs().max().item() if sane.any() else 0.0
    theirs = (problem.torch(None, device).double() - want)[sane].abs().nan_to_num(0).max().item() if sane.any() else 0.0
    ratio = ours / max(theirs, 1e-30) if ours else 0.0
    if ratio > 2:
        what = f"FAILED {variant.name} option {option} {problem}"
        print(f"{what}: largest error {ours:.2e}, PyTorch's {theirs:.2e}", flush=True)
    return ratio <= 2, ratio


def problems(variant: Variant) -> list[tuple[dict[str, Any], int]]:
    top = variant.tile[0]
    cases: list[tuple[dict[str, Any], int]] = []
    if variant.family == "hopper":
        sizes = (
            (2, 3, 128, 128),
            (1, 2, 77, 200),
            (1, 1, 1, 65),
            (3, 2, 130, 130),
            (1, 4, 700, 900),
            (40, 6, 300, 300),
            (1, 2, 300, 40),
        )
        for b, h, s, length in sizes:
            for causal in (False, True):
                shape = {"batch": b, "heads": h, "rows": s, "cols": length, "causal": causal}
                cases.append((shape | {"depth": top}, 3))
                cases.append((shape | {"depth": top, "shared": True}, 8))
                cases.append((shape | {"depth": top - 8, "width": top - 24, "group": h if h < 4 else h // 2}, 0))
                if variant.windows:
                    cases += [(shape | {"depth": top, "window": w}, 0) for w in (1, 50, 200)]
    else:
        for b, h, s, length in (
            (1, 8, 1, 2048),
            (3, 4, 1, 77),
            (2, 8, 3, 500),
            (1, 4, 16, 1),
            (2, 6, 16, 1000),
            (16, 8, 1, 300),
            (1, 2, 40, 9),
        ):
            for group in (1, h // 2, h):
                for causal in (False, True):
                    shape = {"batch": b, "heads": h, "rows": s, "cols": length, "causal": causal, "group": group}
                    cases += [(shape | {"depth": top}, option) for option in (1, 4, 16)]
                    cases.append((shape | {"depth": top - 8, "width": top - 24, "mask": "full"}, 16))
                    cases.append((shape | {"depth": top, "mask": "row"}, 16))
                    cases.append((shape | {"depth": top, "shared": True}, 16))
                    if variant.windows:
                        cases += [(shape | {"depth": top, "window": w}, 16) for w in (1, 50)]
    return cases


def check(lib: ctypes.CDLL, families: str, small: bool) -> bool:
    good = total = 0
    for variant in VARIANTS:
        if variant.family == "mma" or variant.family not in families:
            continue
        worst = 0.0
        for options, option in problems(variant)[:: 11 if small else 1]:
            problem = Problem(**options, dtype=variant.dtype)
            device = "cpu" if small else "cuda"
            fine, ratio = check_one(variant, getattr(lib, variant.name), problem, option, device)
            good, total, worst = good + fine, total + 1, max(worst, ratio)
        print(f"checked {variant.name}: largest error over PyTorch's at most {worst:.2f}", flush=True)
    print(f"attention: {good} of {total} checks passed", flush=True)
    return good == total


def race(launches: dict[str, Callable[[int], object]], count: int, rounds: int = 15) -> dict[str, float]:
    """Median microseconds of each, the least first. They are replayed in turns: what the card does befalls all."""
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    for name, launch in launches.items():
        try:
            graphs[name] = graph_of(launch, count)
        except RuntimeError as e:
            print(f"  {name} declines: {str(e).splitlines()[0][:100]}")
            torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds + 2):
        for name, graph in graphs.items():
            times[name].append(seconds(graph) * 1e6 / count)
    medians = {name: sorted(found[2:])[rounds // 2] for name, found in times.items()}
    return {name: round(us, 2) for name, us in sorted(medians.items(), key=lambda item: item[1])}


def peers(problem: Problem) -> dict[str, Callable[[int], object]]:
    """PyTorch's default and its two backends that may take the problem."""
    causal = problem.causal and problem.dims[2] > 1

    def on(backend: SDPBackend | None) -> Callable[[int], object]:
        def one(i: int) -> torch.Tensor:
            k, v = problem.pairs[i % len(problem.pairs)]
            with nullcontext() if backend is None else sdpa_kernel(backend):
                return sdpa(problem.q, k, v, is_causal=causal, enable_gqa=problem.group > 1)

        return one

    backends = {"torch": None, "torch flash": SDPBackend.FLASH_ATTENTION, "torch cudnn": SDPBackend.CUDNN_ATTENTION}
    return {name: on(backend) for name, backend in backends.items()}


def report(problem: Problem, times: dict[str, float], amount: float, unit: str) -> dict[str, object]:
    """`amount`: of the problem, in 1e6 of `unit` a second."""
    best = next(name for name in times if not name.startswith("torch"))
    print(f"{problem}: {best} {times[best]} us, {amount / times[best]:.3g} {unit}")
    print("    " + "; ".join(f"{name} {us}" for name, us in times.items()), flush=True)
    return {"problem": str(problem), "times": times}


PREFILL = (
    (1, 12, 128, 64, 1, False), (32, 12, 128, 64, 1, False), (1, 12, 384, 64, 1, False), (32, 12, 384, 64, 1, False),
    (32, 12, 197, 64, 1, False), (4, 16, 4096, 64, 1, False), (4, 16, 4096, 64, 1, True), (1, 32, 512, 128, 1, True),
    (4, 32, 512, 128, 4, True), (4, 32, 2048, 128, 1, True), (4, 32, 2048, 128, 1, False), (2, 32, 4096, 128, 4, True),
)  # fmt: skip
DECODE = (
    (1, 32, 1, 2048, 128, 1), (1, 32, 1, 2048, 128, 4), (16, 32, 1, 2048, 128, 1), (16, 32, 1, 2048, 128, 4),
    (1, 32, 4, 2048, 128, 4), (1, 12, 1, 1024, 64, 1), (16, 12, 1, 1024, 64, 1), (1, 32, 1, 16384, 128, 4),
)  # fmt: skip


def on_variant(lib: ctypes.CDLL, problem: Problem, variant: Variant, option: int) -> Callable[[int], object]:
    return lambda i: problem.run(getattr(lib, variant.name), option, i)


def time_prefill(lib: ctypes.CDLL) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for b, h, s, d, group, causal in PREFILL:
        problem = Problem(b, h, s, s, d, group=group, causal=causal)
        launches = peers(problem)
        for v in VARIANTS:
            if v.half and v.tile[0] == d and (v.family == "hopper" or (v.family == "mma" and s < 1000)):
                for section in (0, 1) if causal and v.family == "hopper" else (0,):  # 0: as many as is even
                    name = f"{v.name} by 1" if section else v.name
                    launches[name] = on_variant(lib, problem, v, section)
        times = race(launches, 24 if problem.flops < 3e10 else 4)
        rows.append(report(problem, times, problem.flops / 1e6, "TFLOP/s"))
    return rows


def time_decode(lib: ctypes.CDLL) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for b, h, s, length, d, group in DECODE:
        sample = Problem(b, h, s, length, d, group=group)
        problem = Problem(b, h, s, length, d, group=group, copies=max(2, min(24, (300 << 20) // sample.bytes)))
        launches = peers(problem)
        for v in VARIANTS:
            if v.half and v.tile[0] == d and (v.family != "hopper" or v.tile[1] == 1):
                for blocks in (16, 8, 4, 2) if v.family == "split" else (1,):
                    name = f"{v.name} by {blocks}" if v.family == "split" else v.name
                    launches[name] = on_variant(lib, problem, v, blocks)
        times = race(launches, 24)
        rows.append(report(problem, times, problem.bytes / 1e6, "TB/s"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, metavar="DIR", help="compile there and stop")
    parser.add_argument("--library", type=Path, metavar="DIR", help="where `--build` compiled")
    parser.add_argument("--only", default="check,prefill,decode", help="which parts to run")
    parser.add_argument("--families", default="hopper,split", help="which kernels to check")
    parser.add_argument(
        "--small", action="store_true", help="check every eleventh problem, with PyTorch on the CPU: under a sanitizer"
    )
    parser.add_argument("--out", default=os.environ.get("OUT"), help="folder for attention.json")
    options = parser.parse_args()
    if options.build:
        build(options.build)
        return 0
    torch.manual_seed(0)
    results: dict[str, object] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        if options.library is None:
            build(Path(folder))
        lib = ctypes.CDLL(str((options.library or Path(folder)) / "libattention.so"))
        if "check" in options.only:
            failed = not check(lib, options.families, options.small)
        if "prefill" in options.only:
            results["prefill"] = time_prefill(lib)
        if "decode" in options.only:
            results["decode"] = time_decode(lib)
    if options.out:
        (Path(options.out) / "attention.json").write_text(json.dumps(results, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
