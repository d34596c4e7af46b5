"""Installs the library that runs models from C and C++ programs: `runtime/include/ait/model.h`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ait_mlir.host.cache import cache_dir, private_folder
from ait_mlir.host.files import copy_atomic, write_atomic
from ait_mlir.lowering.build import build_deploy_library, build_static_library
from ait_mlir.lowering.target import TargetKind
from ait_mlir.lowering.toolchain import cpp_root
from ait_mlir.version import __version__

_HEADERS = ("model.h", "model_abi.h")
_SYSTEM_LIBRARIES: dict[TargetKind, str] = {
    "cpu": "-ldl -lpthread",
    "cuda": "-lcudart_static -lrt -ldl -lpthread",
    "rocm": "-lamdhip64 -ldl -lpthread",
}
"""Further libraries that a program with the static library must link."""


def install_runtime(kind: TargetKind, prefix: Path | None = None, static: bool = False) -> Path:
    """Build the library for a target and install it under `prefix`, by default a folder of the cache; returns the
    folder.

    `include/ait/model.h` is the interface. The files in `lib/cmake/ait` and `lib/pkgconfig` use paths relative to
    themselves, so the whole prefix can be moved. For the CPU, OpenBLAS is installed beside the library. With `static` a
    static library is installed, too. Raises like `build_library`.
    """
    library = build_deploy_library(kind)
    root = private_folder(cache_dir() / "prefix") if prefix is None else prefix.absolute()
    files = cpp_root() / "deploy"
    for folder in ("include/ait", "lib/cmake/ait", "lib/pkgconfig"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in _HEADERS:
        copy_atomic(cpp_root() / "include" / "ait" / name, root / "include" / "ait" / name)
    copy_atomic(library, root / "lib" / f"libait_{kind}.so")
    if kind == "cpu" and (openblas := _openblas()) is not None:
        copy_atomic(openblas, root / "lib" / "libscipy_openblas.so")
    copy_atomic(files / "aitConfig.cmake", root / "lib" / "cmake" / "ait" / "aitConfig.cmake")
    texts = {"aitConfigVersion.cmake.in": "cmake/ait/aitConfigVersion.cmake", "ait.pc.in": f"pkgconfig/ait-{kind}.pc"}
    if static:
        copy_atomic(build_static_library(kind), root / "lib" / f"libait_{kind}.a")
        texts["ait-static.pc.in"] = f"pkgconfig/ait-{kind}-static.pc"
    for template, place in texts.items():
        text = (files / template).read_text().replace("@version@", __version__).replace("@target@", kind)
        text = text.replace("@system_libraries@", _SYSTEM_LIBRARIES[kind])
        write_atomic(root / "lib" / place, text.encode())
    return root


def _openblas() -> Path | None:
    """The OpenBLAS of the pip package."""
    spec = importlib.util.find_spec("scipy_openblas32")
    folders = [Path(place) / "lib" for place in spec.submodule_search_locations or []] if spec else []
    return next((path for folder in folders for path in sorted(folder.glob("libscipy_openblas*.so"))), None)
