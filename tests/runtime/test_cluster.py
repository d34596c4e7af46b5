"""Building on a cluster: two nodes of Ray on this machine, each with a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
from ray.cluster_utils import Cluster

from ait_mlir.errors import CompileError, InputError, ToolchainError
from ait_mlir.host.cache import FOLDER
from ait_mlir.lowering import build, ray_cluster, toolchain
from ait_mlir.lowering.build import build_library, refused_sources
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.ray_cluster import compiling_on
from ait_mlir.tools.cli import main

CPU = Target("cpu", "native")
STORE = 80 << 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two nodes with one CPU each, and a connection to it. The cache of node N is `nodeN`."""
    home = tmp_path_factory.mktemp("caches")
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    first, second = ({"AIT_CACHE_DIR": str(home / name), "HIPCXX": "no-hipcc"} for name in ("node1", "node2"))
    made = Cluster(initialize_head=True, head_node_args=node | {"env_vars": first})
    made.add_node(num_cpus=1, object_store_memory=STORE, env_vars=second)
    made.home = home
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(autouse=True)
def optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """With -O0, g++ keeps unused constants of precompiled headers in objects."""
    monkeypatch.setenv("AIT_OPTIMIZE", "1")


def objects(home: Path) -> set[str]:
    return {path.name for path in (home / FOLDER / "objects").rglob("*.o")}


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.full)])
def test_kernels_over_two_nodes_make_the_library_of_one_machine(
    count: int, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = objects(cluster.home / "node1") | objects(cluster.home / "node2")
    sources = {
        f"k_{i}.cc": f'#include "size.h"\nextern "C" int f{i}() {{ return {i} + kSize; }}\n' for i in range(count)
    }
    sources["size.h"] = f"constexpr int kSize = {count};\n"
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "alone"))
    alone = build_library(sources, CPU, tmp_path / "w1").read_bytes()
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "caller"))
    with compiling_on(cluster.address):
        assert build_library(sources, CPU, tmp_path / "w2").read_bytes() == alone
    there = [objects(cluster.home / name) - before for name in ("node1", "node2")]
    assert all(there) and set.union(*there) == objects(tmp_path / "alone") == objects(tmp_path / "caller")


@pytest.mark.full
@pytest.mark.parametrize("kind, arch", [("cpu", "native"), ("cuda", "sm_90a")])
def test_an_artifact_is_that_of_one_machine(
    kind: toolchain.TargetKind, arch: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For CUDA some kernels are joined."""
    try:
        toolchain.toolchain(kind, arch)
    except ToolchainError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("AIT_BUILD_JOBS", "1")
    command = ["compile", "examples/ffn.mlir", "--target", kind, "--arch", arch, "--weights", "random", "-o"]
    for name, more in (("alone", []), ("caller", ["--ray", cluster.address])):
        monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / name))
        assert main([*command, str(tmp_path / f"{name}.ait"), *more]) == 0
    assert (tmp_path / "alone.ait").read_bytes() == (tmp_path / "caller.ait").read_bytes()
    assert objects(tmp_path / "caller") <= objects(cluster.home / "node1") | objects(cluster.home / "node2")


def test_a_refused_source_is_told_as_on_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    sources = {"a.cc": "int a() { return 1; }\n", "bad.cc": '#include "b.h"\n', "b.h": "int b() { return nothing; }\n"}
    found: list[str] = []
    for address in ("", cluster.address):
        with pytest.raises(CompileError) as caught, compiling_on(address):
            build_library(sources, CPU, tmp_path / "w")
        found.append(str(caught.value))
    assert found[0] == found[1] and str(tmp_path / "w" / "bad.cc") in found[0] and "b.h:1:18: error" in found[0]
    with compiling_on(cluster.address):
        assert refused_sources(sources, CPU, tmp_path / "w") == {"bad.cc"}


def test_no_machine_with_the_toolchain_is_an_error_that_says_what_each_has(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPATH", "/elsewhere")  # the nodes were started without it
    with (
        pytest.raises(ToolchainError, match=r"no machine of the Ray cluster .* makes objects for cpu native") as caught,
        compiling_on(cluster.address),
    ):
        build_library({"a.cc": "int a;"}, CPU, tmp_path / "w")
    assert str(caught.value).count("its CPU or its environment variables for compilers differ from those of") == 2


def test_a_compiler_that_only_the_cluster_has_compiles_and_links(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"a.cc": 'extern "C" int only_there() { return 7; }\n', "b.cc": "int only_b;\n"}
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "alone"))
    alone = build_library(sources, CPU, tmp_path / "w1").read_bytes()
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "caller"))
    monkeypatch.setattr(toolchain, "_find", no_compiler)
    with compiling_on(cluster.address):
        assert build_library(sources, CPU, tmp_path / "w2").read_bytes() == alone
        with pytest.raises(ToolchainError, match="was not found; nor has any machine of the Ray cluster") as caught:
            build_library(sources, Target("rocm", "gfx90a"), tmp_path / "w2")
    assert str(caught.value).count("the HIP compiler (no-hipcc) was not found") == 2


def no_compiler(*_: object) -> Path:
    raise ToolchainError("a C++ compiler was not found")


@pytest.mark.full
def test_work_of_a_builder_that_is_killed_is_done_elsewhere(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third node compiles, too, and ends while all nodes compile."""
    slow = "#include <algorithm>\n#include <functional>\n#include <regex>\n#include <vector>\n"
    sources = {
        f"s{i}.cc": f"{slow}bool s{i}(const char* t) {{ return std::regex_match(t, std::regex(\"{i}\")); }}\n"
        for i in range(6)
    }
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE, env_vars={"AIT_CACHE_DIR": str(tmp_path / "third")})
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "caller"))
    nodes, keep = [node], build.keep_object

    def killing(*args: Any) -> None:
        keep(*args)
        while nodes:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    monkeypatch.setattr(build, "keep_object", killing)
    with compiling_on(cluster.address):
        library = build_library(sources, CPU, tmp_path / "w1").read_bytes()
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "alone"))
    assert build_library(sources, CPU, tmp_path / "w2").read_bytes() == library
    assert objects(tmp_path / "caller") == objects(tmp_path / "alone")
    assert not list((tmp_path / "caller" / FOLDER / "tmp").iterdir())


@pytest.mark.parametrize(
    "address, message",
    [
        ("here", "the address of a Ray cluster is 'here', expected auto, HOST:PORT or ray://HOST:PORT"),
        ("127.0.0.1:1", "no Ray cluster answers at '127.0.0.1:1': "),
        ("ray://127.0.0.1:99999", "the address of a Ray cluster is"),
    ],
)
def test_an_address_without_a_cluster_is_an_error(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ray_cluster._check_address(address)
