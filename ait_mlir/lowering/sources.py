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
class KernelText:
    """One kernel function: its name, the start of its file, its text and its body.

    `@ID@` in the text stands for a digest of `definitions`, so that equal definitions have equal names in all files.
    """

    name: str
    headers: tuple[str, ...]
    definitions: str
    function: str
    body: str
    one_instance: bool = False
    file: str = ""

    @property
    def template(self) -> object:
        """The key of functions that are compiled together: they call one instance of a template."""
        return (
            (self.headers, self.file, self.definitions, self.body.partition("(")[0]) if self.one_instance else self.name
        )


def kernel_file(kernels: Sequence[KernelText]) -> str:
    """The text of a file with kernel functions of one `template`."""
    first = kernels[0]
    unique = _digest(first.definitions)[:8]

    def finished(code: str) -> CppText:
        return laid_out(CppText(code.replace("@ID@", unique)))

    return render(
        "kernel.j2",
        headers=list(first.headers),
        file=CppText(first.file.replace("@ID@", unique)),
        definitions=finished(first.definitions.replace("};\nstruct ", "};\n\nstruct ")) if first.definitions else "",
        functions=[finished(kernel.function) for kernel in kernels],
    )


_DEFINITIONS = re.compile(r"(?<=\n)\nnamespace \{\n\n.*?\n\}  // namespace\n", re.DOTALL)
"""The definitions of a kernel file, as `templates/kernel.j2` has them: after an empty line."""


def side_by_side(files: Iterable[str]) -> str:
    """The texts of files as one file. Files with equal definitions, which have equal names, have them once."""
    seen: set[str] = set()

    def once(found: re.Match[str]) -> str:
        text = "" if found[0] in seen else found[0]
        seen.add(found[0])
        return text

    return "\n".join(_DEFINITIONS.sub(once, text) for text in files)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass
class Source:
    """The C++ of one program, by file name, and the literals in its constants."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    """The file of the program, and one for each kernel function."""
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])
    kernels: dict[str, KernelText] = field(default_factory=dict[str, KernelText])
    """The kernel functions by their files."""

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


def kernel_text(
    name: str,
    what: str,
    emission: Emission,
    ins: Sequence[Arg],
    outs: Sequence[Arg],
    dims: Mapping[str, str],
    one_instance: bool = False,
    fields: Sequence[str] | None = None,
) -> KernelText:
    """The text of one kernel function, whose name contains a digest of it. `one_instance` is `Kernel.one_instance`.

    A function with `fields` reads all sizes from its last argument, a struct; its text contains no sizes.
    """
    math = ("ait/math.h",) if emission.definitions else ()  # the functions that regions call
    function = render(
        "kernel_function.j2",
        what=what,
        function=CppText("@FN@"),
        ins=ins,
        outs=outs,
        dims=dims,
        body=CppText(emission.body),
        fields=None if fields is None else grouped(fields),
        names=identifiers(emission.body),
    )
    headers = tuple(dict.fromkeys(("ait/context.h", "ait/dims.h", "ait/types.h", *math, *emission.includes)))
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
    )
