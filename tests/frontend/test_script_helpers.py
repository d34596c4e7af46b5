"""What AITemplate's examples and tutorials import beside the compiler: pictures of graphs, scripts as parts of packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ait_mlir.errors import AitError, InputError
from ait_mlir.frontend import IntVar, Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.ir.source import SourceError
from ait_mlir.utils.import_path import import_parent
from ait_mlir.utils.serialization import serdes_code
from ait_mlir.utils.visualization import boxes_of, plot_graph
from tests.frontend.support import evaluate


def network() -> list[Tensor]:
    x = Tensor(shape=[IntVar([1, 4], name="batch"), 8], dtype="float32", name="<x & y>", is_input=True)
    w, b = Tensor(shape=[8, 8], dtype="float32", name="w"), Tensor(shape=[8], dtype="float32", name="b")
    hidden = ops.gemm_rcr_bias()(x, w, b)
    left, right = ops.elementwise(FuncEnum.TANH)(hidden), ops.elementwise(FuncEnum.RELU)(hidden)
    return [(left + right).mark_as_output("sum"), right.mark_as_output("right")]


def test_a_picture_has_every_operator_below_what_it_reads(tmp_path: Path) -> None:
    plot_graph(network(), file_path=tmp_path / "graph.html", network_name="net <1>")
    page = (tmp_path / "graph.html").read_text()
    assert "<title>net &lt;1&gt;</title>" in page and "&lt;x &amp; y&gt;" in page
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    labels = [text.text for text in svg.iter("text")]
    operators = ["elementwise(ADD)", "elementwise(RELU)", "elementwise(TANH)", "gemm_rcr_bias"]
    assert sorted(str(label) for label in labels) == ["<x & y>", "b", *operators, "w"]
    assert len(list(svg.iter("line"))) == 3 + 2 + 2
    boxes = boxes_of(network())
    assert all(source.row < box.row for box in boxes for source in box.sources)
    assert len({(box.x, box.row) for box in boxes}) == len(boxes)
    assert [box.kind for box in boxes].count("output") == 2


def test_a_graph_of_an_input_alone(tmp_path: Path) -> None:
    x = Tensor(shape=[2], dtype="float32", name="x", is_input=True)
    plot_graph(x, str(tmp_path / "graph.html"))
    assert ">x</text>" in (tmp_path / "graph.html").read_text()
    with pytest.raises(OSError):
        plot_graph(x, tmp_path / "missing" / "graph.html")


def test_a_model_is_read_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "program.py"
    serdes_code.dump_program(network(), path)
    shapes = serdes_code.get_inputs_from_graph(path)
    assert list(shapes) == ["<x & y>"] and [str(dim) for dim in shapes["<x & y>"]] == ["batch", "8"]
    outputs, graph = serdes_code.get_program(path)
    assert [t.name for t in outputs] == ["sum", "right"] and all(t.is_output for t in outputs)
    assert {t.name for t in graph if t.is_param} == {"w", "b"}
    rng = np.random.default_rng(0)
    given = {"<x & y>": rng.standard_normal((3, 8))}
    weights = {"w": rng.standard_normal((8, 8)), "b": rng.standard_normal(8)}
    hidden = given["<x & y>"] @ weights["w"].T + weights["b"]
    for made in (network(), outputs):
        total, right = evaluate(made, given, params=weights, batch=3)
        np.testing.assert_allclose(right, np.maximum(hidden, 0), atol=1e-5)
        np.testing.assert_allclose(total, np.tanh(hidden) + np.maximum(hidden, 0), atol=1e-5)


def test_one_tensor_and_a_file_without_a_model(tmp_path: Path) -> None:
    x = Tensor(shape=[2], dtype="float32", name="x", is_input=True)
    serdes_code.dump_program([x, ops.relu(x).mark_as_output("y")], tmp_path / "one")
    assert [t.name for t in serdes_code.get_program(tmp_path / "one")[0]] == ["y"]
    (tmp_path / "broken").write_text("ait.graph @f(")
    with pytest.raises(SourceError, match="broken:1:13"):
        serdes_code.get_program(tmp_path / "broken")
    (tmp_path / "empty").write_text("builtin.module {}")
    with pytest.raises(InputError, match=r"expected one ait\.graph"):
        serdes_code.get_program(tmp_path / "empty")


SCRIPT = """
import ait_mlir
from ait_mlir.utils.import_path import import_parent
if __name__ == "__main__" and __package__ is None:
    import_parent(filename=__file__, level=LEVEL)
from ..shared import VALUE
from .beside import OTHER
print(__package__, VALUE, OTHER)
"""


@pytest.mark.parametrize(("level", "package"), [(2, "outer.inner"), (3, "top.outer.inner")])
def test_a_script_imports_from_the_folders_around_it(tmp_path: Path, level: int, package: str) -> None:
    inner = tmp_path / "top" / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "shared.py").write_text("VALUE = 3\n")
    (inner / "beside.py").write_text("OTHER = 4\n")
    (inner / "script.py").write_text(SCRIPT.replace("LEVEL", str(level)))
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(inner / "script.py")], capture_output=True, text=True, env={"PYTHONPATH": root}
    )
    assert done.stdout == f"{package} 3 4\n", done.stderr


@pytest.mark.parametrize("level", [0, -1, 1000])
def test_a_level_that_no_folder_has_is_an_error(level: int) -> None:
    with pytest.raises(AitError, match=f"import_parent: level is {level}, expected 1 to"):
        import_parent(__file__, level)
