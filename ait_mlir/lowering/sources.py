"""The C++ files of a program, and which kernel functions share a file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ait_mlir.lowering.cpp import CppText, identifier
from ait_mlir.lowering.kernels import Arg, Emission
from ait_mlir.lowering.layout import grouped, identifiers, laid_out
from ait_mlir.lowering.tables import Literal
from ait_mlir.lowering.template import render


@dataclass(frozen=True)
class Header:
    """A header of the program, with one struct or a few functors. Its name contains a digest of its text, so equal
    definitions have one name in all files and programs."""

    name: str
    """The name of the struct, or of the first functor."""
    text: str

    @property
    def file(self) -> str:
        return f"{self.name}.h"


def sizes_header(fields: Iterable[str]) -> Header:
    """The struct of the sizes that a kernel reads as `sizes.FIELD`."""
    lines = grouped(fields)
    name = f"sizes_{_digest(str(lines))[:8]}"
    return Header(name, laid_out(render("sizes.j2", name=identifier(name), fields=lines)))


_FIRST = re.compile(r"\w+_@ID@")


@dataclass(frozen=True)
class KernelText:
    """One kernel function: its name, the headers of its file, its text and its body.

    `@ID@` in the text stands for a digest of `definitions`, so that equal definitions have equal names in all files.
    """

    name: str
    headers: tuple[str, ...]
    definitions: str
    function: str
    body: str
    one_instance: bool = False
    file: str = ""
    sizes: Header | None = None

    @property
    def template(self) -> object:
        """The key of functions that are compiled together: they call one instance of a template."""
        return (
            (self.headers, self.file, self.definitions, self.body.partition("(")[0]) if self.one_instance else self.name
        )

    @property
    def functors(self) -> Header | None:
        """The header of the definitions."""
        if not self.definitions:
            return None
        first = _FIRST.search(self.definitions)
        assert first is not None, f"definitions without a name that contains @ID@: {self.definitions}"
        spaced = self.definitions.replace("};\nstruct ", "};\n\nstruct ")
        return Header(
            self.finished(first[0]),
            render(
                "functors.j2",
                headers=element_headers(self.definitions),
                definitions=laid_out(self.finished(spaced)),
            ),
        )

    @property
    def own_headers(self) -> list[Header]:
        """The headers of the program that the file includes."""
        return [header for header in (self.functors, self.sizes) if header is not None]

    def finished(self, code: str) -> CppText:
        """Code with the names of the definitions."""
        return CppText(code.replace("@ID@", _digest(self.definitions)[:8]))


def kernel_file(kernels: Sequence[KernelText]) -> str:
    """The text of a file with kernel functions of one `template`."""
    first = kernels[0]
    return render(
        "kernel.j2",
        headers=[*first.headers, *(header.file for header in first.own_headers)],
        file=first.finished(first.file),
        functions=[laid_out(kernel.finished(kernel.function)) for kernel in kernels],
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass
class Source:
    """The C++ of one program, by file name, and the literals in its constants."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    """The file of the program, one for each kernel function, and the headers that these include."""
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])
    kernels: dict[str, KernelText] = field(default_factory=dict[str, KernelText])
    """The kernel functions by their files."""

    def add(self, kernel: KernelText, suffix: str) -> None:
        """Add the file of a kernel function, and its headers."""
        self.files[kernel.name + suffix] = kernel_file([kernel])
        self.files |= {header.file: header.text for header in kernel.own_headers}
        self.kernels[kernel.name + suffix] = kernel

    def joined(self) -> dict[str, str]:
        """The files; functions that call the same instance of a template share one, so that it is compiled once."""
        groups: dict[object, list[str]] = {}
        for name, kernel in self.kernels.items():
            groups.setdefault((name.rpartition(".")[2], kernel.template), []).append(name)
        result = {name: text for name, text in self.files.items() if name not in self.kernels}
        for names in groups.values():
            kernels = sorted((self.kernels[name] for name in names), key=lambda kernel: kernel.name)
            text = kernel_file(kernels)
            alone = names[0] if len(names) == 1 else f"kernels_{_digest(text)}.{names[0].rpartition('.')[2]}"
            result[alone] = text
        return result


def element_headers(code: str) -> tuple[str, ...]:
    """The headers of the element types in C++ code. That of 8-bit floats depends on the architecture."""
    return ("ait/types.h", "ait/float8.h") if "ait::float8_" in code else ("ait/types.h",)


def kernel_text(
    name: str,
    what: str,
    emission: Emission,
    ins: Sequence[Arg],
    outs: Sequence[Arg],
    dims: Mapping[str, str],
    one_instance: bool = False,
    sizes: Header | None = None,
) -> KernelText:
    """The text of one kernel function, whose name contains a digest of it. `one_instance` is `Kernel.one_instance`.

    A function with `sizes` reads all sizes from its last argument, a struct; its text contains no sizes.
    """
    function = render(
        "kernel_function.j2",
        what=what,
        function=CppText("@FN@"),
        ins=ins,
        outs=outs,
        dims=dims,
        body=CppText(emission.body),
        sizes=None if sizes is None else sizes.name,
        names=identifiers(emission.body),
    )
    code = "".join((emission.file, emission.definitions, function))
    headers = tuple(dict.fromkeys(("ait/context.h", "ait/dims.h", *element_headers(code), *emission.includes)))
    digest = _digest("".join((*headers, emission.file, emission.definitions, function)))
    named = identifier(f"k_{name}_{digest}")
    return KernelText(
        named,
        headers,
        emission.definitions,
        function.replace("@FN@", named),
        emission.body,
        one_instance,
        emission.file,
        sizes,
    )
