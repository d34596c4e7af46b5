"""The templates of generated C++: only text that a filter made is printed, and mistakes name template and line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jinja2
import pytest

from ait_mlir.dims import parse
from ait_mlir.driver import emit, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering import template as templates
from ait_mlir.lowering.cpp import CppText, identifier
from ait_mlir.lowering.template import TEMPLATES, TemplateError, environment_of, render, render_with

ROOT = Path(__file__).parents[2]


def _render(template: str, **values: object) -> str:
    return render_with(environment_of(jinja2.DictLoader({"t.j2": template})), "t.j2", values)


def test_filters_make_what_is_printed():
    template = (
        "f({{ name | id }}, {{ n | number }}, {{ text | cstr }}, {{ size | dim(dims) }});  {{ text | comment }}\n"
    )
    printed = _render(template, name="v1", n=3, text='"\\\n', size=parse("2*b"), dims={"b": "d0"})
    assert printed == 'f(v1, 3, "\\042\\134\\012", (2 * d0));  // "..\n'
    assert type(render("statements.j2", statements=[], dims={}, kernel_dims=[])) is CppText


@pytest.mark.parametrize("change", [None, b"", b"other", "the package"])
def test_the_code_of_templates_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: bytes | str | None
) -> None:
    """For these sources of the package, and undamaged; else it is made again."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    made: list[str] = []
    compile_template = jinja2.Environment.compile

    def counted(self: jinja2.Environment, source: str, name: str, filename: str) -> object:
        made.append(name)
        return compile_template(self, source, name, filename)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    for _ in range(2):
        templates._environment.cache_clear()
        assert render("sizes.j2", name=identifier("s"), fields=[]).endswith("};\n")
        kept = [*tmp_path.rglob("templates/*")]
        assert kept and {path.parent.stat().st_mode & 0o777 for path in kept} == {0o700}
        for path in kept if isinstance(change, bytes) else []:
            path.write_bytes(change)
        if isinstance(change, str):
            monkeypatch.setattr("ait_mlir.host.sources.package_digest", lambda: "another")
    templates._environment.cache_clear()
    assert made == ["sizes.j2"] * (1 if change is None else 2)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("\n{{ name }}", "t.j2:2: 'v1' is not C\\+\\+ text; it needs one of the filters"),
        ("{{ name ~ 'x' }}", "t.j2:1: 'v1x' is not"),
        ("{{ (name | id) + (name | id) }}", "t.j2:1: 'v1v1' is not"),
        ("{% set x %}{{ name | id }}{% endset %}\n{{ x }}", "t.j2:2: 'v1' is not"),
        ("{{ 'text of the template' }}", "t.j2:1: 'text of the template' is not"),
        ("{{ n }}", "t.j2:1: 3 is not"),
        ("\n\n{{ missing | id }}", "t.j2:3: .*'missing' is undefined"),
        ("{{ missing }}", "t.j2:1: 'missing' is undefined"),
        ("{% for x in missing %}{% endfor %}", "t.j2:1: 'missing' is undefined"),
        ("{{ name.missing | cstr }}", "t.j2:1: .*no attribute 'missing'"),
        ("{{ bad | id }}", "t.j2:1: 'v; system\\(\\)' is not a C\\+\\+ identifier"),
        ("{{ name | number }}", "t.j2:1: .*'str' object"),
        ("{{ bad | header }}", "t.j2:1: .* is not a header of the project"),
        ("{{ name | indented }}", "t.j2:1: only C\\+\\+ can be indented, found 'v1'"),
        ("{{ size | dim({'b': bad}) }}", "t.j2:1: 'v; system\\(\\)' is not a C\\+\\+ identifier"),
        ("{{ name | safe }}", "t.j2:1: No filter named 'safe'"),
        ("\n{% if %}", "t.j2:2: Expected an expression"),
        ("{{ name.__class__ | id }}", "t.j2:1: "),
    ],
)
def test_what_a_template_may_not_print(template: str, message: str):
    with pytest.raises(TemplateError, match=message):
        _render(template, name="v1", n=3, bad="v; system()", size=parse("b"))


def test_a_value_that_is_not_given_is_named():
    with pytest.raises(TemplateError, match=r"statements\.j2:2: 'statements' is undefined"):
        render("statements.j2", dims={})
    with pytest.raises(TemplateError, match=r"there is no template 'none\.j2'"):
        render("none.j2")


def test_concatenation_forgets_that_text_is_cpp():
    assert type(identifier("a") + identifier("b")) is str
    assert type(f"{identifier('a')}") is str


NAMES = """ait.graph @"{{ 7*191 }}"("{% raise %}{{ 7*191 }}" %x: !ait.tensor<n x f32>) dims {n = 1 to 4} {
  %w = ait.param "{{ ''.__class__ }}{# 7*191 #}" : !ait.tensor<f32>
  %y = ait.mul %x, %w : !ait.tensor<n x f32>
  ait.output "{{ 7*191 }}" %y : !ait.tensor<n x f32>
}"""


def test_names_from_ir_are_never_templates():
    module = parse_text(context(), NAMES)
    run_to_phase(module, "planned")
    text = emit(module).files["program.cc"]
    assert '"{% raise %}{{ 7*191 }}"' in text
    assert '"{{ \\047\\047.__class__ }}{# 7*191 #}"' in text
    assert "1337" not in text


PATTERNS = """pdl.pattern @"{{ 7*191 }}" : benefit(1) {
  %t = type
  %x = operand : %t
  %op = operation "ait.relu" (%x : !pdl.value) -> (%t : !pdl.type)
  rewrite %op { replace %op with (%x : !pdl.value) }
}"""


def test_pattern_files_and_dims_reach_neither_jinja2_nor_sympy(tmp_path: Path):
    """Both packages are replaced by modules that cannot be imported."""
    (tmp_path / "p.mlir").write_text(PATTERNS)
    (tmp_path / "g.mlir").write_text(NAMES.replace("ait.mul %x, %w", "ait.relu %x").replace("n x f32>", "(2*n) x f32>"))
    code = (
        "import sys; sys.modules['jinja2'] = sys.modules['sympy'] = None\n"
        "from ait_mlir.tools.ait_opt import main\n"
        f"sys.exit(main(['-p', 'apply-patterns{{file=\"{tmp_path}/p.mlir\"}}', '{tmp_path}/g.mlir']))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "ait.relu" not in result.stdout and "{{ 7*191 }}" in result.stdout


def test_every_template_is_printed():
    """Templates that nothing prints or includes are not kept."""
    package = TEMPLATES.parents[1]
    code = "".join(
        p.read_text() for p in (*TEMPLATES.glob("*.j2"), *package.glob("*.py"), *package.glob("lowering/*.py"))
    )
    assert [p.name for p in TEMPLATES.glob("*.j2") if f'"{p.name}"' not in code] == []
