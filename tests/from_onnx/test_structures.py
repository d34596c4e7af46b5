"""Models of a changed structure end in an error that users read, in bounded memory and time."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from typing import Any

import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.errors import AitError  # noqa: E402
from ait_mlir.importers.onnx import import_model  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

SIZES = (0, -1, 1, 7, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
MOST_KIB = 1 << 20
"""How much memory the imports may take."""

Mutation = Callable[[Any, random.Random], None]


def _node(graph: Any, rng: random.Random) -> Any:
    """A node of a graph, or of a graph inside of one of its nodes."""
    node = rng.choice(graph.node)
    inner = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH and a.g.node]
    return _node(rng.choice(inner), rng) if inner and rng.random() < 0.5 else node


def swap_inputs(model: Any, rng: random.Random) -> None:
    node = _node(model.graph, rng)
    names = list(node.input)
    rng.shuffle(names)
    node.input[:] = names


def change_input(model: Any, rng: random.Random) -> None:
    """An input becomes another tensor of the model, empty, or a result of the node itself (a cycle)."""
    node = _node(model.graph, rng)
    names = [i.name for i in model.graph.input] + [n for other in model.graph.node for n in other.output]
    choices = [*names, "", *node.output, "none of the model"]
    if node.input and rng.random() < 0.8:
        node.input[rng.randrange(len(node.input))] = rng.choice(choices)
    else:
        node.input.append(rng.choice(choices))


def drop(model: Any, rng: random.Random) -> None:
    """A node, an input, an output, an initializer or an attribute less."""
    node = _node(model.graph, rng)
    parts = (model.graph.node, model.graph.input, model.graph.output, model.graph.initializer, node.attribute)
    filled = [part for part in parts if len(part)]
    part = rng.choice(filled)
    del part[rng.randrange(len(part))]
    if rng.random() < 0.2 and node.input:
        del node.input[-1]


def repeat(model: Any, rng: random.Random) -> None:
    """A node, input, output or initializer twice: two tensors of one name."""
    parts = (model.graph.node, model.graph.input, model.graph.output, model.graph.initializer)
    part = rng.choice([part for part in parts if len(part)])
    part.append(rng.choice(part))


def reorder(model: Any, rng: random.Random) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def change_attribute(model: Any, rng: random.Random) -> None:
    """Another type or another number for an attribute."""
    node = _node(model.graph, rng)
    if not node.attribute:
        node.attribute.append(
            onnx.helper.make_attribute(rng.choice(("axis", "perm", "group", "to")), rng.choice(SIZES))
        )
        return
    attribute = rng.choice(node.attribute)
    name = attribute.name
    values = (rng.choice(SIZES), 0.5, float("nan"), "text", [rng.choice(SIZES)] * rng.randrange(1, 6), [0.5, -1.0])
    attribute.CopyFrom(onnx.helper.make_attribute(name, rng.choice(values)))


def change_dims(model: Any, rng: random.Random) -> None:
    """Another size, name or rank of an input or an initializer."""
    types = [i.type.tensor_type for i in model.graph.input if i.type.WhichOneof("value") == "tensor_type"]
    if model.graph.initializer and (not types or rng.random() < 0.4):
        tensor = rng.choice(model.graph.initializer)
        if tensor.dims and rng.random() < 0.8:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
        else:
            tensor.dims.append(rng.choice(SIZES))
    elif types:
        dims = rng.choice(types).shape.dim
        dim = dims.add() if not dims or rng.random() < 0.2 else rng.choice(dims)
        if rng.random() < 0.7:
            dim.dim_value = rng.choice(SIZES)
        else:
            dim.dim_param = rng.choice(("n", "n - 1", "0", "n * n", "", "a b", "n / 0"))


def change_type(model: Any, rng: random.Random) -> None:
    types = [i.type.tensor_type for i in (*model.graph.input, *model.graph.output)]
    if model.graph.initializer and rng.random() < 0.4:
        rng.choice(model.graph.initializer).data_type = rng.randrange(0, 30)
    elif types:
        rng.choice(types).elem_type = rng.randrange(0, 30)


def change_operator(model: Any, rng: random.Random) -> None:
    node = _node(model.graph, rng)
    node.op_type = rng.choice(("Add", "Reshape", "Conv", "Loop", "Slice", "LSTM", "Gather", "Concat", "Resize", "Pad"))


def change_opset(model: Any, rng: random.Random) -> None:
    opset = rng.choice(model.opset_import)
    opset.version = rng.choice((*SIZES, *range(1, 28)))
    if rng.random() < 0.2:
        opset.domain = rng.choice(("", "ai.onnx", "com.microsoft", "none"))


MUTATIONS: tuple[Mutation, ...] = (
    swap_inputs, change_input, drop, repeat, reorder, change_attribute, change_dims, change_type, change_operator,
    change_opset,
)  # fmt: skip


def check_structures(count: int, seed: int) -> None:
    rng = random.Random(seed)
    models = [case.model for case in suite.cases(("node",)) if case.model is not None and case.model.graph.node]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        model, done = onnx.ModelProto(), list[str]()
        model.CopyFrom(rng.choice(models))
        for _ in range(rng.choice((1, 1, 2, 3))):
            if model.graph.node and model.opset_import:
                mutation = rng.choice(MUTATIONS)
                mutation(model, rng)
                done.append(mutation.__name__)
        try:
            import_model(model)
        except AitError:
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} after {done} of {model}") from error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KIB


def test_models_of_a_changed_structure_never_end_in_a_traceback() -> None:
    check_structures(300, 0)


@pytest.mark.full
def test_many_models_of_a_changed_structure_never_end_in_a_traceback() -> None:
    check_structures(20_000, 1)
