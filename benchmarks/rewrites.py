"""The cost of rewriting: many patterns against one, and a stack of BERT layers from text through every phase.

    python -m benchmarks.rewrites              # both, with the limits; exit code 1 where one is missed
    python -m benchmarks.rewrites --ops 2500   # the phases of one stack
    python -m benchmarks.rewrites --layers 12,48,192   # stacks of these layers: growth from each to the next
    python -m benchmarks.rewrites --chain 100000       # elementwise ops one after another

Times are CPU seconds of this process; what no pass takes is verification. The engine's is
the smallest of several runs; a stack runs once after a warm-up.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable

from xdsl.dialects import pdl
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_source
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.ir.source import SourceText
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.rewrites.apply import universe
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.driver import apply_patterns
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

# ** many patterns against one **

PATTERNS = 60
CHAINS = 2_667
MAX_PATTERN_RATIO = 1.5


@pattern(benefit=2, over=range(PATTERNS // 2))
def tagged_with_own_bias(p: PatternBuilder, tag: int) -> None:
    """relu(gemm + bias) where nothing else uses the bias"""
    bias = p.value()
    product = p.op("ait.gemm", p.values(2), {"layout": "rcr", "tag": tag})
    total = p.op("ait.add", [p.result(product), bias])
    root = p.op("ait.relu", [p.result(total)])
    p.require("one_use", p.result(product))
    p.require("one_use", p.result(total))
    p.require("one_use", bias)
    p.replace(root, p.new("ait.gelu", [p.result(total)]))


@pattern(over=range(PATTERNS // 2))
def tagged(p: PatternBuilder, tag: int) -> None:
    """The same with any bias: matches wherever the first matches, with less benefit"""
    product = p.op("ait.gemm", p.values(2), {"layout": "rcr", "tag": tag})
    total = p.op("ait.add", [p.result(product), p.value()])
    root = p.op("ait.relu", [p.result(total)])
    p.require("one_use", p.result(product))
    p.require("one_use", p.result(total))
    p.replace(root, p.new("ait.gelu", [p.result(total)]))


@pattern()
def untagged(p: PatternBuilder) -> None:
    """One pattern in place of all of these"""
    product = p.op("ait.gemm", p.values(2), {"layout": "rcr"})
    total = p.op("ait.add", [p.result(product), p.value()])
    root = p.op("ait.relu", [p.result(total)])
    p.require("one_use", p.result(product))
    p.require("one_use", p.result(total))
    p.replace(root, p.new("ait.gelu", [p.result(total)]))


def chains(count: int) -> str:
    """gemm, add, relu `count` times, with a tag on each gemm; every other one shares its bias."""
    t = "!ait.tensor<b x 8 x f32>"
    inputs = f"%v0: {t}, %w: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x f32>"
    lines = [f"ait.graph @chains({inputs}) dims {{b = 1 to 8}} {{"]
    for i in range(count):
        bias = "%c"
        if i % 2:
            bias = f"%c{i}"
            lines.append(f'  {bias} = ait.param "c{i}" : !ait.tensor<8 x f32>')
        lines.append(f"  %g{i} = ait.gemm rcr %v{i}, %w {{tag = {i // 2 % (PATTERNS // 2)} : i64}} : {t}")
        lines.append(f"  %a{i} = ait.add %g{i}, {bias} : {t}")
        lines.append(f"  %v{i + 1} = ait.relu %a{i} : {t}")
    return "\n".join([*lines, f'  ait.output "y" %v{count} : {t}', "}\n"])


def seconds_to_apply(module: ModuleOp, compiled: CompiledPatterns, runs: int = 5) -> tuple[float, int]:
    """CPU seconds to apply patterns to a copy of the module, the best of some runs, and how many patterns fired."""
    best, fired = float("inf"), 0
    for _ in range(runs):
        copy = module.clone()
        gc.collect()
        gc.disable()
        start = time.process_time()
        statistics = apply_patterns(copy, compiled)
        best = min(best, time.process_time() - start)
        gc.enable()
        fired = len(statistics.applied)
        assert statistics.rewrites == CHAINS, f"{statistics.rewrites} rewrites, expected {CHAINS}"
    return best, fired


def benchmark_patterns() -> bool:
    """60 overlapping patterns against one; returns whether the ratio is within its limit."""
    module = parse_source(context(), SourceText("chains.mlir", chains(CHAINS)))
    many: tuple[pdl.PatternOp, ...] = patterns(tagged_with_own_bias, tagged).patterns
    start = time.process_time()
    compiled = compile_patterns(many, universe())
    compiling = time.process_time() - start
    one, _ = seconds_to_apply(module, compile_patterns(patterns(untagged).patterns, universe()))
    all_of_them, fired = seconds_to_apply(module, compiled)
    ratio = all_of_them / one
    ok = fired == len(many) and ratio <= MAX_PATTERN_RATIO
    operations = sum(1 for _ in module.walk())
    print(f"{operations} ops, {CHAINS} rewrites")
    print(f"  1 pattern   {one * 1e3:6.0f} ms")
    print(f"  {len(many)} patterns {all_of_them * 1e3:6.0f} ms, compiled in {compiling * 1e3:.0f} ms; {fired} fire")
    print(f"  ratio {ratio:.2f} (limit {MAX_PATTERN_RATIO})")
    return ok


# ** a stack of BERT layers **

MAX_SECONDS = 8.0
MAX_GROWTH = 4.5
MAX_CHAIN_SECONDS = 100.0
HIDDEN, HEADS, INTER = 768, 12, 3072


def bert_layer(i: int, x: str) -> list[str]:
    """The text of one encoder layer that reads `x` and ends in `%y{i}`."""
    h, s = f"!ait.tensor<batch x seq x {HIDDEN} x f16>", f"!ait.tensor<batch x {HEADS} x seq x seq x f16>"
    up, split = f"!ait.tensor<batch x seq x {INTER} x f16>", f"!ait.tensor<batch x seq x {HEADS} x 64 x f16>"
    heads = f"!ait.tensor<batch x {HEADS} x seq x 64 x f16>"

    def linear(name: str, a: str, n: int, k: int, result: str) -> list[str]:
        return [
            f'%{name}w = ait.param "{name}.weight" : !ait.tensor<{n} x {k} x f16>',
            f'%{name}b = ait.param "{name}.bias" : !ait.tensor<{n} x f16>',
            f"%{name}0 = ait.gemm rcr {a}, %{name}w : {result}",
            f"%{name} = ait.add %{name}0, %{name}b : {result}",
        ]

    def norm(name: str, a: str) -> list[str]:
        return [
            f'%{name}g = ait.param "{name}.weight" : !ait.tensor<{HIDDEN} x f16>',
            f'%{name}c = ait.param "{name}.bias" : !ait.tensor<{HIDDEN} x f16>',
            f"%{name} = ait.layer_norm {a} scale %{name}g bias %{name}c axes 1 eps 0.00001 : {h}",
        ]

    lines: list[str] = []
    for part in "qkv":
        lines += linear(f"{part}{i}_", x, HIDDEN, HIDDEN, h)
        lines.append(f"%{part}s{i} = ait.reshape %{part}{i}_ : {split}")
        lines.append(f"%{part}h{i} = ait.permute %{part}s{i} [0, 2, 1, 3] : {heads}")
    lines += [
        f"%c{i} = ait.constant 0.125 : !ait.tensor<f16>",
        f"%s{i} = ait.bmm rcr %qh{i}, %kh{i} : {s}",
        f"%t{i} = ait.mul %s{i}, %c{i} : {s}",
        f"%p{i} = ait.softmax %t{i} dim 3 : {s}",
        f"%o{i} = ait.bmm rrr %p{i}, %vh{i} : {heads}",
        f"%op{i} = ait.permute %o{i} [0, 2, 1, 3] : {split}",
        f"%or{i} = ait.reshape %op{i} : {h}",
    ]
    lines += linear(f"proj{i}_", f"%or{i}", HIDDEN, HIDDEN, h)
    lines.append(f"%r{i} = ait.add %proj{i}_, {x} : {h}")
    lines += norm(f"n{i}_", f"%r{i}")
    lines += linear(f"up{i}_", f"%n{i}_", INTER, HIDDEN, up)
    lines.append(f"%g{i} = ait.gelu %up{i}_ : {up}")
    lines += linear(f"down{i}_", f"%g{i}", HIDDEN, INTER, h)
    lines.append(f"%u{i} = ait.add %down{i}_, %n{i}_ : {h}")
    lines += norm(f"y{i}_", f"%u{i}")
    return [*lines[:-1], lines[-1].replace(f"%y{i}_ =", f"%y{i} =")]


def bert_stack(operations: int) -> str:
    """Encoder layers with dynamic batch and sequence, at least this many operations in all."""
    per_layer = len(bert_layer(0, "%x"))
    layers = -(-operations // per_layer)
    h = f"!ait.tensor<batch x seq x {HIDDEN} x f16>"
    lines = [f"ait.graph @bert(%x: {h}) dims {{batch = 1 to 64, seq = 1 to 512 hints [128, 384]}} {{"]
    x = "%x"
    for i in range(layers):
        lines += [f"  {line}" for line in bert_layer(i, x)]
        x = f"%y{i}"
    return "\n".join([*lines, f'  ait.output "y" {x} : {h}', "}\n"])


def timed(times: dict[str, float], name: str, run: Callable[[], object]) -> object:
    """Run, and note the CPU time."""
    start = time.process_time()
    result = run()
    times[name] = times.get(name, 0.0) + time.process_time() - start
    return result


def chain(operations: int) -> str:
    """A chain of elementwise ops: each reads the op before it."""
    t, kinds = "!ait.tensor<b x 64 x f32>", ("relu", "tanh", "neg", "sigmoid")
    lines = [f"  %v{i + 1} = ait.{kinds[i % 4]} %v{i} : {t}" for i in range(operations)]
    head = f"ait.graph @chain(%v0: {t}) dims {{b = 1 to 8}} {{"
    return "\n".join([head, *lines, f'  ait.output "y" %v{operations} : {t}', "}\n"])


def time_stack(operations: int, phase: str = "planned", target: str = "cuda") -> dict[str, float]:
    """CPU seconds of each step from text to a phase for a stack of BERT layers; see `time_text`."""
    return time_text(bert_stack(operations), phase, target)


def time_text(text: str, phase: str = "planned", target: str = "cuda") -> dict[str, float]:
    """CPU seconds of each step from text to a phase, with verification after each pass that changed something."""
    source = SourceText("model.mlir", text)
    ctx = context()
    times: dict[str, float] = {}
    module = timed(times, "parse", lambda: parse_source(ctx, source))
    assert isinstance(module, ModuleOp)
    timed(times, "verify", lambda: check(module, source))

    def note(step: ModulePass, _: ModuleOp, seconds: float) -> None:
        times[step.name] = times.get(step.name, 0.0) + seconds

    passes = parse_passes(passes_between("imported", phase, target))
    start = time.process_time()
    clock = time.process_time
    run_passes(ctx, module, passes, source=source, verified=True, observe=note, clock=clock)  # type: ignore[arg-type]
    total = time.process_time() - start
    times["verify"] += total - sum(times[name] for name in {step.name for step in passes})
    return times


def benchmark_stack(sizes: list[int], phase: str = "planned") -> bool:
    """Time stacks of some sizes; returns whether the limits are kept."""
    time_stack(100, phase)
    tables = {size: time_stack(size, phase) for size in sizes}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    print(f"{'CPU seconds':24}" + "".join(f"{f'{size} ops':>12}" for size in sizes))
    for name in names:
        print(f"{name:24}" + "".join(f"{tables[size].get(name, 0.0):12.2f}" for size in sizes))
    totals = [sum(tables[size].values()) for size in sizes]
    print(f"{'total':24}" + "".join(f"{total:12.2f}" for total in totals))
    if len(sizes) < 2:
        return True
    growth = totals[-1] / totals[0]
    print(f"  {totals[-1]:.1f} s (limit {MAX_SECONDS:.0f} s); growth {growth:.2f} (limit {MAX_GROWTH})")
    return totals[-1] <= MAX_SECONDS and growth <= MAX_GROWTH


def benchmark_layers(layers: list[int], phase: str = "planned") -> bool:
    """Time stacks of some numbers of layers; returns whether four times the ops take at most 4.5 times as long."""
    per_layer = len(bert_layer(0, "%x"))
    time_stack(100, phase)
    seconds = [sum(time_stack(count * per_layer, phase).values()) for count in layers]
    print(f"{'layers':>8}{'ops':>8}{'CPU s':>8}{'growth':>8}{'limit':>8}")
    ok = True
    for i, count in enumerate(layers):
        line = f"{count:8}{count * per_layer:8}{seconds[i]:8.2f}"
        if i:
            growth, limit = seconds[i] / seconds[i - 1], MAX_GROWTH ** math.log(count / layers[i - 1], 4)
            line += f"{growth:8.2f}{limit:8.2f}"
            ok &= growth <= limit
        print(line)
    return ok


def benchmark_chain(operations: int, phase: str = "planned") -> bool:
    """Time a chain; returns whether it is within the limit."""
    seconds = sum(time_text(chain(operations), phase).values())
    print(f"a chain of {operations} ops: {seconds:.1f} CPU s (limit {MAX_CHAIN_SECONDS:.0f} s for 100000)")
    return seconds <= MAX_CHAIN_SECONDS


def ascending(text: str) -> list[int]:
    """Whole numbers with commas between, each above the one before; for argparse."""
    numbers = [int(part) for part in text.split(",")]
    if not all(low < high for low, high in zip([0, *numbers], numbers, strict=False)):
        raise argparse.ArgumentTypeError(f"{text}: expected numbers above 0, each above the one before")
    return numbers


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, help="time one stack of this many operations, and nothing else")
    parser.add_argument("--to", default="planned", metavar="PHASE", help="the phase at which a stack ends")
    parser.add_argument("--layers", type=ascending, metavar="N,N,...", help="time stacks of these numbers of layers")
    parser.add_argument("--chain", type=int, metavar="OPS", help="time a chain of elementwise ops")
    options = parser.parse_args(arguments)
    if options.layers or options.chain:
        ok = not options.layers or benchmark_layers(options.layers, options.to)
        return int(not ((not options.chain or benchmark_chain(options.chain, options.to)) and ok))
    if options.ops is not None:
        benchmark_stack([options.ops], options.to)
        return 0
    ok = benchmark_patterns()
    return int(not (benchmark_stack([2_500, 10_000], options.to) and ok))


if __name__ == "__main__":
    sys.exit(main())
