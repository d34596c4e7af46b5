"""Generated loops at random."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from ait_mlir.lowering.kernels import Target, kernels_for
from tests.kernels.harness import Case
from tests.kernels.library_gemm import on_kernel
from tests.kernels.loops import FLOATS, SPEC, few_blocks, nest
from tests.specs.spec import Form

SIZES = (1, 2, 3, 5, 8, 12, 16, 33, "b", "u")
RANDOM_ENVS = ({"b": 3, "s": 0, "u": 5, "t": 1}, {"b": 8, "s": 0, "u": 16, "t": 1})
UNARY, BINARY = ("relu", "abs", "neg"), ("add", "sub", "max", "min")


class _Random:
    """A nest at random: reads that turn, step, flip, shift and share axes, folds along subsets of the axes, of which one
    may be a result of its own.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.t = self.draw.choice(("f16", "bf16", "f32", "f64", "i32", "i8"))
        self.scalar = "f64" if self.t == "f64" else "f32" if self.t in FLOATS else self.t
        self.shapes: list[str] = []
        self.count = 0

    def form(self) -> Form:
        rank = self.draw.randint(0, 4)
        axes = {f"j{i}": self.draw.choice(SIZES[:4] if rank > 2 else SIZES) for i in range(rank)}
        lines: list[str] = []
        values = [self.value(axes, lines) for _ in range(self.draw.randint(1, 3))]
        once: list[tuple[str, dict[str, int | str]]] = []
        for _ in range(self.draw.randint(0, 2)):
            kept = {name: size for name, size in axes.items() if self.draw.random() < 0.6}
            values.append(self.fold(kept, values if not kept else [], lines, deep=True))
            if kept and all(size != "b" for name, size in axes.items() if name not in kept):  # which may be 0
                once.append((values[-1], kept))
        while len(values) > 1 and self.draw.random() < 0.9:
            values = [self.op(self.draw.choice(BINARY), lines, *values[:2]), *values[2:]]
        values = values[:2]
        shape = " x ".join(_dim(size) for size in axes.values())
        to = tuple(f"{shape} x {self.t}" if shape else self.t for _ in values)
        if once and self.draw.random() < 0.6:
            value, kept = self.draw.choice(once)
            values.append(value)
            to += (" x ".join(_dim(size) if name in kept else "1" for name, size in axes.items()) + f" x {self.t}",)
        yields = f"ait.yield {', '.join(values)} : {', '.join(self.scalar for _ in values)}"
        text = f"for ({', '.join(f'{n} = {size}' for n, size in axes.items())}) {{ {' '.join((*lines, yields))} }}"
        return nest("random", text, *self.shapes, to=to, types=(self.t,), envs=RANDOM_ENVS)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}_"

    def op(self, op: str, lines: list[str], *operands: str) -> str:
        name = self.name()
        lines.append(f"{name} = ait.{op} {', '.join(operands)} : {self.scalar}")
        return name

    def value(self, axes: dict[str, int | str], lines: list[str]) -> str:
        """A read, perhaps with a function of it."""
        read = self.read(axes, lines)
        return self.op(self.draw.choice(UNARY), lines, read) if self.draw.random() < 0.4 else read

    def read(self, axes: dict[str, int | str], lines: list[str]) -> str:
        names = [n for n in axes if self.draw.random() < 0.85]
        self.draw.shuffle(names)
        index: list[str] = []
        sizes: list[str] = []
        guarded = False
        for n in names:
            size, kind = axes[n], self.draw.randrange(8)
            if kind == 0:
                index.append(f"{size} - 1 - {n}")
                sizes.append(f"{size}")
            elif kind == 1:
                index.append(f"2*{n} + 1")
                sizes.append(f"2*{size}")
            elif kind == 2:
                index.append(f"{n} floordiv 2")
                sizes.append(f"({size} + 1) floordiv 2")
            elif kind == 3:
                index.append(f"{n} - 1")
                sizes.append(f"{size}")
                guarded = True
            else:
                index.append(n)
                sizes.append(f"{size}")
        if self.draw.random() < 0.2 and len(self.shapes) < 3:
            index.append("0")
            sizes.append("3")
        shape = " x ".join(f"({e})" for e in sizes)
        shape = f"{shape} x {self.t}" if shape else self.t
        if shape not in self.shapes:
            if len(self.shapes) >= 3:
                return self.constant(lines)
            self.shapes.append(shape)
        tensor = "abc"[self.shapes.index(shape)]
        name = self.name()
        other = f" else {1 if self.t in ('i32', 'i8') else 1.5}" if guarded else ""
        lines.append(f"{name} = ait.at %{tensor}_[{', '.join(index)}]{other} : {self.scalar}")
        return name

    def constant(self, lines: list[str]) -> str:
        name = self.name()
        lines.append(f"{name} = ait.constant {2 if self.t in ('i32', 'i8') else 0.5} : {self.scalar}")
        return name

    def fold(self, axes: dict[str, int | str], values: list[str], lines: list[str], deep: bool) -> str:
        kind = self.draw.choice(("add", "max", "min", "argmax"))
        count = self.draw.choice((3, 7, 40, 96, "u"))
        own: dict[str, int | str] = {f"k{self.count}": count}
        if self.draw.random() < 0.3:
            own[f"l{self.count}"] = self.draw.choice((2, 5))
        inner: list[str] = []
        value = self.value({**axes, **own}, inner)
        if deep and self.draw.random() < 0.3:
            other = self.fold({**axes, **own}, [], inner, deep=False) if count in (3, 7) else self.value(own, inner)
            value = self.op(self.draw.choice(BINARY), inner, value, other)
        if values and self.draw.random() < 0.5:
            value = self.op("sub", inner, value, values[0])
        nest_ = ", ".join(f"{n} = {size}" for n, size in own.items())
        name = self.name()
        types = f"{self.scalar}, i64" if kind == "argmax" else self.scalar
        results = f"{name}, {name}p" if kind == "argmax" else name
        lines.append(
            f"{results} = ait.fold {kind} for ({nest_}) {{ {' '.join(inner)} ait.yield {value} : {self.scalar} }} : {types}"
        )
        return name


def _dim(size: int | str) -> str:
    return f"{size}"


def random_form(seed: int) -> Form:
    """A nest at random, of a random element type."""
    return _Random(seed).form()


def random_cases(target: Target, seeds: Iterable[int]) -> Iterator[tuple[str, Case]]:
    """Nests at random, each on one of the kernels that take it."""
    for seed in seeds:
        found = random_form(seed)
        t = (found.types or FLOATS)[0]
        case = SPEC.case(found, t)
        kernels = kernels_for(case.op, target)
        kernel = kernels[seed % len(kernels)]
        configs = kernel.configs(case.op, target)
        config = few_blocks(configs[seed // len(kernels) % len(configs)])
        tag = "".join(f"-{key}{value}" for key, value in config.items())
        yield f"random{seed}-{kernel.provider}{tag}-{t}", on_kernel(case, kernel.provider, config)
