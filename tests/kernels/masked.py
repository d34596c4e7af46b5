"""Launches that read the value of a bound dim from memory, for the emulator and for a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i64

from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.lowering.cpp import dim_variable
from ait_mlir.lowering.kernels import Arg, Emission, Launch, Target
from tests.kernels.harness import Case, Library, assert_close, random_inputs, reference

COUNTS = (0, 1, 5, 33)
MOST = 33


@dataclass
class MaskedCase(Case):
    """A case whose dim `count` is in memory, behind its operands."""

    def args(self) -> tuple[list[Arg], list[Arg]]:
        ins, outs = super().args()
        return [*ins, Arg("n", TensorType.get((), i64), ())], outs

    def emissions(self, target: Target) -> tuple[Emission, ...]:
        kernel, config = self.chosen(target)
        assert kernel.masks(self.op, target)
        ins, outs = super().args()
        dims = {name: dim_variable(i) for i, name in enumerate(self.dims())}
        emitted = kernel.emit(Launch(self.op, ins, outs, dims, config, target, (), "count"))
        return (emitted,) if isinstance(emitted, Emission) else emitted


def masked(op: str, result: str, *operands: str, **options: object) -> MaskedCase:
    given = ", ".join(f"%{name}: !ait.tensor<{t}>" for name, t in zip("ab", operands, strict=False))
    text = (
        f"ait.graph @g({given}) dims {{count = 0 to {MOST}, w = 0 to 64}} {{\n"
        f'  %y = ait.{op} : !ait.tensor<{result}>\n  ait.output "y" %y : !ait.tensor<{result}>\n}}'
    )
    envs: Sequence[Mapping[str, int]] = [{"count": count, "w": w} for count in COUNTS for w in (24, 7)]
    return MaskedCase(text, envs, **options)  # type: ignore[arg-type]


def masked_cases() -> Mapping[str, MaskedCase]:
    """By name, which ends with the element type: vectors, rows of any width, operands for all rows, strided results."""
    cases: dict[str, MaskedCase] = {}
    for t in ("f16", "bf16", "f32", "f64"):
        rows = f"count x w x {t}"
        cases[f"vector-{t}"] = masked("relu %a", f"count x {t}", f"count x {t}")
        cases[f"rows-{t}"] = masked("add %a, %b", rows, rows, f"w x {t}")
        wide = f"count x 16 x {t}"
        cases[f"wide-{t}"] = masked("mul %a, %b", wide, wide, f"16 x {t}")
        cases[f"wide-offset-{t}"] = masked("neg %a", wide, wide, offset=1)
        cases[f"strided-{t}"] = masked("neg %a", rows, rows, strides={0: ("1", f"{MOST}"), 1: ("2*w + 3", "2")})
    return cases


def check_masked(library: Library, case: Case, name: str) -> None:
    """The rows below the count are right, and the others are as they were."""
    for env in case.envs:
        most = {**env, "count": MOST}
        inputs = random_inputs(case, most)
        count = np.asarray(env["count"], np.int64)
        (got,) = library.run(case, most, [*inputs, count])
        there = [x[: env["count"]] if i == 0 else x for i, x in enumerate(inputs)]
        (want,) = reference(case, env, there)
        assert_close(got[: env["count"]], want, 0.51)
        rest = got[env["count"] :]
        assert rest.tobytes() == b"\xa5" * rest.nbytes, "a row behind the last was written"
