"""The table of element types agrees with the C header, with NumPy and with DLPack."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dtypes import BEYOND_NUMPY, DTYPES, DType, numpy_dtype
from ait_mlir.lowering.toolchain import cpp_root


def test_numbers_are_those_of_the_c_header() -> None:
    header = (cpp_root() / "include" / "ait" / "model_abi.h").read_text()
    found = re.search(r"enum ait_dtype \{(.*?)\}", header, re.DOTALL)
    assert found is not None
    numbers = {name: int(number) for name, number in re.findall(r"AIT_(\w+) = (\d+)", found[1])}
    assert numbers == {d.enumerator.removeprefix("AIT_"): d.abi for d in BY_IR.values()}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.mlir)
def test_rows_agree_with_numpy(dtype: DType) -> None:
    stored = numpy_dtype(dtype.name)
    assert stored.itemsize == dtype.bytes and stored.name == dtype.name
    if dtype.is_float:
        info = ml_dtypes.finfo(stored)
        assert (float(info.max), info.nmant) == (dtype.largest, dtype.mantissa)
    if dtype.name not in BEYOND_NUMPY:
        assert stored.kind == (
            "f" if dtype.is_float else "b" if dtype.mlir == "i1" else "u" if dtype.mlir == "ui8" else "i"
        )
        assert np.zeros(1, stored).__dlpack__() is not None


def test_which_floats_hold_which() -> None:
    held = {a.mlir: [b.mlir for b in DTYPES if b.is_float and b.holds(a)] for a in DTYPES if a.is_float}
    assert held == {
        "f16": ["f16", "f32", "f64"],
        "bf16": ["bf16", "f32", "f64"],
        "f32": ["f32", "f64"],
        "f64": ["f64"],
        "f8E4M3FN": ["f16", "bf16", "f32", "f64", "f8E4M3FN"],
        "f8E5M2": ["f16", "bf16", "f32", "f64", "f8E5M2"],
        "f8E8M0FNU": ["bf16", "f32", "f64", "f8E8M0FNU"],
    }


def test_every_row_has_an_ir_type() -> None:
    assert [d.mlir for d in BY_IR.values()] == [d.mlir for d in DTYPES] == [str(t) for t in BY_IR]
