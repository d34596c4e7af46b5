"""Products and convolutions of f32 at each precision setting on the card: our kernels, cuBLASLt and cuDNN."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
import torch

import ait_mlir
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.target import PRECISIONS, Precision
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.runtime.loading import cudnn_candidates
from tests.gpu.libraries import library_of
from tests.kernels.contractions import BIAS_RELU, contraction
from tests.kernels.harness import Case, Library
from tests.kernels.library_gemm import GemmLibrary, on_kernel
from tests.kernels.precision import ENVS, EVEN, attentions, check_rounded, convolutions, grouped, products
from tests.specs.draw import draw

pytestmark = pytest.mark.gpu

NATIVE = dict(products()) | dict(convolutions()) | grouped()
ATTENTION = attentions()
CUBLASLT = {
    f"{layout}-{name}": on_kernel(
        contraction(
            "gemm",
            layout,
            "f32",
            (*ENVS[:2], *EVEN),
            extras=[(e, "f32") for e in extras],
            body=body,
            sizes="dims {b = 1 to 9, m = 1 to 400, n = 1 to 400, k = 1 to 600}",
        ),
        "cublaslt",
    )
    for layout in ("rcr", "rrr", "crr", "ccr")
    for name, extras, body in (("plain", (), ""), ("bias", ("n",), BIAS_RELU))
}
CUDNN = {
    name: on_kernel(found.case, "cudnn")
    for name, found in draw("gpu", ["conv"]).items()
    if found.type == "f32"
    and not found.form.strides
    and any(kernel.provider == "cudnn" for kernel in kernels_for(found.case.op, Target("cuda", "sm_90a")))
}
SUITES: dict[str, Mapping[str, Case]] = {"native": NATIVE, "attention": ATTENTION, "cublaslt": CUBLASLT, "cudnn": CUDNN}
OURS = ("native", "attention")
"""Our kernels compute in TF32 at both settings."""
SLACK = {"attention": 4, "cudnn": 2}
"""Errors of scores are those of weights. cuDNN hands the bits of f32 to the tensor cores, which drop the low ones: an operand
changes by up to 2^-10, not 2^-11, and always towards zero. NumPy with operands cut like this gives errors up to 1.01 of the
bound for `conv-dilated` (0.33 with operands that are rounded)."""
ROUNDED: list[tuple[str, Precision, str]] = [
    (suite, precision, name)
    for suite, cases in SUITES.items()
    for precision in ("high", "medium")
    for name in (cases if suite not in OURS or precision == "high" else list(cases)[:2])
]


@pytest.fixture(scope="module")
def libraries() -> dict[tuple[str, Precision], Library]:
    """The requested suites, by suite and setting."""
    return {}


@pytest.fixture
def library(
    libraries: dict[tuple[str, Precision], Library],
    suite: str,
    precision: Precision,
    request: pytest.FixtureRequest,
) -> Library:
    os.environ.setdefault("AIT_CUDNN", cudnn_candidates()[0])
    if (suite, precision) not in libraries:
        target = Target("cuda", default_arch("cuda"), precision)
        kind = Library if suite in OURS else GemmLibrary
        keys = {(s, p, name): SUITES[s][name] for s, p, name in ROUNDED if (s, p) == (suite, precision)}
        libraries[suite, precision] = library_of(request, keys, kind=kind, target=target)
    return libraries[suite, precision]


@pytest.mark.parametrize(("suite", "precision", "name"), ROUNDED, ids=lambda x: x)
def test_rounded_operands(library: Library, suite: str, precision: Precision, name: str) -> None:
    check_rounded(library, SUITES[suite][name], "high" if suite in OURS else precision, SLACK.get(suite, 1))


def test_attention_in_parts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """At the highest setting, in parts of TF32: no less exact than plain arithmetic."""
    plain = [on_kernel(case, "native") for case in ATTENTION.values()]
    tiles = ({"warps": 4, "cols": 32}, {"warps": 8, "cols": 32}, {"warps": 4, "cols": 16})
    parts = [on_kernel(case, "native", tiles[i % 3]) for i, case in enumerate(ATTENTION.values())]
    target = Target("cuda", default_arch("cuda"))
    library = Library([*plain, *parts], tmp_path_factory.mktemp("parts"), target)
    for before, case in zip(plain, parts, strict=True):
        bound = check_rounded(library, before, "highest", slack=64)
        assert check_rounded(library, case, "highest", slack=64) <= 1.5 * bound


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_network(precision: Precision) -> None:
    """Its error is at most twice that of PyTorch at the same setting, or at the bound of the format."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 64, 256)
    ).eval()
    x = torch.randn(16, 32, 8, 8)
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=precision != "highest"):
        exact = model.double()(x.double())
        compiled = ait_mlir.compile(model.float(), (x,), target="cuda", precision=precision)
        got = compiled(x.cuda()).cpu().double()
    error = (got - exact).abs().max().item() / exact.abs().max().item()
    assert error <= {"highest": 4e-6, "high": 2.0**-10, "medium": 2.0**-7}[precision]
