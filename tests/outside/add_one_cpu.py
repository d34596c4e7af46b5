"""The operator of the tutorial on the CPU: the same class and templates, another kernel."""

from __future__ import annotations

import jinja2

from ait_mlir.backend import registry
from ait_mlir.backend.backend_spec import CPUSpec
from tests.outside.add_one import FUNC_CALL_TEMPLATE, FUNC_TEMPLATE, add_one, gen_function_call, gen_function_decl

__all__ = ["FUNC_CALL_TEMPLATE", "add_one"]

HEADER = """
#include "ait/types.h"
using half = ait::half;
"""
KERNEL = jinja2.Template(
    """
void invoke_add_one(half* output, const half* input, int64_t num_elements, {{prefix}}Stream_t) {
  for (int64_t i = 0; i < num_elements; ++i) output[i] = input[i] + half(1.0);
}
    """
)


@registry.reg("cpu.add_one.gen_function")
def cpu_gen_function(func_attrs):
    from tests.outside.add_one import FUNC_SIGNATURE

    prefix = CPUSpec().prefix
    return FUNC_TEMPLATE.render(
        header_files=HEADER,
        kernel=KERNEL.render(prefix=prefix),
        func_signature=FUNC_SIGNATURE.render(func_name=func_attrs["name"], prefix=prefix),
    )


@registry.reg("cpu.add_one.func_decl")
def cpu_func_decl(func_attrs):
    return gen_function_decl(func_attrs, CPUSpec())


@registry.reg("cpu.add_one.func_call")
def cpu_func_call(func_attrs, indent="  "):
    return gen_function_call(func_attrs, indent, is_cuda=True)
