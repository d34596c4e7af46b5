"""Requests share a run along the batch dim, and each gets its own outputs or its own error. None of this needs Ray."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save, save_file

from ait_mlir.driver import compile_module
from ait_mlir.errors import ArtifactError, InputError, OutOfMemoryError, ToolchainError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.toolchain import TargetKind
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.manifest import DimInfo, Manifest, TensorInfo
from ait_mlir.serve import deployment, messages
from ait_mlir.serve.joining import Request, find_batch_dim, join, joined_shapes, request_of, split, take
from ait_mlir.serve.server import Server


def manifest(inputs: dict[str, str], outputs: dict[str, str], *dims: DimInfo) -> Manifest:
    def infos(shapes: dict[str, str]) -> tuple[TensorInfo, ...]:
        return tuple(TensorInfo(name, "float32", tuple(shape.split())) for name, shape in shapes.items())

    return Manifest("m", "cpu", "native", infos(inputs), infos(outputs), dims)


N, S = DimInfo("n", 1, 8), DimInfo("s", 1, 8)


@pytest.mark.parametrize(
    ("inputs", "outputs", "dims", "found"),
    [
        ({"x": "n 4"}, {"y": "n 2"}, (N,), ("n", ("x",))),
        ({"x": "n s", "t": "4"}, {"y": "n s"}, (S, N), ("n", ("x",))),
        ({"x": "n 4"}, {"y": "n 2"}, (DimInfo("n", 1, 1),), None),
        ({"x": "1 4"}, {"y": "1 2"}, (), None),
        ({"x": "n n"}, {"y": "n 2"}, (N,), None),
        ({"x": "2*n 4"}, {"y": "n 2"}, (N,), None),
        ({"x": "n 4", "z": "4 n+1"}, {"y": "n 2"}, (N,), None),
        ({"x": "n 4"}, {"y": "n 2", "sum": "2"}, (N,), None),
        ({"x": "n 4"}, {"y": "2*n"}, (N,), None),
        ({"x": "n 4"}, {"y": "n k"}, (N, DimInfo("k", 0, 8, (), "n")), None),
        ({"x": "n 4"}, {}, (DimInfo("n", 1, 8, (), "8"),), None),
    ],
)
def test_the_batch_dim_is_axis_0_and_no_other(
    inputs: dict[str, str], outputs: dict[str, str], dims: tuple[DimInfo, ...], found: tuple[str, tuple[str, ...]] | None
) -> None:
    described = manifest(inputs, outputs, *dims)
    dim = find_batch_dim(described)
    assert (None if dim is None else (dim.name, dim.of)) == found
    assert find_batch_dim(described, False) is None
    if found is None and dims:
        with pytest.raises(InputError, match=f"requests cannot be joined along dim '{dims[0].name}' of model m: "):
            find_batch_dim(described, dims[0].name)


def test_a_dim_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="model m has no dim 'batch'; its dims are n"):
        find_batch_dim(manifest({"x": "n"}, {"y": "n"}, N), "batch")


def requests(*inputs: dict[str, Any]) -> list[Request]:
    dim = find_batch_dim(manifest({"x": "n s", "t": "2"}, {"y": "n"}, N, S))
    made = [{"t": np.zeros(2, np.float32), **i} for i in inputs]
    return [request_of(i, {"y": (i["x"].shape[0],)}, dim) for i in made]


def rows(count: int, width: int = 3, value: float = 0) -> dict[str, Any]:
    return {"x": np.full((count, width), value, np.float32)}


def test_a_run_takes_requests_of_one_shape_up_to_the_limit() -> None:
    waiting = requests(rows(2), rows(1, width=4), rows(3), rows(4), rows(1), {**rows(1), "t": np.ones(2, np.float32)})
    a, b, c, d, e, f = waiting
    assert take(waiting, 6) == [a, c]  # `e` does not overtake `d`
    assert waiting == [b, d, e, f]
    assert take(waiting, 6) == [b] and take(waiting, 6) == [d, e] and take(waiting, 6) == [f] and not waiting
    assert take(both := [d, e], 2) == [d] and both == [e]  # one with more rows than the limit runs alone


def test_inputs_are_joined_and_outputs_split() -> None:
    dim = find_batch_dim(manifest({"x": "n s", "t": "2"}, {"y": "n"}, N, S))
    parts = requests(rows(2, value=1), rows(1, value=2))
    inputs = join(parts, dim)
    assert inputs["x"].shape == (3, 3) and inputs["t"].shape == (2,) and joined_shapes(parts) == {"y": (3,)}
    y = inputs["x"].sum(axis=1)
    first, second = split({"y": y}, parts)
    assert first["y"].tolist() == [3, 3] and second["y"].tolist() == [6]
    assert join(parts[:1], dim) is parts[0].inputs and split({"y": y}, parts[:1])[0]["y"] is y


# ** bodies **

X, IDS, MASK, WIDE = (
    TensorInfo("x", "float16", ("2",)),
    TensorInfo("ids", "uint8", ("2",)),
    TensorInfo("mask", "bool", ("2",)),
    TensorInfo("b", "bfloat16", ("2",)),
)


def body(**inputs: Any) -> bytes:
    return json.dumps({"inputs": inputs}).encode()


def test_bodies_of_each_format_are_read_and_written() -> None:
    found = messages.read(body(x=[1, 2.5], ids=[0, 255], mask=[True, False], b=[1, -2], other=[1]), (X, IDS, MASK, WIDE))
    assert {name: x.dtype.name for name, x in found.items()} == {
        **{t.name: t.dtype for t in (X, IDS, MASK, WIDE)}, "other": "float64"
    }  # fmt: skip
    assert found["x"].tolist() == [1, 2.5] and found["ids"].tolist() == [0, 255]
    x, b = np.array([[1, 2], [3, 4]], np.float16), found["b"]
    for made in (x, x.T, x.astype(">f2")):
        file = io.BytesIO()
        np.save(file, made)
        assert np.array_equal(read := messages.read(file.getvalue(), (X,))["x"], made) and read.dtype == np.float16
    for tensor, y in ((X, x), (WIDE, b)):
        assert np.array_equal(messages.read(messages.write({"y": y}, "npy"), (tensor,))[tensor.name], y)
    both = messages.write({"x": x, "b": b}, "safetensors")
    assert messages.format_of(both) == "safetensors" and messages.write({"x": x, "b": b}, "npy") == both
    assert {n: y.tolist() for n, y in messages.read(both, (X, WIDE)).items()} == {"x": x.tolist(), "b": [1, -2]}
    assert json.loads(messages.write({"x": x, "b": b}, "json")) == {"outputs": {"x": [[1, 2], [3, 4]], "b": [1, -2]}}
    assert load(messages.write({"x": x}, "safetensors"))["x"].tolist() == x.tolist()


NPY = messages.write({"x": np.zeros((2, 3), np.float32)}, "npy")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "neither JSON nor"),
        (b"\xff{", "neither JSON nor"),
        (b"[" * 100_000, "neither JSON nor"),
        (b"[1]", "without inputs"),
        (b'{"inputs": [1]}', "without inputs"),
        (body(x=[[1], [1, 2]]), "'x' is no array"),
        (body(x=["a"]), "'x' is float16: expected numbers"),
        (body(x=[None]), "'x' is float16: expected numbers"),
        (body(x={"a": 1}), "'x' is float16: expected numbers"),
        (body(x=[True]), "'x' is float16: expected numbers"),
        (body(x=[1e6]), "'x' is float16, which has no number 1000000.0"),
        (body(x=[10**400]), "'x' is"),
        (body(ids=[1.0]), "'ids' is uint8: expected integers"),
        (body(ids=[3, 256]), "'ids' is uint8, which has no number 256"),
        (body(ids=[-1]), "'ids' is uint8, which has no number -1"),
        (body(mask=[1]), "'mask' is bool: expected true and false"),
        (NPY, "a .npy file, which has one array, but the model has 3 inputs"),
        (save({"x": np.zeros(3, np.float32)})[:-1], "the request is"),
    ],
)
def test_malformed_bodies_are_refused(content: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        messages.read(content, (X, IDS, MASK))


@pytest.mark.parametrize("content", [NPY[:-1], NPY[:20], NPY + b"x", NPY.replace(b"(2, 3)", b"(9**9,"), NPY[:6] + b"\x09"])
def test_malformed_npy_files_are_refused(content: bytes) -> None:
    with pytest.raises(InputError, match=r"the request is no \.npy file: "):
        messages.read(content, (X,))


def test_npy_files_with_objects_are_refused() -> None:
    file = io.BytesIO()
    np.save(file, np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match="it has Python objects"):
        messages.read(file.getvalue(), (X,))


# ** a model **

TEXT = """
ait.graph @net(%x: !ait.tensor<n x 4 x f32>, %at: !ait.tensor<n x i32>) dims {n = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %y = ait.gemm rcr %x, %w : !ait.tensor<n x 4 x f32>
  %t = ait.param "t" : !ait.tensor<3 x 4 x f32>
  %e = ait.embedding %t, %at : !ait.tensor<n x 4 x f32>
  %z = ait.add %y, %e : !ait.tensor<n x 4 x f32>
  ait.output "z" %z : !ait.tensor<n x 4 x f32>
}
"""
W, T = np.arange(16, dtype=np.float32).reshape(4, 4), np.ones((3, 4), np.float32)


def compiled(folder: Path, text: str, target: TargetKind = "cpu", **constants: Any) -> str:
    module = parse_source(context(), SourceText("<text>", text))
    return str(compile_module(module, CompileOptions(target), output=folder / "net.ait", constants=constants))


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("net"), TEXT, w=W, t=T)


def inputs(count: int, value: float, at: int = 0) -> dict[str, Any]:
    return {"x": np.full((count, 4), value, np.float32), "at": np.full(count, at, np.int32)}


def expected(given: dict[str, Any], w: Any = W) -> Any:
    return given["x"] @ w.T + T[given["at"]]


def answers(server: Server, *given: dict[str, Any]) -> list[Any]:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*server.submit([server.request(i) for i in given]), return_exceptions=True)

    return asyncio.run(all_of_them())


def test_requests_share_runs(net: str) -> None:
    seen: list[int] = []
    server = Server(net, on_run=lambda rows, seconds: seen.append(rows))
    given = [inputs(1, 1), inputs(2, 2), inputs(1, 3), inputs(4, 4), inputs(1, 5)]
    for i, found in zip(given, answers(server, *given), strict=True):
        assert np.allclose(found["z"], expected(i))
    assert seen == [4, 4, 1] and server.limit == 4 and server.unused_dim == ""
    seen.clear()
    server = Server(net, False, on_run=lambda rows, seconds: seen.append(rows))
    assert len(answers(server, *given)) == 5 and len(seen) == 5 and server.description()["batch"] is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": np.zeros((1, 4), np.float32)}, "input 'at' is missing"),
        ({**inputs(1, 0), "y": np.zeros(1)}, "there is no input 'y'"),
        ({**inputs(1, 0), "x": np.zeros((1, 4))}, "input 'x' has dtype float64, expected float32"),
        ({**inputs(1, 0), "x": np.zeros((1, 5), np.float32)}, "input 'x' has shape \\[1, 5\\]"),
        (inputs(5, 0), "input 'x' has extent 5 on axis 0, so n = 5, expected a value from 1 to 4"),
        (inputs(0, 0), "n = 0"),
        ({**inputs(2, 0), "at": np.zeros(1, np.int32)}, "'at'"),
        ({**inputs(1, 0), "x": [[1.0] * 4]}, "input 'x' is a list, expected a NumPy array"),
        ({**inputs(1, 0), "x": np.zeros((1, 4), ">f4")}, "input 'x' has the byte order of another processor"),
        ({**inputs(1, 0), "x": np.zeros((1, 4), object)}, "input 'x'"),
        ({**inputs(1, 0), "x": np.zeros((1, 4), "V4")}, "input 'x'"),
        ({**inputs(1, 0), "x": np.zeros((1, 4), "U3")}, "input 'x'"),
    ],
)
def test_requests_that_do_not_fit_are_refused_before_they_are_joined(net: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Server(net).request(given)


def test_a_request_that_fails_does_not_fail_those_of_its_run(net: str) -> None:
    server = Server(net)
    given = [inputs(1, 1), inputs(1, 2, at=3), inputs(1, 3)]
    first, failed, last = answers(server, *given)
    assert np.allclose(first["z"], expected(given[0])) and np.allclose(last["z"], expected(given[2]))
    assert isinstance(failed, InputError) and "outside of the table, which has 3 rows" in str(failed)


def test_a_run_that_fails_otherwise_is_followed_by_a_check(net: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Server, *given: Any) -> Any:
        raise OutOfMemoryError("no memory")

    server = Server(net)
    with monkeypatch.context() as patch:
        patch.setattr(Server, "_model_run", failing)
        assert [str(found) for found in answers(server, inputs(1, 1), inputs(1, 2))] == ["no memory"] * 2
        patch.setattr("ait_mlir.serve.server.run_on_host", failing)
        with pytest.raises(OutOfMemoryError, match="no memory"):
            asyncio.run(server.check_health())
    asyncio.run(server.check_health())
    assert np.allclose(answers(server, inputs(1, 1))[0]["z"], expected(inputs(1, 1)))


def test_requests_that_were_cancelled_do_not_run(net: str) -> None:
    seen: list[int] = []
    server = Server(net, num_runtimes=1, on_run=lambda rows, seconds: seen.append(rows))

    async def cancel_the_second() -> Any:
        first, second = (server.submit([server.request(inputs(1, n))])[0] for n in (1, 2))
        (third,) = server.submit([server.request(inputs(2, 3))])
        second.cancel()
        return await asyncio.gather(first, third)

    assert [found["z"].shape for found in asyncio.run(cancel_the_second())] == [(1, 4), (2, 4)] and seen == [1, 2]


@pytest.mark.parametrize("maps", [False, True])
def test_weights_are_those_of_the_file_and_else_of_the_artifact(maps: bool, net: str, tmp_path: Path) -> None:
    def z(server: Server) -> Any:
        return answers(server, inputs(1, 1))[0]["z"]

    server = Server(net, map_weights=maps)
    for name, values in (("w", {"w": 2 * W}), ("both", {"w": 3 * W, "t": T}), ("wrong", {"w": W[:3]}), ("other", {"q": W})):
        save_file(values, tmp_path / name)
    (tmp_path / "damaged").write_bytes(b"damaged")
    asyncio.run(server.set_weights(str(tmp_path / "both")))
    assert np.allclose(z(server), expected(inputs(1, 1), 3 * W))
    for name, told in {"wrong": "'w' has shape", "other": "has 'q'", "damaged": "safetensors", "no": "cannot be read"}.items():
        with pytest.raises(InputError, match=told):
            asyncio.run(server.set_weights(str(tmp_path / name)))
        assert np.allclose(z(server), expected(inputs(1, 1), 3 * W)) and server.description()["weights"] == "both"
    asyncio.run(server.set_weights(str(tmp_path / "w")))
    assert np.allclose(z(server), expected(inputs(1, 1), 2 * W))
    asyncio.run(server.set_weights(None))
    assert np.allclose(z(server), expected(inputs(1, 1)))


@pytest.mark.parametrize("maps", [False, True])
def test_a_model_without_weights_waits_for_them(maps: bool, tmp_path: Path) -> None:
    server = Server(compiled(tmp_path, TEXT), map_weights=maps)
    with pytest.raises(InputError, match="constant 'w' of model net has no value: deploy it with a file of weights"):
        asyncio.run(server.check_health())
    save_file({"w": W}, tmp_path / "w")
    with pytest.raises(InputError, match="lacks 't', which the artifact does not have either"):
        asyncio.run(server.set_weights(str(tmp_path / "w")))
    save_file({"w": W, "t": T}, tmp_path / "both")
    asyncio.run(server.set_weights(str(tmp_path / "both")))
    asyncio.run(server.check_health())
    assert np.allclose(answers(server, inputs(2, 1))[0]["z"], expected(inputs(2, 1)))


def test_two_servers_share_changed_weights(net: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one reads no values from the file."""
    save_file({"w": 7 * W}, tmp_path / "w")
    servers = [Server(net, map_weights=True) for _ in range(2)]
    asyncio.run(servers[0].set_weights(str(tmp_path / "w")))
    monkeypatch.setattr("ait_mlir.serve.server.read_weights", None)
    asyncio.run(servers[1].set_weights(str(tmp_path / "w")))
    for server in servers:
        assert np.allclose(answers(server, inputs(1, 1))[0]["z"], expected(inputs(1, 1), 7 * W))


def test_weights_that_are_written_while_they_are_read(net: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file({"w": 5 * W}, tmp_path / "w")
    server, digests = Server(net, map_weights=True), iter(("one", "another"))
    monkeypatch.setattr("ait_mlir.serve.server._digest", lambda path: next(digests))
    with pytest.raises(InputError, match="were written while they were read: give new weights a new path"):
        asyncio.run(server.set_weights(str(tmp_path / "w")))
    assert np.allclose(answers(server, inputs(1, 1))[0]["z"], expected(inputs(1, 1)))


def test_state_is_a_copy_of_the_request(tmp_path: Path) -> None:
    text = """
ait.graph @sum(%s: !ait.tensor<n x 4 x f32> donated, %x: !ait.tensor<n x 4 x f32>) dims {n = 1 to 4} {
  %y = ait.add %s, %x : !ait.tensor<n x 4 x f32>
  ait.output "s" %y in place of %s : !ait.tensor<n x 4 x f32>
}"""
    server = Server(compiled(tmp_path, text))
    given = [{"s": np.full((n, 4), n, np.float32), "x": np.ones((n, 4), np.float32)} for n in (1, 2, 4)]
    for i, found in zip(given, answers(server, *given), strict=True):
        assert np.array_equal(found["s"], i["s"] + 1) and np.array_equal(i["s"], np.full_like(i["s"], len(i["s"])))


MIXED = {
    "softmax": ("%y = ait.softmax %x dim 0", "other rows"),
    "cumulative": ("%y = ait.cumulative sum %x dim 0", "other rows"),
    "place": (
        '%p = ait.param "p" : !ait.tensor<4 x 4 x f32>\n  %q = ait.slice %p offsets [0, 0] : !ait.tensor<n x 4 x f32>\n'
        "  %y = ait.add %x, %q",
        "its place",
    ),
}
"""Graphs along axis 0, and what an output of a row depends on."""


@pytest.mark.parametrize("name", MIXED)
def test_rows_that_influence_each_other_are_not_joined(tmp_path: Path, name: str) -> None:
    text = f"""
ait.graph @mixed(%x: !ait.tensor<n x 4 x f32>) dims {{n = 1 to 4}} {{
  {MIXED[name][0]} : !ait.tensor<n x 4 x f32>
  ait.output "y" %y : !ait.tensor<n x 4 x f32>
}}"""
    path = compiled(tmp_path, text, **({"p": W} if name == "place" else {}))
    server, told = Server(path), f"output 'y' of a row depends on {MIXED[name][1]}"
    assert server.dim is None and server.unused_dim == f"n: {told}" and server.limit == 1
    with pytest.raises(InputError, match=f"requests cannot be joined along dim 'n': {told}"):
        Server(path, "n")


def test_deployments_that_cannot_work_are_refused_before_ray_is_asked(net: str, tmp_path: Path) -> None:
    save_file({"w": W[:3]}, tmp_path / "wrong")
    with pytest.raises(InputError, match=r"wrong: 'w' has shape \[3, 4\] and dtype float32, but in .* \[4, 4\]"):
        deployment(net, weights=tmp_path / "wrong")
    with pytest.raises(InputError, match=r"the weights .*/none cannot be read: No such file"):
        deployment(net, weights=tmp_path / "none")
    with pytest.raises(InputError, match="no dim 'rows'; its dims are n"):
        deployment(net, batch="rows")
    with pytest.raises(InputError, match="max_batch_size is 0"):
        deployment(net, max_batch_size=0)
    with pytest.raises(ArtifactError, match="there is no such artifact"):
        deployment(tmp_path / "none")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_extra_is_named(net: str) -> None:
    with pytest.raises(ToolchainError, match=r"serving models needs Ray Serve \(.*\); pip install 'ait_mlir\[ray\]'"):
        deployment(net)
