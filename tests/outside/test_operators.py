"""One class outside of the package: its text, its meaning, its kernels, patterns, calls and rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest

from ait_mlir import driver, outside
from ait_mlir.errors import InputError, ToolchainError
from ait_mlir.folding import Folding
from ait_mlir.frontend import BuildError, IntVar, Tensor, build_module, compile_model
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.module_target import make_target, target_of
from ait_mlir.lowering.toolchain import find_hipcc, find_nvcc
from ait_mlir.operators import Cpp, Op, TensorType, operand_def, operator, result_def
from ait_mlir.options import CompileOptions
from ait_mlir.tools import ait_opt, cli

MINE = Path(__file__).with_name("mine.py")
TEXT = """ait.graph @f(%x: !ait.tensor<batch x 8 x f32>) dims {batch = 1 to 64} {
  %a = ait.exp %x : !ait.tensor<batch x 8 x f32>
  %c = mine.cube %a scale 0.5 : !ait.tensor<batch x 8 x f32>
  %b = ait.tanh %c : !ait.tensor<batch x 8 x f32>
  %n = ait.neg %b : !ait.tensor<batch x 8 x f32>
  %r = mine.rotate %n angle 0.5 : !ait.tensor<batch x 8 x f32>
  %s = ait.neg %r : !ait.tensor<batch x 8 x f32>
  ait.output "y" %s : !ait.tensor<batch x 8 x f32>
}
"""


def _needs(target: str, find: Callable[[], Path], *marks: pytest.MarkDecorator) -> object:
    try:
        find()
    except ToolchainError as missing:
        marks = (*marks, pytest.mark.skip(reason=str(missing)))
    return pytest.param(target, marks=marks)


TARGETS = [_needs("cuda", find_nvcc), _needs("rocm", find_hipcc, pytest.mark.full)]


@pytest.fixture
def mine():
    return outside.load(MINE)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    return path


def opt(*arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    options = ait_opt.argument_parser().parse_args(arguments, namespace=ait_opt.Options())
    return ait_opt.run(options, out, err), out.getvalue(), err.getvalue()


def test_text_round_trips(text: Path):
    code, printed, _ = opt(str(text), "--load", str(MINE))
    assert code == 0
    assert "%c = mine.cube %a scale 0.5 : !ait.tensor<batch x 8 x f32>" in printed
    assert "%r = mine.rotate %n angle 0.5 : !ait.tensor<batch x 8 x f32>" in printed
    text.write_text(printed)
    assert opt(str(text), "--load", str(MINE))[1] == printed
    generic = opt(str(text), "--load", str(MINE), "--print-op-generic")[1]
    assert '"mine.rotate"(' in generic
    text.write_text(generic)
    assert opt(str(text), "--load", str(MINE))[1] == printed


def test_text_of_an_unknown_operator_names_the_option(text: Path):
    code, _, err = opt(str(text))
    assert code == 1 and f"{text}:3:8: error: Operation mine.cube is not registered" in err and "--load" in err


def test_its_pattern_and_fusion_keep_the_meaning(text: Path):
    code, printed, err = opt(str(text), "--load", str(MINE), "-p", "simplify,fuse-elementwise", "--check-semantics")
    assert code == 0 and "no difference" in err and "not tried" not in err
    assert "mine.rotate" in printed and "ait.neg" not in printed
    region = printed.split("ait.fused_elementwise")[1].split("ait.yield")[0]
    assert "mine.cube %a scale 0.5 : f32" in region and "ait.tanh" in region


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("angle 0.5", "angle inf"),  # is_finite
        ("%s = ait.neg %r", "%s = ait.sub %n, %r"),  # one_use
    ],
)
def test_its_pattern_keeps_to_its_constraints(text: Path, old: str, new: str):
    text.write_text(TEXT.replace(old, new))
    code, printed, _ = opt(str(text), "--load", str(MINE), "-p", "simplify")
    assert code == 0 and "mine.rotate %n" in printed


def test_a_wrong_pattern_is_found(text: Path, tmp_path: Path):
    wrong = MINE.read_text().replace('p.new("ait.neg", [turned])', "turned")
    (tmp_path / "wrong.py").write_text(wrong)
    code, _, err = opt(str(text), "--load", str(tmp_path / "wrong.py"), "-p", "simplify", "--check-semantics")
    assert code == 1 and "pass 'simplify' changes the meaning of @f" in err


def test_the_shape_function_verifies_text(text: Path):
    text.write_text(
        TEXT.replace("0.5 : !ait.tensor<batch x 8 x f32>\n  %s", "0.5 : !ait.tensor<batch x 4 x f32>\n  %s")
    )
    code, _, err = opt(str(text), "--load", str(MINE))
    assert code == 1 and f"{text}:6:3: error: mine.rotate: the result is" in err


def test_compiles_and_runs_from_the_command_line(text: Path, tmp_path: Path, capsys):
    artifact = str(tmp_path / "model.ait")
    assert cli.main(["compile", str(text), "--load", str(MINE), "-o", artifact]) == 0
    run = ["run", artifact, "--load", str(MINE), "--input", "x=random:5x8", "--compare", "reference"]
    assert cli.main(run) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_builder_calls_it(mine, tmp_path: Path, dtype: str):
    x = Tensor([IntVar([1, 64], name="batch"), 8], dtype=dtype, name="x", is_input=True)
    y = mine.Rotate.on(mine.Power.on(x, scale=2), angle=0.5)
    assert y._attrs["src_ops"] and y.shape() == x.shape()
    model = compile_model(y.mark_as_output("y"), "cpu", tmp_path, "rotate")
    for batch in (1, 5):
        data = np.random.default_rng(batch).standard_normal((batch, 8)).astype(dtype)
        found = model.run({"x": data}, {"y": np.empty_like(data)})["y"]
        expected = mine.Rotate.reference(2 * data.astype(np.float64) ** 3, angle=0.5)
        np.testing.assert_allclose(
            found, expected, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-2 if dtype == "float16" else 1e-5
        )


def test_optional_operands_and_several_results(mine, tmp_path: Path):
    x = Tensor([IntVar([0, 2000], name="n")], dtype="float32", name="x", is_input=True)
    plus, minus = mine.Shifted.on(x)
    more, less = mine.Shifted.on(plus, shift=minus)
    outputs = [t.mark_as_output(n) for t, n in ((plus, "plus"), (minus, "minus"), (more, "more"), (less, "less"))]
    assert "mine.shifted %plus, %minus : " in str(build_module(outputs))
    model = compile_model(outputs, "cpu", tmp_path, "shifted")
    data = np.arange(7, dtype=np.float32)
    made = model.run({"x": data}, {n: np.empty(7, np.float32) for n in ("plus", "minus", "more", "less")})
    np.testing.assert_array_equal(made["minus"], -data)
    np.testing.assert_array_equal(made["more"], 0 * data)
    with pytest.raises(RuntimeError, match="more than 1000 elements"):
        big = np.zeros(1001, np.float32)
        model.run({"x": big}, {n: np.empty_like(big) for n in ("plus", "minus", "more", "less")})
    np.testing.assert_array_equal(
        model.run({"x": data}, {n: np.empty(7, np.float32) for n in ("plus", "minus", "more", "less")})["plus"], data
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda op, x: op.on(x), r"rotate\(.x. \[4, 8\] float32\): angle is missing"),
        (lambda op, x: op.on(x, angle="s"), "angle must be a number; found 's'"),
        (lambda op, x: op.on(x, angle=1.0, turn=2), "there is no 'turn'; it takes angle"),
        (lambda op, x: op.on(angle=1.0), "the operand x is missing"),
        (lambda op, x: op.on(x, x, angle=1.0), "takes 1 operand; found 2"),
        (lambda op, x: op.on(3, angle=1.0), "input 0 must be a Tensor"),
    ],
)
def test_wrong_calls(mine, call, message: str):
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    with pytest.raises(BuildError, match=message):
        call(mine.Rotate, x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda op, x: op()(x), r"In Python, add it to a model with Rotate.on\(x, angle=...\)"),
        (lambda op, x: op(x), "Rotate.on"),
        (lambda op, x: op(x, angle=0.5), "Rotate.on"),
        (lambda op, x: op(angle=0.5)(x), "Rotate.on"),
    ],
)
def test_a_class_that_is_called_as_in_aitemplate(mine, call, message: str):
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    with pytest.raises(outside.OperatorError, match=message):
        call(mine.Rotate, x)
    with pytest.raises(outside.OperatorError, match=r"Power.on\(x, scale=...\)"):
        call(mine.Power, x)
    with pytest.raises(outside.OperatorError, match=r"Shifted.on\(x, shift\)"):
        call(mine.Shifted, x)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("angle 0.5", "", "6:24: error: mine.rotate: expected 'angle'"),
        ("angle 0.5", "0.5", "6:23: error: mine.rotate: expected 'angle'"),
        (
            "angle 0.5 :",
            "angle 0.5 : !ait.tensor<batch x 8 x f32> ->",
            "6:65: error: types of operands need parentheses",
        ),
    ],
)
def test_wrong_text(text: Path, old: str, new: str, message: str):
    text.write_text(TEXT.replace(old, new))
    code, _, err = opt(str(text), "--load", str(MINE))
    assert code == 1 and f"{text}:{message}" in err


def test_the_longer_text(text: Path):
    printed = opt(str(text), "--load", str(MINE))[1]
    long = "angle 0.5 : (!ait.tensor<batch x 8 x f32>) ->"
    text.write_text(TEXT.replace("angle 0.5 :", long))
    assert opt(str(text), "--load", str(MINE))[1] == printed


def test_a_target_without_a_kernel(mine, text: Path, tmp_path: Path):
    module, _ = driver.read_module(text)
    with pytest.raises(
        Exception,
        match=r"no kernel for mine.shifted on cuda .* it has kernels for cpu; add one for cuda to its definition at .*mine.py:\d+",
    ):
        x = Tensor([4], dtype="float32", name="x", is_input=True)
        compile_model(mine.Shifted.on(x)[0].mark_as_output("y"), "cuda", tmp_path, "shifted")
    driver.run_to_phase(module, "planned")  # the compiler is usable


@pytest.mark.parametrize("target", TARGETS)
def test_its_template_compiles_for_gpus(mine, text: Path, tmp_path: Path, target: str):
    module, _ = driver.read_module(text)
    driver.run_to_phase(module, "planned", CompileOptions(target))
    files = driver.emit(module).joined()
    (name,) = [name for name in files if "mine_rotate" in name]
    assert f'"{MINE}"' in files[name].replace("\\137", "_")
    build_library({name: files[name]}, target_of(module), tmp_path)


def test_a_row_for_pytorch(mine):
    torch = pytest.importorskip("torch")
    from ait_mlir.importers.torch import import_program

    with torch.library._scoped_library("mine", "FRAGMENT") as library:
        library.define("rotate(Tensor x, *, float angle) -> Tensor")
        library.impl(
            "rotate", lambda x, *, angle: torch.from_numpy(mine.Rotate.reference(x.numpy(), angle=angle)), "CPU"
        )
        torch.library.register_fake("mine::rotate", lambda x, *, angle: torch.empty_like(x), lib=library)

        class Model(torch.nn.Module):
            def forward(self, x):
                return torch.ops.mine.rotate(x.exp(), angle=0.25)

        imported = import_program(torch.export.export(Model(), (torch.randn(4, 8),)))
    assert "mine.rotate %0 angle 0.25 : !ait.tensor<4 x 8 x f32>" in str(imported.module)


def test_what_it_computes_of_constants_is_folded_by_its_reference(mine, tmp_path: Path):
    text = """ait.graph @f(%x: !ait.tensor<2 x 4 x f32>) {
      %c = ait.constant [1, 2, 3, 4, 5, 6, 7, 8] : !ait.tensor<2 x 4 x f32>
      %r = mine.rotate %c angle 0.5 : !ait.tensor<2 x 4 x f32>
      %y = ait.add %x, %r : !ait.tensor<2 x 4 x f32>
      ait.output "y" %y : !ait.tensor<2 x 4 x f32>
    }"""
    path = tmp_path / "m.mlir"
    path.write_text(text)
    module, _ = driver.read_module(path)
    driver.run_to_phase(module, "planned", folding=Folding({}, make_target("cpu"), None, driver.kernel_value))
    assert "mine.rotate" not in str(module)
    assert f"{float(np.float32(np.cos(0.5) - 2 * np.sin(0.5)))!r}, " in str(module)


@pytest.mark.parametrize(
    ("fold", "is_shared", "constants"),
    [(True, False, ["folded.w"]), (True, True, ["w"]), ("load", False, ["w"]), (False, False, ["w"])],
)
def test_params_are_folded_through_it_where_nothing_else_reads_them(
    mine, tmp_path: Path, fold: bool | Literal["load"], is_shared: bool, constants: list[str]
):
    """The artifact has no definition of the operator, so a folded param cannot be set again."""
    weight = Tensor([4, 8], dtype="float32", name="w")
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    y = mine.Rotate.on(weight, angle=0.5) + x
    y = (y + weight if is_shared else y).mark_as_output("y")
    data = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    model = compile_model(y, "cpu", tmp_path, "w", constants={"w": data}, do_constant_folding=fold)
    assert model.get_constant_names(unbound_constants_only=False) == constants
    assert model.get_constant_names(False, constant_folding_only=True) == []
    assert any("mine_rotate" in p.name for p in (tmp_path / "w").iterdir()) == (constants == ["w"])

    def check(data):
        found = model.run({"x": np.zeros_like(data)}, {"y": np.empty_like(data)})["y"]
        want = mine.Rotate.reference(data, angle=0.5) + (data if is_shared else 0)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)

    check(data)
    if constants == ["w"]:
        model.set_constant("w", data * 2)
        check(data * 2)
    else:
        with pytest.raises(InputError, match="the model has no constant 'w'"):
            model.set_constant("w", data * 2)


def test_an_installed_package_is_loaded(tmp_path: Path, text: Path):
    package = tmp_path / "site"
    (package / "mine_ops-1.0.dist-info").mkdir(parents=True)
    (package / "mine_ops.py").write_text(MINE.read_text())
    (package / "broken_ops.py").write_text("1 / 0\n")
    info = package / "mine_ops-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-ops\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ait_mlir.operators]\nbroken = broken_ops\nmine = mine_ops\n")
    root = Path(outside.__file__).parents[1]
    code = f"import sys; sys.path[:0] = [{str(package)!r}, {str(root)!r}]\nfrom ait_mlir.tools.ait_opt import main\nsys.exit(main([{str(text)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mine.rotate %n angle 0.5" in done.stdout
    assert "the operators 'broken_ops' were not loaded: ZeroDivisionError" in done.stderr


def test_installed_packages_are_looked_for_when_a_text_names_their_dialect(tmp_path: Path, text: Path):
    own = tmp_path / "own.mlir"
    own.write_text('ait.graph @g(%x: !ait.tensor<4 x f32>) {\n  ait.output "y" %x : !ait.tensor<4 x f32>\n}\n')
    code = "import sys\nfrom ait_mlir.tools.ait_opt import main\nmain(sys.argv[1:])\nprint('importlib.metadata' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(outside.__file__).parents[1])}
    run = [sys.executable, "-c", code]
    for file, is_searched in ((own, False), (text, True)):
        done = subprocess.run([*run, str(file)], capture_output=True, text=True, check=False, env=env)
        assert done.stdout.splitlines()[-1] == str(is_searched), done.stderr


def test_the_table_of_ops_has_it(capsys):
    assert cli.main(["inspect", "--ops", "--load", str(MINE)]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert rows["mine.rotate"][1:6] == ["-", "NumPy", "outside", "outside", "outside"]
    assert rows["mine.cube"][1:6] == ["-", "NumPy", "native", "native", "native"]
    assert rows["mine.shifted"][3:6] == ["outside", "none", "none"] and rows["mine.shifted"][-1].startswith(str(MINE))


def test_the_page_of_one_op(mine, capsys):
    assert cli.main(["inspect", "--ops", "mine.cube", "--load", str(MINE)]) == 0
    printed = capsys.readouterr().out
    assert "properties: scale\n" in printed and "cpu: native" in printed and "tests/outside/mine.py:" in printed
    assert cli.main(["inspect", "--ops", "gemm"]) == 0
    printed = capsys.readouterr().out
    assert "= ait.gemm" in printed and "dtypes: f16" in printed and "gemm_rcr_bias" in printed


def test_a_workspace_is_part_of_the_plan(tmp_path: Path):
    code = """
void twice(const ait::Context&, ait::Tensor<const float, 1> x, ait::Tensor<float, 1> y, void* workspace) {
  float* scratch = static_cast<float*>(workspace);
  for (int64_t i = 0; i < x.elements(); ++i) scratch[i] = 2 * x[i];
  for (int64_t i = 0; i < x.elements(); ++i) y[i] = scratch[x.elements() - 1 - i];
}
"""

    @operator
    class Twice(Op):
        """Twice the elements, backwards."""

        name = "mine.twice"
        x = operand_def(TensorType)
        y = result_def(TensorType)
        kernels: ClassVar = {"cpu": Cpp(code, workspace=lambda op: op.x.type.byte_size())}

        def infer_result_types(self):
            return [self.x.type]

        @staticmethod
        def reference(x):
            return 2 * x[::-1]

    x = Tensor([IntVar([0, 99], name="n")], dtype="float32", name="x", is_input=True)
    y = Twice.on(Twice.on(x)).mark_as_output("y")
    module = build_module(y)
    driver.run_to_phase(module, "planned")
    assert "workspace(%" in str(module)
    model = compile_model(y, "cpu", tmp_path, "twice")
    for n in (0, 7):
        data = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(model.run({"x": data}, {"y": np.empty_like(data)})["y"], 4 * data)
