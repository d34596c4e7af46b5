"""Bad ONNX files end in an error that names the node or the file; nothing outside of the model's folder is read."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.errors import AitError  # noqa: E402
from ait_mlir.importers.onnx import ImportFailure, UnsupportedOps, import_model  # noqa: E402

helper = onnx.helper
FLOAT, INT, STRING = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.STRING


def model(
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Sequence[Any] | None]] = (("x", FLOAT, ["n", 4]),),
    outputs: Sequence[str] = ("y",),
    initializers: Sequence[Any] = (),
    opset: int = 20,
) -> Any:
    values = [helper.make_tensor_value_info(*i) for i in inputs]
    results = [helper.make_tensor_value_info(n, FLOAT, ["r"]) for n in outputs]
    graph = helper.make_graph(list(nodes), "g", values, results, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)


RELU = node("Relu", ["x"], ["y"], "act")
WEIGHT = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")


def refused(made: Any) -> str:
    with pytest.raises(ImportFailure) as caught:
        import_model(made)
    return str(caught.value)


def test_all_unsupported_nodes_are_named_at_once() -> None:
    made = model(
        [
            node("RandomNormalLike", ["x"], ["a"], "noise"),
            node("Add", ["a", "x"], ["b"]),
            node("ImageDecoder", ["b"], ["y"], "d"),
        ],
        [("x", FLOAT, [4, 4])],
    )
    with pytest.raises(UnsupportedOps) as caught:
        import_model(made)
    assert [(item.place, item.opset) for item in caught.value.found] == [("node 'noise' (RandomNormalLike)", 20)]
    assert "random numbers" in str(caught.value)
    both = model(
        [node("RandomNormalLike", ["x"], ["a"], "noise"), node("ImageDecoder", ["x"], ["y"], "d")],
        [("x", FLOAT, [4, 4])],
    )
    with pytest.raises(UnsupportedOps) as caught:
        import_model(both)
    assert [item.operation for item in caught.value.found] == ["RandomNormalLike", "ImageDecoder"]


CASES: dict[str, tuple[Any, str]] = {
    "cyclic": (model([node("Relu", ["z"], ["y"], "a"), node("Relu", ["y"], ["z"], "b")]), "z"),
    "twice": (model([RELU, node("Relu", ["x"], ["y"], "again")]), "y"),
    "future": (model([RELU], opset=999), "opset 999"),
    "strings": (model([RELU], [("x", STRING, [4])]), "STRING"),
    "attribute": (model([node("Softmax", ["x"], ["y"], "soft", axis="last")]), "axis"),
    "axis": (model([node("Softmax", ["x"], ["y"], "soft", axis=7)]), "axis is 7"),
    "unknown": (model([node("Relax", ["x"], ["y"], "r")]), "Relax"),
    "rank": (model([RELU], [("x", FLOAT, None)]), "shape"),
    "shapes": (model([node("MatMul", ["x", "w"], ["y"], "mm")], [("x", FLOAT, [2, 3])], initializers=[WEIGHT]), "'mm'"),
    "ranks": (
        model([node("InstanceNormalization", ["x", "b", "b"], ["y"], "in")], [("x", FLOAT, [4]), ("b", FLOAT, [4])]),
        "its inputs of shapes [4], [4], [4], do not fit the operator",
    ),
    "output": (model([RELU], outputs=["other"]), "other"),
    "columns": (
        model([node("GatherND", ["x", "i"], ["y"], "g")], [("x", FLOAT, [4, 4]), ("i", INT, [2, 1 << 31])]),
        "the last dim of the indices is 2147483648, but there are 2 dims",
    ),
    "parts": (model([node("Split", ["x"], ["y"], "s", num_outputs=1 << 40)]), "num_outputs is 1099511627776, but"),
    "reshape": (
        model([node("Reshape", ["x", "s"], ["y"], "r")], [("x", FLOAT, ["n", 4]), ("s", INT, [2])]),
        "depends on the values of the input 's'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_invalid_models_are_refused_with_the_place(name: str) -> None:
    made, expected = CASES[name]
    assert expected in refused(made)


@pytest.mark.parametrize("content", [b"", b"ait", b"\x89PNG" * 100, bytes(range(256)) * 8])
def test_files_of_other_formats_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert "no" in refused(path) and "model.onnx" in refused(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    data = model([node("MatMul", ["x", "w"], ["y"])], initializers=[WEIGHT]).SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(1, len(data), 7):
        path.write_bytes(data[:length])
        assert refused(path)


# ** data in other files **


def external(folder: Path, location: str, op: str = "MatMul", **entries: int) -> Path:
    """A model whose weight [4, 4] has its data in another file."""
    weight = onnx.TensorProto(name="w", data_type=FLOAT, dims=[4, 4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    path = folder / "model.onnx"
    path.write_bytes(
        model([node(op, ["x", "w"], ["y"], "mm")], [("x", FLOAT, [4, 4])], initializers=[weight]).SerializeToString()
    )
    return path


@pytest.mark.parametrize(("op", "name"), [("Add", "w"), ("MatMul", "w.T")])
def test_external_data_are_mapped(op: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"skip" + np.arange(16, dtype=np.float32).tobytes())
    imported = import_model(external(tmp_path, "w.bin", op, offset=4, length=64))
    found = imported.constants[name]
    base = found
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    expected = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert found.tolist() == (expected if op == "Add" else expected.T).tolist()


def test_import_copies_no_weights(tmp_path: Path) -> None:
    layers, size = 24, 1024
    (tmp_path / "w.bin").write_bytes(b"")
    os.truncate(tmp_path / "w.bin", layers * size * size * 4)  # a file with holes, which takes no room
    weights = [onnx.TensorProto(name=f"w{i}", data_type=FLOAT, dims=[size, size]) for i in range(layers)]
    for i, weight in enumerate(weights):
        weight.data_location = onnx.TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="w.bin")
        weight.external_data.add(key="offset", value=str(i * size * size * 4))
    names = ["x", *(f"h{i}" for i in range(layers - 1)), "y"]
    nodes = [node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    path = tmp_path / "model.onnx"
    path.write_bytes(model(nodes, [("x", FLOAT, ["n", size])], initializers=weights).SerializeToString())
    tracemalloc.start()
    try:
        imported = import_model(path)
        assert tracemalloc.get_traced_memory()[1] < layers * size * size * 4 // 10
    finally:
        tracemalloc.stop()
    assert len(imported.constants) == layers


OUTSIDE: dict[str, tuple[str, dict[str, int], str]] = {
    "above": ("../w.bin", {}, "expected a file in the model's folder"),
    "inside and out": ("sub/../../w.bin", {}, "expected a file in the model's folder"),
    "absolute": ("/etc/passwd", {}, "expected a file in the model's folder"),
    "link": ("link.bin", {}, "a link out of the model's folder"),
    "folder of a link": ("away/w.bin", {}, "a link out of the model's folder"),
    "missing": ("none.bin", {}, "no such file"),
    "no name": ("", {}, "expected a file in the model's folder"),
    "short": ("short.bin", {}, "has 8 bytes"),
    "offset": ("short.bin", {"offset": 1 << 50}, "has 8 bytes"),
    "negative": ("short.bin", {"offset": -4}, "expected a number"),
    "length": ("short.bin", {"length": 8}, "expected 64"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_external_data_outside_or_of_a_wrong_size_are_refused(name: str, tmp_path: Path) -> None:
    location, entries, expected = OUTSIDE[name]
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(64))
    (folder / "short.bin").write_bytes(bytes(8))
    os.symlink(tmp_path / "w.bin", folder / "link.bin")
    os.symlink(tmp_path, folder / "away")
    assert expected in refused(external(folder, location, **entries))


# ** mutations **


def sources() -> list[bytes]:
    """Small models with attributes, graphs, functions and weights."""
    branch = helper.make_graph(
        [node("Relu", ["x"], ["b"])], "b", [], [helper.make_tensor_value_info("b", FLOAT, ["r"])]
    )
    choice = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Constant", [], ["t"], value_int=1),
            node("Cast", ["t"], ["c"], to=9),
            node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        ]
    )
    conv = model(
        [node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2])],
        [("x", FLOAT, ["n", 2, 8, 8])],
        initializers=[onnx.numpy_helper.from_array(np.ones((3, 2, 3, 3), np.float32), "w")],
    )
    reshape = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "zero", "one"], ["n"]),
            node("Concat", ["n", "two"], ["t"], axis=0),
            node("Reshape", ["x", "t"], ["r"]),
            node("MatMul", ["r", "w2"], ["y"]),
        ],
        initializers=[
            onnx.numpy_helper.from_array(np.array(n), name)
            for name, n in (("zero", [0]), ("one", [1]), ("two", [2, 2]))
        ]
        + [onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w2")],
    )
    return [made.SerializeToString() for made in (choice, conv, reshape)]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A file with changed, removed or repeated bytes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at] = rng.choice((0, 1, 127, 128, 255))
            case 2:
                del changed[at : at + rng.randrange(1, 9)]
            case _:
                changed[at:at] = changed[at : at + rng.randrange(1, 9)]
        if not changed:
            break
    return bytes(changed)


def check_mutations(count: int, seed: int, folder: Path) -> None:
    rng, files, path = random.Random(seed), sources(), folder / "model.onnx"
    for _ in range(count):
        data = mutated(rng.choice(files), rng)
        path.write_bytes(data)
        try:
            import_model(path)
        except AitError:
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} of {data!r}") from error


def test_mutated_files_never_end_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(200, 0, tmp_path)


@pytest.mark.full
def test_many_mutated_files_never_end_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(20_000, 1, tmp_path)


# ** dims **


def test_dims_that_must_be_equal_become_one() -> None:
    made = model([node("Add", ["x", "z"], ["y"])], [("x", FLOAT, ["n", 4]), ("z", FLOAT, ["m", 4])])
    assert str(import_model(made).graph.scope) == "n = 1 to 4096"


def test_a_table_limits_the_dim_that_it_is_cut_to() -> None:
    table = onnx.numpy_helper.from_array(np.ones((1, 32), np.float32), "table")
    made = model(
        [
            node("Shape", ["x"], ["n"], start=0, end=1),
            node("Constant", [], ["zero"], value_ints=[0]),
            node("Constant", [], ["one"], value_ints=[1]),
            node("Slice", ["table", "zero", "n", "one"], ["rows"]),
            node("Add", ["rows", "x"], ["y"]),
        ],
        [("x", FLOAT, ["n"])],
        initializers=[table],
    )
    assert str(import_model(made).graph.scope) == "n = 1 to 32"
