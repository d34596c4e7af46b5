"""Cases of group norms in one launch, for the emulator and for a card: what a thread keeps, clusters, odd groups, odd addresses."""

from __future__ import annotations

from collections.abc import Mapping

from tests.kernels.harness import Case
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

SILU_ADD = (
    "epilogue(%d) {\n  ^bb0(%acc_: f32, %d_in: f32):\n    %m_ = ait.silu %acc_ : f32\n    %n_ = ait.add %m_, %d_in : f32\n"
    "    ait.yield %n_ : f32\n  }"
)
ENVS = ({"b": 2, "s": 37}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4})


def group_norm(
    t: str,
    channels: int,
    groups: int,
    config: Mapping[str, int],
    *,
    factors: str = "scale %g bias %h",
    residual: str = "",
    provider: str = "cluster",
    **options: object,
) -> ConfiguredCase:
    """Of [b, s, 3, channels]; `residual` is the shape of an operand that is added behind silu."""
    shape = f"b x s x 3 x {channels} x {t}"
    operands = [("%x", shape)] + [(name, f"{channels} x {t}") for name in ("%g", "%h") if name in factors]
    operands += [("%d", f"{residual} x {t}")] if residual else []
    text = (
        f"ait.graph @g({', '.join(f'{name}: !ait.tensor<{of}>' for name, of in operands)}) dims {{b = 0 to 64, s = 0 to 3000}} {{\n"
        f"  %y = ait.group_norm %x {factors} dim 3 groups {groups} eps 1e-05 {SILU_ADD if residual else ''} : "
        f"!ait.tensor<{shape}>\n"
        f'  ait.output "y" %y : !ait.tensor<{shape}>\n}}'
    )
    return on_kernel(Case(text, **({"envs": ENVS} | options)), provider, config)  # type: ignore[arg-type]


def plan(width: int, cluster: int, items: int) -> dict[str, int]:
    return {"width": width, "cluster": cluster, "items": items}


def split(width: int, splits: int, items: int) -> dict[str, int]:
    return {"width": width, "splits": splits, "items": items}


def split_cases() -> dict[str, ConfiguredCase]:
    """In two launches; by name, which ends with the element type."""

    def norm(t: str, channels: int, groups: int, config: Mapping[str, int], **options: object) -> ConfiguredCase:
        return group_norm(t, channels, groups, config, provider="split", **options)  # type: ignore[arg-type]

    return {
        "split-parts-f16": norm("f16", 80, 8, split(40, 3, 2)),
        "split-pairs-f16": norm("f16", 16, 8, split(16, 5, 1), envs=({"b": 2, "s": 97}, *ENVS)),
        "split-fours-bf16": norm("bf16", 32, 8, split(16, 2, 4), residual="b x s x 3 x 32"),
        "split-many-f32": norm(
            "f32", 8, 2, split(8, 70, 1), envs=({"b": 1, "s": 200}, *ENVS)
        ),  # more than a warp joins at once
        "split-again-f16": norm("f16", 40, 2, split(40, 2, 1), envs=({"b": 2, "s": 331},), factors=""),
        "split-odd-f16": norm("f16", 40, 4, split(40, 2, 2), offset=1),
        "split-early-f16": norm("f16", 40, 4, split(20, 4, 1), constants=(1, 2)),
    }


def group_norm_cases(*, clusters: bool = True) -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type."""

    def many(blocks: int) -> int:
        return blocks if clusters else 1

    d = "b x s x 3 x 40"
    return split_cases() | {
        "parts-f16": group_norm("f16", 80, 8, plan(40, many(4), 2)),  # of 10 channels, cut anywhere
        "one-f16": group_norm("f16", 40, 4, plan(40, 1, 8)),
        "whole-bf16": group_norm("bf16", 64, 8, plan(32, many(2), 1), factors="scale %g"),
        "large-f32": group_norm("f32", 24, 2, plan(12, many(8), 4), factors="bias %h"),
        "again-f16": group_norm("f16", 40, 2, plan(40, many(2), 1), envs=({"b": 2, "s": 331},), factors=""),
        "again-bf16": group_norm("bf16", 512, 1, plan(512, 1, 1), envs=({"b": 1, "s": 11},)),
        "kept-f16": group_norm("f16", 240, 8, plan(240, many(4), 16), envs=({"b": 1, "s": 330},)),
        "kept-bf16": group_norm("bf16", 120, 4, plan(120, 1, 8), envs=({"b": 1, "s": 60},)),
        "small-f16": group_norm("f16", 24, 8, plan(12, many(4), 4)),  # of 3 channels, accesses of 2
        "small-bf16": group_norm("bf16", 16, 4, plan(16, many(2), 2), factors="scale %g"),
        "small-again-f16": group_norm("f16", 48, 16, plan(24, 1, 1), envs=({"b": 2, "s": 131},)),
        "pairs-f16": group_norm("f16", 16, 8, plan(8, many(4), 2)),  # four groups of an access
        "pairs-bf16": group_norm("bf16", 32, 16, plan(16, many(8), 4), factors="", residual="b x s x 3 x 32"),
        "pairs-f32": group_norm("f32", 16, 8, plan(16, many(2), 4)),
        "fours-f16": group_norm("f16", 48, 12, plan(24, 1, 2), envs=({"b": 1, "s": 97}, *ENVS)),  # warps share a group
        "fours-again-f16": group_norm("f16", 32, 8, plan(32, many(2), 1), envs=({"b": 2, "s": 270},)),
        "fours-odd-f16": group_norm("f16", 32, 8, plan(32, many(2), 2), offset=1),
        "shared-f16": group_norm("f16", 8, 1, plan(8, many(4), 2), envs=({"b": 2, "s": 550}, *ENVS)),
        "single-f16": group_norm("f16", 20, 20, plan(10, many(2), 8), residual="b x s x 3 x 20"),
        "nine-f16": group_norm("f16", 36, 4, plan(36, many(2), 4)),  # accesses of 4 across groups
        "odd-f16": group_norm("f16", 40, 4, plan(40, many(2), 2), offset=1),
        "odd-f32": group_norm("f32", 12, 3, plan(12, many(2), 2), offset=1, residual="b x s x 3 x 12"),
        "residual-bf16": group_norm("bf16", 40, 4, plan(40, many(2), 4), residual=d),
        "time-f16": group_norm("f16", 40, 4, plan(40, many(2), 4), residual="b x 1 x 1 x 40"),
        "row-f32": group_norm("f32", 40, 4, plan(20, many(2), 4), residual="3 x 1"),
        "place-f16": group_norm("f16", 40, 4, plan(40, 1, 4), residual="s x 1 x 40"),
        "early-f16": group_norm("f16", 40, 4, plan(40, many(2), 4), constants=(1, 2)),
        "view-f16": group_norm(
            "f16",
            40,
            4,
            plan(40, many(2), 4),
            strides={0: ("s*144 + 48", "144", "48", "1"), 3: ("s*120", "120", "40", "1")},
        ),
    }
