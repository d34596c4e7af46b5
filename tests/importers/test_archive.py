"""A `.pt2` file that would run code is refused before any of it has run."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.export import Dim

from ait_mlir.errors import CompileError
from ait_mlir.importers.torch import read_program
from ait_mlir.importers.torch.fold import Folder
from ait_mlir.tools.cli import main

MARK = "mark-of-code-that-ran"
SHELL = f"touch {MARK}"
CODE = f"__import__('os').system('{SHELL}')"
MODULE = "hostile_module_of_a_test"
Edit = Callable[[str, bytes], bytes]


class _Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (SHELL,)


def pickled(value: object) -> bytes:
    data = io.BytesIO()
    torch.save(value, data)
    return data.getvalue()


class Model(torch.nn.Module):
    """Has a dim that is an expression, guards, and a structure of inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor, y: dict[str, list[torch.Tensor]]) -> dict[str, torch.Tensor]:
        z = x.reshape(x.shape[0], -1, 2) * self.weight
        return {"k": z.sum(-1) + y["a"][0], "s": torch.where(x > 0, x, -x)}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    batch, seq = Dim("batch", min=1, max=16), Dim("seq", max=64)
    shapes = ({0: batch, 1: 2 * seq}, {"a": [{0: batch, 1: seq}]})
    inputs = (torch.randn(4, 8), {"a": [torch.randn(4, 4)]})
    torch.export.save(torch.export.export(Model().eval(), inputs, dynamic_shapes=shapes), path)
    return path


def edited(good: Path, path: Path, edit: Edit, more: dict[str, bytes] | None = None) -> None:
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, edit(name, old.read(name)))
        for name, data in (more or {}).items():
            new.writestr(name, data)


def in_file(end: str, change: Callable[[bytes], bytes]) -> Edit:
    def edit(name: str, data: bytes) -> bytes:
        if not name.endswith(end):
            return data
        changed = change(data)
        assert changed != data
        return changed

    return edit


def in_program(old: str, new: str) -> Edit:
    return in_file("models/model.json", lambda data: data.decode().replace(old, new).encode())


def with_guard(data: bytes) -> bytes:
    program = json.loads(data)
    assert program["guards_code"], "the model has guards, so that their texts are checked"
    return json.dumps({**program, "guards_code": [CODE]}).encode()


def with_structure(children: dict[str, object]) -> Edit:
    def edit(data: bytes) -> bytes:
        program = json.loads(data)
        program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, children])
        return json.dumps(program).encode()

    return in_file("models/model.json", edit)


def with_pickled_weight(data: bytes) -> bytes:
    config = json.loads(data)
    config["config"]["weight"]["use_pickle"] = True
    return json.dumps(config).encode()


def with_object(data: bytes) -> bytes:
    meta = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    return json.dumps({"config": {"thing": meta}}).encode()


LEAF = {"type": None, "context": None, "children_spec": []}
ENUM = json.dumps([{"__enum__": True, "fqn": f"{MODULE}:Kind", "name": "A"}])
FACTORY = {"default_factory_module": MODULE, "default_factory_name": "make", "dict_context": ["k"]}
HOSTILE: dict[str, tuple[Edit, str]] = {
    "inputs": (in_file("sample_inputs/model.pt", lambda _: pickled(_Hostile())), "asks for posix.system"),
    "weights": (in_file("weights/model_weights_config.json", with_pickled_weight), "'weight' is no plain tensor"),
    "object": (in_file("constants/model_constants_config.json", with_object), "'thing' is no plain tensor"),
    "dim": (in_program("Symbol('s77', positive=True, integer=True)", CODE), "for a dim"),
    "argument of a symbol": (in_program("integer=True", f"integer={CODE}"), "for a dim"),
    "text for a number": (in_program("Integer(2)", f'Add(\\"{CODE}\\")'), "for a dim"),
    "name": (in_program('"name": "x"', f'"name": "x={CODE}"'), "for a name"),
    "operation": (in_program("torch.ops.aten.neg.default", "torch.os.system"), "'torch.os.system' for an operation"),
    "file": (in_program("torch.ops.aten.neg.default", "torch.ops.aten.from_file.default"), "opens another file"),
    "guard": (in_file("models/model.json", with_guard), "for a guard"),
    "key": (with_structure({"type": "builtins.dict", "context": ENUM, "children_spec": [LEAF]}), "whose module is"),
    "factory": (
        with_structure({"type": "collections.defaultdict", "context": FACTORY, "children_spec": [LEAF]}),  # type: ignore[dict-item]
        f"a defaultdict of {MODULE}.make",
    ),
}
MEMBERS = {
    "legacy weights": ("model/data/weights/model.pt", "data/weights/model.pt is a pickle"),
    "legacy constants": ("model/data/constants/model.pt", "data/constants/model.pt is a pickle"),
    "compiled": ("model/data/aotinductor/model/code.so", "belongs to a compiled model"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{MODULE}.py").write_text(f"import os\nos.system({SHELL!r})\n")
    return tmp_path


def refuses(folder: Path, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["import", "--check", "bad.pt2"], ["import", "bad.pt2"], ["compile", "bad.pt2", "--to", "fused"]):
        assert main(command) == 1
        told = capsys.readouterr().err
        assert told.startswith("ait: error: bad.pt2 would run code when it is loaded: ") and message in told
        assert "--trust-pickle" in told and told.count("\n") == 1
    assert not (folder / MARK).exists()


@pytest.mark.parametrize("case", HOSTILE)
def test_a_program_with_code_is_refused(good: Path, folder: Path, case: str, capsys) -> None:
    edit, message = HOSTILE[case]
    edited(good, folder / "bad.pt2", edit)
    refuses(folder, message, capsys)


@pytest.mark.parametrize("case", MEMBERS)
def test_a_member_with_code_is_refused(good: Path, folder: Path, case: str, capsys) -> None:
    name, message = MEMBERS[case]
    edited(good, folder / "bad.pt2", lambda _, data: data, {name: pickled({"weight": _Hostile()})})
    refuses(folder, message, capsys)


def test_the_older_format_is_refused(folder: Path, capsys) -> None:
    with zipfile.ZipFile(folder / "bad.pt2", "w") as archive:
        archive.writestr("version", "8.1")
        archive.writestr("serialized_exported_program.json", "{}")
        archive.writestr("serialized_state_dict.pt", pickled(_Hostile()))
    refuses(folder, "the format of PyTorch 2.7 and older", capsys)


def test_a_file_that_is_trusted_is_loaded_as_it_is(good: Path, folder: Path, capsys) -> None:
    inputs = ((torch.randn(4, 8), {"a": [torch.randn(4, 4)]}), {"x": _Hostile()})
    edited(good, folder / "bad.pt2", in_file("sample_inputs/model.pt", lambda _: pickled(inputs)))
    assert main(["import", "--check", "--trust-pickle", "bad.pt2"]) == 0
    assert (folder / MARK).exists()
    (folder / MARK).unlink()
    with pytest.raises(CompileError, match=r"trust_pickle=True"):
        read_program("bad.pt2")
    assert not (folder / MARK).exists()
    assert read_program("bad.pt2", trust_pickle=True).graph is not None and (folder / MARK).exists()


def test_plain_programs_need_no_trust(good: Path) -> None:
    program = read_program(good)
    x, y = torch.randn(3, 6), {"a": [torch.randn(3, 3)]}
    assert torch.equal(program.module()(x, y)["s"], x.abs())


@pytest.mark.parametrize(
    "text", ["9**9**9", "Pow(Integer(9), Pow(Integer(9), Integer(9)))", "(lambda: 1)()", "s.__class__"]
)
def test_expressions_that_are_no_dims(good: Path, folder: Path, text: str, capsys) -> None:
    edited(good, folder / "bad.pt2", in_program("Symbol('s77', positive=True, integer=True)", text))
    refuses(folder, "for a dim", capsys)


@pytest.mark.parametrize("depth", [100_000])
def test_a_deep_file_is_no_program(good: Path, folder: Path, depth: int) -> None:
    edited(good, folder / "bad.pt2", in_file("models/model.json", lambda _: b"[" * depth))
    with pytest.raises(CompileError, match=r"is no program that torch.export.save has written"):
        read_program("bad.pt2")


def test_the_import_computes_nothing_that_may_open_a_file(folder: Path) -> None:
    def stored(target: object, *args: object) -> object:
        graph = torch.fx.Graph()
        node = graph.call_function(target, args)  # type: ignore[arg-type]
        node.meta["val"] = torch.empty(2)
        return Folder(graph).stored(node)

    with torch.library._scoped_library("ait_trust_test", "FRAGMENT") as library:
        library.define("numbers(int n) -> Tensor")
        library.define("read(str path, int n) -> Tensor")
        library.impl("numbers", lambda n: torch.zeros(n), "CompositeExplicitAutograd")
        library.impl("read", lambda path, n: torch.zeros(n), "CompositeExplicitAutograd")
        ops = torch.ops.ait_trust_test
        assert stored(torch.ops.aten.zeros.default, [2]) is not None
        assert stored(ops.numbers.default, 2) is not None
        assert stored(ops.read.default, MARK, 2) is None
    assert stored(torch.ops.aten.from_file.default, MARK, True, 2) is None
    assert not (folder / MARK).exists()
