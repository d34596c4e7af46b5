"""Arguments of other kinds are refused by name, before anything is compiled or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir
from ait_mlir import graph
from ait_mlir.arguments import checked
from ait_mlir.compiler import transform
from ait_mlir.errors import AitError, InputError
from ait_mlir.frontend.errors import ArgumentError, BuildError
from ait_mlir.graph.errors import GraphArgumentError, GraphError
from ait_mlir.importers.errors import ImportFailure

LINEAR = torch.nn.Linear(3, 4).eval()
X = torch.ones(2, 3)


def compiled(*args: Any, **kwargs: Any) -> Callable[[], object]:
    return lambda: ait_mlir.compile(LINEAR, *args, target="cpu", **kwargs)


def scored(function: Any) -> object:
    made = graph.pygraph()
    q, k, v = (made.tensor(dim=[1, 1, 8, 8], stride=[64, 64, 8, 1], data_type=graph.data_type.HALF) for _ in "qkv")
    return made.sdpa(q, k, v, score_mod=function)


WRONG: dict[str, tuple[Callable[[], object], type[AitError], str]] = {
    "no list": (compiled(None), ImportFailure, "compile: example_inputs must be a list or tuple; found None"),
    "a tensor": (compiled(X), ImportFailure, "example_inputs must be a list or tuple; found a Tensor"),
    "a dict": (compiled({"input": X}), ImportFailure, r"must be a list or tuple; found \{'input': "),
    "hints": (compiled((X,), hints=3), ImportFailure, "hints must be None or a dict, each value a list, each element an int"),
    "hints inside": (compiled((X,), hints={"n": ["a"]}), ImportFailure, r"found \{'n': \['a'\]\}"),
    "groups": (compiled((X,), groups=3), ImportFailure, "groups must be None or a dict; found 3"),
    "budget": (compiled((X,), budget="a"), ImportFailure, "budget must be a number or None; found 'a'"),
    "unknown": (compiled((X,), nope=1), ImportFailure, r"unexpected keyword argument 'nope'; it takes \(module, "),
    "examples": (lambda: ait_mlir.quantize(LINEAR, 3), InputError, "quantize: examples must be a list or tuple"),  # type: ignore[arg-type]
    "a text for a list": (
        lambda: ait_mlir.quantize(LINEAR, [(X,)], leave_out="abc"),
        InputError,
        "leave_out must be a list, each element a string; found 'abc'",
    ),
    "onnx": (lambda: ait_mlir.load_onnx(3), ImportFailure, "expected the path of a model or a ModelProto, found int"),
    "graph": (lambda: graph.pygraph(nope=1), GraphArgumentError, "pygraph: got an unexpected keyword argument 'nope'"),  # type: ignore[call-arg]
    "name": (lambda: graph.pygraph(name=3), GraphArgumentError, "pygraph: name must be a string; found 3"),  # type: ignore[arg-type]
    "no weights": (
        lambda: transform.bind_constants([], "w"),  # type: ignore[arg-type]
        ArgumentError,
        "bind_constants: constants must be a dict; found 'w'",
    ),
    "no graph": (lambda: transform.fuse_ops(3), BuildError, "a sorted graph is a list of Tensors; found 3"),  # type: ignore[arg-type]
    "no folder": (
        lambda: transform.constant_folding([], 3, "a"),  # type: ignore[arg-type]
        ArgumentError,
        "constant_folding: workdir must be a string or None; found 3",
    ),
    "no function": (lambda: scored(3), GraphError, "score_mod is 3, expected a function of a graph and the scores"),
    "one argument": (lambda: scored(lambda x: x), GraphError, "expected a function of a graph and the scores"),
}


@pytest.mark.parametrize("case", WRONG)
def test_arguments_of_other_kinds(case: str) -> None:
    call, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        call()


def test_values_are_converted_as_annotated() -> None:
    @checked(InputError)
    def taken(
        count: int, path: str | Path, sizes: Mapping[str, Sequence[int]], *rest: float, flag: bool = False, **more: str
    ) -> tuple[object, ...]:
        return count, path, sizes, rest, flag, more

    sizes = {"n": [1]}
    found = taken(np.int64(3), "x", sizes, np.float32(0.5), flag=np.True_, a="b")  # type: ignore[arg-type]
    assert found == (3, "x", sizes, (0.5,), True, {"a": "b"}) and type(found[0]) is int and found[2] is sizes
    assert taken(1, Path("x"), {"n": [np.int32(2)]})[2] == {"n": [2]}  # type: ignore[list-item]
    for wrong in ({"count": 0.5}, {"path": 3}, {"sizes": {"n": 3}}, {"sizes": [3]}, {"flag": "a"}, {"a": 3}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
            taken(**{"count": 1, "path": "x", "sizes": {}, **wrong})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"missing a required argument: 'sizes'; it takes \(count, path, sizes, rest"):
        taken(1, "x")  # type: ignore[call-arg]
