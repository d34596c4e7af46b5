"""`ait run --compare`: errors that rounding explains are accepted, wrong results are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.tools.cli import main
from ait_mlir.tools.commands.run import tolerance_of_products
from ait_mlir.tools.comparison import TOLERANCE, Errors, Expected, measure

RANDOM = np.random.default_rng(0)
EXACT = RANDOM.normal(size=4000)
F16 = TOLERANCE["float16"]

ROUNDED = """
ait.graph @rounded(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<48 x 64 x f16>
  %c = ait.constant 1000.0 : !ait.tensor<f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 48 x f16>
  %1 = ait.permute %0 [1, 0] : !ait.tensor<48 x b x f16>
  %2 = ait.cast %1 : !ait.tensor<48 x b x f32>
  %3 = ait.mul %0, %c : !ait.tensor<b x 48 x f16>
  %4 = ait.mul %3, %c : !ait.tensor<b x 48 x f16>
  ait.output "cast" %2 : !ait.tensor<48 x b x f32>
  ait.output "overflow" %4 : !ait.tensor<b x 48 x f16>
}
"""


def test_products_that_are_stored_as_f16_and_results_that_overflow_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, artifact = tmp_path / "rounded.mlir", tmp_path / "rounded.ait"
    source.write_text(ROUNDED)
    assert main(["compile", str(source), "--target", "cpu", "-o", str(artifact)]) == 0
    capsys.readouterr()
    assert main(["run", str(artifact), "--weights", "random", "--dim", "b=8", "--compare", "reference"]) == 0
    captured = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in captured.out.splitlines() if line.endswith("ok")}
    assert rows.keys() == {"cast", "overflow"} and "not finite" in captured.out
    assert "Warning" not in captured.err
    assert float(rows["cast"][2]) > TOLERANCE["float32"], "the product was not rounded"
    assert float(rows["cast"][4]) < F16 / 4, "the limit is that of the rounding, not that of the type"


def stored_as_f16(exact: np.ndarray) -> Expected:
    """A result of f32 that is the cast of a product stored as f16."""
    with np.errstate(over="ignore"):
        return Expected(exact, exact.astype(np.float16).astype(np.float32), F16)


def run(exact: np.ndarray) -> np.ndarray:
    """The results of a run: sums in another order, then rounded."""
    with np.errstate(over="ignore"):
        return (exact * (1 + 1e-6 * RANDOM.normal(size=exact.shape))).astype(np.float16).astype(np.float32)


def test_rounding_on_the_way_is_allowed_and_no_more() -> None:
    got, expected = run(EXACT), stored_as_f16(EXACT)
    assert measure(got, expected).good
    assert not measure(got, Expected(EXACT)).good  # nothing says that f16 is stored
    for wrong in (got * np.float32(1.002), -got, got[::-1], got + np.float32(0.004), np.where(got == got[7], 0, got)):
        assert not measure(wrong.astype(np.float32), expected).good


def test_one_step_of_a_stored_value_decides_no_other_element() -> None:
    """floor of a value that rounding moves over an integer: that element may be either, the others
    only the exact one.
    """
    exact = np.floor(np.array([0.9999, 1.5, 2.5, 3.5]))
    expected = Expected(exact, np.array([1.0, 1.0, 2.0, 3.0]), F16)
    for first in (0, 1):
        assert measure(np.array([first, 1, 2, 3], np.float32), expected).good
    assert not measure(np.array([2, 1, 2, 3], np.float32), expected).good
    assert not measure(np.array([0, 1, 2, 4], np.float32), expected).good
    indices = Expected(np.array([3, 5]), np.array([3, 6]))
    assert measure(np.array([3, 6]), indices).good and not measure(np.array([4, 5]), indices).good


def test_results_beyond_the_range_are_infinite() -> None:
    exact = np.array([1e5, -7e4, 100.0, 65000.0, 65519.0])
    with np.errstate(over="ignore"):
        right = exact.astype(np.float16)
    assert measure(right, Expected(exact)).good
    near = right.copy()
    near[4] = np.inf  # 65504 is the largest, and errors of f16 are larger than the distance
    assert measure(near, Expected(exact)).good
    for place, value in ((0, 65504), (0, -np.inf), (1, np.inf), (2, np.inf), (2, np.nan), (3, -np.inf), (4, np.nan)):
        wrong = right.copy()
        wrong[place] = value
        assert measure(wrong, Expected(exact)).misplaced == 1, (place, value)


def test_a_stored_value_that_overflows_decides_the_rest() -> None:
    exact = np.array([1e5, 2.0, 3.0]) / 4  # of a product that is stored as f16 and then divided by 4
    expected = Expected(exact, np.array([np.inf, 0.5, 0.75]), F16)
    for first in (np.inf, 25000.0):
        assert measure(np.array([first, 0.5, 0.75], np.float32), expected).good
    for wrong in ([-np.inf, 0.5, 0.75], [np.nan, 0.5, 0.75], [np.inf, np.inf, 0.75]):
        assert measure(np.array(wrong, np.float32), expected).misplaced == 1


def test_a_tolerance_takes_the_place_of_the_limit() -> None:
    got = (EXACT * 1.01).astype(np.float32)
    assert measure(got, Expected(EXACT), 0.02).good and not measure(got, Expected(EXACT), 0.001).good


PRODUCT = """
ait.graph @product(%x: !ait.tensor<8 x 64 x T>, %w: !ait.tensor<48 x 64 x T>) {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<8 x 48 x T>
  ait.output "y" %0 : !ait.tensor<8 x 48 x T>
}
"""


def with_bits(x: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of f32 rounded to so many bits of the significand: 11 for TF32, 8 for bf16."""
    significand, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(significand, bits)), exponent - bits).astype(np.float32)


def planned(capsys: pytest.CaptureFixture[str], folder: Path, precision: str, element: str = "f32") -> ModuleOp:
    source = folder / "product.mlir"
    source.write_text(PRODUCT.replace("T>", f"{element}>"))
    assert main(["compile", str(source), "--target", "cuda", "--precision", precision, "--to", "planned"]) == 0
    return parse_text(context(), capsys.readouterr().out)


@pytest.mark.parametrize(("precision", "bits", "fewer"), [("highest", 24, 11), ("high", 11, 6), ("medium", 8, 3)])
def test_operands_that_a_card_rounds_explain_as_much_as_their_type(
    precision: str, bits: int, fewer: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TF32 and bf16 on the tensor cores of a card, computed here. `fewer` bits are not explained."""
    x, w = (RANDOM.normal(size=(n, 64)).astype(np.float32) for n in (8, 48))
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    tolerance = tolerance_of_products(planned(capsys, tmp_path, precision))
    expected = Expected(exact, exact.astype(np.float32), TOLERANCE["float32"], tolerance)

    def errors(rounded: int) -> Errors:
        product = with_bits(x, rounded).astype(np.float64) @ with_bits(w, rounded).T.astype(np.float64)
        return measure(product.astype(np.float32), expected)

    assert errors(bits).good
    assert not errors(fewer).good


def test_a_precision_explains_nothing_where_no_product_of_f32_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tolerance_of_products(planned(capsys, tmp_path, "medium", "f64")) == 0
    assert tolerance_of_products(planned(capsys, tmp_path, "high")) == TOLERANCE["float16"]
