"""The Jinja2 templates of generated C++: each file of `templates/` shows the generated C++.

A template prints only `CppText`, which its filters return: `{{ name | cstr }}`, `{{ size | dim(dims) }}`. A
value without a filter, an unknown filter and an undefined variable are errors with the template and the line.
Templates are files of the package, never text of a user.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ait_mlir.lowering.cpp import (
    CppText,
    comment,
    cstr,
    dim,
    element_type,
    header,
    identifier,
    indented,
    number,
    numbers,
)

if TYPE_CHECKING:
    import jinja2

FILTERS: Mapping[str, Callable[..., CppText]] = {
    "comment": comment,
    "cstr": cstr,
    "dim": dim,
    "element_type": element_type,
    "header": header,
    "id": identifier,
    "indented": indented,
    "number": number,
    "numbers": numbers,
}
TEMPLATES = Path(__file__).parent / "templates"


class TemplateError(RuntimeError):
    """A template and its values do not fit together: a bug of the compiler, independent of the model."""


def render(name: str, /, **values: Any) -> CppText:
    """The C++ of the template `name` of `templates/`.

    Raises `TemplateError` with template and line for a value without a filter, a value that a filter refuses, and a
    variable that is missing in `values`.
    """
    return render_with(_environment(TEMPLATES), name, values)


def render_with(environment: jinja2.Environment, name: str, values: Mapping[str, Any]) -> CppText:
    """As `render`, with the templates of an environment made by `environment_of`."""
    import jinja2

    try:
        return CppText(environment.get_template(name).render(values))
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{error.name}:{error.lineno}: {error.message}") from error
    except jinja2.TemplateNotFound as error:
        raise TemplateError(f"there is no template {error.name!r}") from error
    except (jinja2.UndefinedError, TypeError, ValueError, AttributeError) as error:
        raise TemplateError(f"{_place(error, name)}: {error}") from error


def environment_of(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """A strict environment: its only filters are `FILTERS` and `length`, and it prints only `CppText`."""
    import jinja2

    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        finalize=_only_cpp,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        autoescape=False,
    )
    environment.globals.clear()
    environment.globals["range"] = range
    environment.filters.clear()
    environment.filters.update({name: _given(make) for name, make in FILTERS.items()})
    environment.filters["length"] = len
    return environment


@functools.cache
def _environment(folder: Path) -> jinja2.Environment:
    import jinja2

    from ait_mlir.host.sources import package_digest
    from ait_mlir.lowering.compiled_templates import CompiledTemplates

    environment = environment_of(jinja2.FileSystemLoader(folder))
    if (digest := package_digest()) is not None:
        environment.bytecode_cache = CompiledTemplates(digest)
    return environment


def _only_cpp(value: object) -> object:
    """`value` if it is `CppText`, which may be printed. Raises `TypeError` for other values."""
    _refuse_undefined(value)
    if type(value) is not CppText:
        filters = ", ".join(sorted(FILTERS))
        raise TypeError(f"{value!r} is not C++ text; it needs one of the filters {filters}")
    return value


def _given(make: Callable[..., CppText]) -> Callable[..., CppText]:
    """The filter `make`, with an error that names an undefined variable."""

    def checked(*values: object) -> CppText:
        for value in values:
            _refuse_undefined(value)
        return make(*values)

    return checked


def _refuse_undefined(value: object) -> None:
    import jinja2

    if isinstance(value, jinja2.Undefined):
        str(value)  # raises, and says which variable it is


def _place(error: BaseException, name: str) -> str:
    """The template and line of an error, `kernel.j2:12`: Jinja2 puts places of templates into the traceback."""
    place, frame = name, error.__traceback__
    while frame is not None:
        path = Path(frame.tb_frame.f_code.co_filename)
        if path.suffix == ".j2" or frame.tb_frame.f_code.co_filename == "<template>":
            place = f"{path.name if path.suffix else name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place
