"""Run the text tests as processes: `lit lit_tests`. pytest runs the same files in one process (tests/lit)."""

import os
import shlex
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
python = shlex.quote(sys.executable)

config.name = "ait_mlir"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.excludes = ["Inputs"]  # noqa: F821
config.test_source_root = os.path.dirname(os.path.abspath(__file__))  # noqa: F821
config.test_exec_root = os.path.join(root, "build", "lit")  # noqa: F821
config.environment["PYTHONPATH"] = root  # noqa: F821
config.substitutions += [  # noqa: F821
    (r"\bait-opt\b", f"{python} -m ait_mlir.tools.ait_opt"),
    (r"\bfilecheck\b", f"{python} -m filecheck"),
]
