"""The arguments of library calls have the names of the structs that the runtime library takes."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from ait_mlir.lowering.kernels.calls import STRUCTS, GemmMatrix
from ait_mlir.lowering.toolchain import cpp_root

CLASSES = [(call, *names) for call, names in STRUCTS.items()]
CLASSES.append((GemmMatrix, "gemm", "ait_gemm_operand_v2"))


@pytest.mark.parametrize(("call", "service", "struct"), CLASSES)
def test_every_field_is_one_of_the_struct(call: type, service: str, struct: str):
    header = (cpp_root() / f"include/ait/{service}_service.h").read_text()
    found = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", header, re.DOTALL)
    assert found is not None
    names = set(re.findall(r"(\w+)(?:\[\d+\])?\s*[,;]", re.sub(r"///.*", "", found[1])))
    assert {field.name for field in fields(call)} <= names
