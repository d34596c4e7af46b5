"""Times every algorithm that cuBLASLt lists for the products of BERT, ViT and Llama, in its own order.

    python3 benchmarks/device/cublaslt_algorithms.py [--build-only]

Needs g++, the CUDA toolkit and cuBLASLt. f16, through the runtime's service, in a CUDA graph, over weights that rotate.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ait_mlir.lowering.toolchain import cuda_home, find_cxx
from ait_mlir.runtime.loading import cublaslt_candidates

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-only", action="store_true", help="compile, run nothing")
    options = parser.parse_args()
    runtime, home = ROOT / "runtime", cuda_home()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "algorithms"
        sources = [
            str(Path(__file__).with_suffix(".cc")),
            str(runtime / "src/gpu/gemm_lt.cc"),
            str(runtime / "src/dynamic_library.cc"),
        ]
        flags = ["-std=c++17", "-O2", f"-I{runtime}/include", f"-I{runtime}/src", f"-I{home}/include"]
        places = [f"-L{path}" for name in ("lib64", "lib") if (path := home / name).is_dir()]
        link = [*places, "-lcudart_static", "-lrt", "-lpthread", "-ldl"]
        subprocess.run([find_cxx(), *flags, *sources, "-o", str(program), *link], check=True)
        if options.build_only:
            return 0
        return subprocess.run([str(program)], env=os.environ | {"AIT_CUBLASLT": cublaslt_candidates()[0]}).returncode


if __name__ == "__main__":
    sys.exit(main())
