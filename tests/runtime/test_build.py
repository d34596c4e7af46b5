"""Building libraries: the cache, errors, several processes, killed builds."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ait_mlir.errors import CompileError, RunError, ToolchainError
from ait_mlir.host.cache import DIGEST, FOLDER, cache_dir, is_kept
from ait_mlir.host.files import atomic_file, write_atomic
from ait_mlir.lowering import build, ninja, toolchain
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.runtime import Model
from ait_mlir.runtime.loading import runtime_library

CPU = Target("cpu", "native")
SOURCE = 'extern "C" int answer() { return 42; }\n'


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / FOLDER


def objects(cache: Path) -> list[Path]:
    return sorted((cache / "objects").rglob("*.o"))


@pytest.mark.usefixtures("fresh_cache")
def test_the_second_build_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_library({"a.cc": SOURCE}, CPU, tmp_path / "w")
    monkeypatch.setattr(build, "run_compilers", lambda *_: pytest.fail("compiled again"))
    second = build_library({"a.cc": SOURCE}, CPU, tmp_path / "w2")
    assert first.read_bytes() == second.read_bytes() and first != second


@pytest.mark.usefixtures("fresh_cache")
def test_a_build_that_all_models_share_is_told_when_it_begins(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = toolchain.toolchain("cpu", "native")
    label = f"building the library{ninja.ONCE}"
    for told in (f"{label}\n", ""):
        build.build_with(tools, {"a.cc": SOURCE}, tmp_path / "w", label)
        assert capfd.readouterr() == ("", told)
    build_library({"a.cc": SOURCE + SOURCE.replace("answer", "question")}, CPU, tmp_path / "w")
    assert capfd.readouterr() == ("", "")


def test_cuda_sources_do_not_read_the_special_functions_of_the_standard_library() -> None:
    flag = next(f for f in toolchain._CUDA_FLAGS if f.startswith("-D_GLIBCXX"))
    command = [str(toolchain.find_cxx()), "-std=c++17", "-E", "-x", "c++", "-"]
    plain, without = (
        subprocess.run([*command, *more], input="#include <cmath>\n", capture_output=True, text=True, check=True).stdout
        for more in ([], [flag])
    )
    assert "cyl_bessel_j" in plain and "cyl_bessel_j" not in without


def test_objects_are_shared_between_libraries(tmp_path: Path, fresh_cache: Path) -> None:
    build_library({"a.cc": SOURCE, "b.cc": "int b = 1;"}, CPU, tmp_path / "w")
    build_library({"a.cc": SOURCE, "b.cc": "int b = 2;"}, CPU, tmp_path / "w")
    assert len(objects(fresh_cache)) == 3


def test_objects_made_before_a_build_ends_early_are_kept(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each when its compiler has ended, not all with the library: a killed build goes on from there."""
    monkeypatch.setenv("AIT_BUILD_JOBS", "1")
    sources = {"a.cc": SOURCE, "b.cc": "int b = 1;"}
    kept: list[int] = []
    keep_object = build.keep_object

    def counted(made: Path, unit: build.Unit) -> None:
        keep_object(made, unit)
        kept.append(len(objects(fresh_cache)))
        assert not list(fresh_cache.rglob("*.so"))

    monkeypatch.setattr(build, "keep_object", counted)
    with pytest.raises(CompileError, match=r"refused .*c\.cc"):
        build_library({**sources, "c.cc": "no C++"}, CPU, tmp_path / "w")
    assert kept == [1, 2]
    build_library(sources, CPU, tmp_path / "w")
    assert kept == [1, 2]


def test_an_object_is_made_again_only_when_a_header_it_includes_changes(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "cpp" / "include" / "ait"
    include.mkdir(parents=True)
    texts = {"a.h": '#include "ait/b.h"\n', "b.h": "inline int b() { return 1; }\n", "c.h": "inline int c();\n"}
    for name, text in texts.items():
        (include / name).write_text(text)
    monkeypatch.setattr(build, "cpp_root", lambda: tmp_path / "cpp")
    monkeypatch.setattr("ait_mlir.lowering.toolchain.cpp_root", lambda: tmp_path / "cpp")
    sources = {"x.cc": '#include "ait/a.h"\nint f() { return b(); }\n', "y.cc": '#include "ait/c.h"\nint g;\n'}
    build_library(sources, CPU, tmp_path / "w")
    kept = set(objects(fresh_cache))
    (include / "b.h").write_text("inline int b() { return 2; }\n")
    build_library(sources, CPU, tmp_path / "w")
    assert len(kept) == 2 and len(set(objects(fresh_cache)) - kept) == 1
    shutil.move(tmp_path / "cpp", tmp_path / "moved")
    monkeypatch.setattr(build, "cpp_root", lambda: tmp_path / "moved")
    monkeypatch.setattr("ait_mlir.lowering.toolchain.cpp_root", lambda: tmp_path / "moved")
    monkeypatch.setattr(build, "run_compilers", lambda *_: pytest.fail("compiled again"))
    build_library(sources, CPU, tmp_path / "w")


@pytest.mark.parametrize("change", [lambda data: data[:100], lambda data: data[:-1] + b"?", lambda data: b""])
def test_damaged_entries_are_built_again(tmp_path: Path, fresh_cache: Path, change) -> None:
    good = build_library({"a.cc": SOURCE}, CPU, tmp_path / "w").read_bytes()
    kept = [*objects(fresh_cache), *(fresh_cache / "libraries").rglob("*.so")]
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(change(path.read_bytes()))
    assert build_library({"a.cc": SOURCE}, CPU, tmp_path / "w").read_bytes() == good
    assert [is_kept(path, path.stem) for path in kept] == [True, True]
    kept[0].with_name(kept[0].name + DIGEST).unlink()
    assert not is_kept(kept[0], kept[0].stem)


def test_headers_and_flags_are_part_of_the_key(tmp_path: Path, fresh_cache: Path) -> None:
    source = '#include "n.h"\n' + SOURCE.replace("42", "N")
    for header, arch in [("#define N 1\n", "native"), ("#define N 2\n", "native"), ("#define N 2\n", "x86-64-v2")]:
        build_library({"a.cc": source, "n.h": header}, Target("cpu", arch), tmp_path / "w")
    assert len(objects(fresh_cache)) == 3


def test_an_object_is_made_again_only_when_a_header_of_its_library_that_it_includes_changes(
    tmp_path: Path, fresh_cache: Path
) -> None:
    sources = {"a.cc": '#include "n.h"\nint f() { return N; }\n', "b.cc": SOURCE, "n.h": '  #  include "m.h"\n'}
    for number in (1, 2):
        build_library(sources | {"m.h": f"#define N {number}\n"}, CPU, tmp_path / "w")
    assert len(objects(fresh_cache)) == 3


def test_a_refused_source_is_named_with_its_first_error(tmp_path: Path, fresh_cache: Path) -> None:
    sources = {"good.cc": "int good;", "bad.cc": "int f() { return nothing; }\n"}
    with pytest.raises(CompileError) as caught:
        build_library(sources, CPU, tmp_path / "w")
    message = str(caught.value)
    assert message.startswith(f"the compiler refused {tmp_path}/w/bad.cc:\n")
    assert "bad.cc:1:18: error:" in message and "nothing" in message
    assert len(message.splitlines()) < 16
    assert not list(fresh_cache.rglob("*.so")) and not list((fresh_cache / "tmp").iterdir())


def test_an_undefined_symbol_is_found_when_linking(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"the library could not be linked:\n.*undefined reference"):
        build_library({"a.cc": "int f(); int g() { return f(); }\n"}, CPU, tmp_path)


def test_a_symbol_that_two_sources_define_is_told(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"the library could not be linked:\n.*multiple definition of .*twice"):
        build_library({"a.cc": "int twice() { return 1; }\n", "b.cc": "int twice() { return 2; }\n"}, CPU, tmp_path)


@pytest.mark.parametrize("name", ["../a.cc", "a b.cc", "a;b.cc", "$(x).cc", "", "-o.cc", "a\n.cc"])
def test_names_of_sources_are_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(CompileError, match="cannot be the name of a source"):
        build_library({name: SOURCE}, CPU, tmp_path)


@pytest.mark.usefixtures("fresh_cache")
def test_directories_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "a b|c $(touch pwned) `touch pwned` ;:'\"&,\\ é*"
    monkeypatch.setenv("AIT_CACHE_DIR", str(odd / "cache $HOME"))
    assert build_library({"a.cc": SOURCE}, CPU, odd / "w").is_file()
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("kind", ["cuda", "rocm"])
@pytest.mark.parametrize("character", ["|", "'", ",", ";", " ", "$(touch pwned)", "`touch pwned`", '"', "\\"])
def test_no_part_of_a_path_is_run_by_the_compiler_of_a_gpu(
    kind: toolchain.TargetKind, character: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        toolchain.toolchain(kind, toolchain.DEFAULT_ARCH[kind])
    except ToolchainError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    target, odd = Target(kind, toolchain.DEFAULT_ARCH[kind]), tmp_path / f"a{character}b"
    sources = {"k.cu" if kind == "cuda" else "k.hip": SOURCE}
    for cache, workdir in ((tmp_path / "cache", odd), (odd, tmp_path / "w")):
        monkeypatch.setenv("AIT_CACHE_DIR", str(cache))
        if set(character) & set('$`"\\'):
            with pytest.raises(
                CompileError, match=r"a build cannot use the path .* gives it to a shell.*AIT_CACHE_DIR"
            ):
                build_library(sources, target, workdir)
        else:
            assert build_library(sources, target, workdir).is_file()
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("kind", ["cpu", "cuda", "rocm"])
@pytest.mark.usefixtures("fresh_cache")
def test_compilers_leave_nothing_in_the_temporary_folder(
    kind: toolchain.TargetKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their temporary files are in the scratch folder; so `TMPDIR` may have a name that no compiler of a GPU takes."""
    arch, temporary = toolchain.DEFAULT_ARCH[kind], tmp_path / "a $(touch pwned)"
    try:
        toolchain.toolchain(kind, arch)
    except ToolchainError as error:
        pytest.skip(str(error))
    temporary.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(temporary))
    name = {"cpu": "a.cc", "cuda": "k.cu", "rocm": "k.hip"}[kind]
    assert build_library({name: SOURCE}, Target(kind, arch), tmp_path / "w").is_file()
    assert not list(temporary.iterdir()) and not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("kind", "tool", "variable", "advice"),
    [
        ("cpu", r"a C\+\+17 compiler", "CXX", r"install g\+\+"),
        ("cuda", "the CUDA compiler", "CUDACXX", "install the CUDA toolkit"),
        ("rocm", "the HIP compiler", "HIPCXX", "apt-get install hipcc"),
    ],
)
def test_a_missing_compiler_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: toolchain.TargetKind, tool: str, variable: str, advice: str
) -> None:
    monkeypatch.setenv(variable, "no-such-compiler")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    arch = {"cpu": "native", "cuda": "sm_90a", "rocm": "gfx90a"}[kind]
    with pytest.raises(ToolchainError, match=rf"{tool} \(no-such-compiler\) was not found: .*{advice}"):
        build_library({"a.cc": SOURCE}, Target(kind, arch), tmp_path / "w")


@pytest.mark.parametrize(
    ("kind", "arch"), [("cpu", "x; rm"), ("cpu", "-O0"), ("cuda", "90"), ("cuda", "sm_90a,code=x"), ("rocm", "sm_90a")]
)
def test_architectures_are_checked_before_the_compiler_is_looked_for(
    kind: toolchain.TargetKind, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CXX", "CUDACXX", "HIPCXX"):
        monkeypatch.setenv(variable, "no-such-compiler")
    with pytest.raises(ToolchainError, match=rf"{re.escape(repr(arch))} .*of target {kind}"):
        toolchain.toolchain(kind, arch)


def test_runtime_libraries_share_the_objects_that_know_no_device() -> None:
    def keys(kind: toolchain.TargetKind, *sanitizer: str) -> dict[str, str]:
        tools = build._runtime_toolchain(kind, [])
        units = build._runtime_units(build._RUNTIME_SOURCES[kind], tools, (), sanitizer=sanitizer)
        return {str(unit.source.relative_to(toolchain.cpp_root() / "src")): unit.key for unit in units}

    try:
        cpu, cuda = keys("cpu"), keys("cuda")
    except ToolchainError:
        pytest.skip("no CUDA toolkit to build the runtime with")
    same = {name for name in cpu.keys() & cuda.keys() if cpu[name] == cuda[name]}
    assert same == {name for name in cpu if "/" not in name}
    assert not set(keys("cpu", "-fsanitize=address").values()) & {cpu[name] for name in same}


@pytest.mark.skipif(toolchain.detect_cuda_arch() is not None, reason="there is a card")
def test_no_card_is_an_error_that_says_what_to_do(library: Path) -> None:
    try:
        toolchain.cuda_home()
    except ToolchainError:
        pytest.skip("no CUDA toolkit to build the runtime with")
    with pytest.raises(RunError, match=r"no CUDA device can be used: .*compile it for target cpu"):
        Model.from_library(library, "cuda")


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there may be a card")
def test_no_amd_card_is_an_error_that_says_what_to_do(library: Path) -> None:
    try:
        toolchain.find_hipcc()
    except ToolchainError:
        pytest.skip("no hipcc to build the runtime with")
    with pytest.raises(RunError, match=r"no ROCm device can be used: .*where rocminfo lists a card.*target cpu"):
        Model.from_library(library, "rocm")
    services = ["gemm 2", "ffi 1", "streams 1", "recording 1", "collective 1", "peers 1", "permute 1"]
    assert list(runtime_library("rocm").services()) == services


WAVES_OF_32 = """
extern "C" int hipGetDeviceCount(int* count) { return *count = 1, 0; }
extern "C" int hipDeviceGetAttribute(int* value, int, int) { return *value = 32, 0; }
"""


def test_an_amd_card_with_waves_of_32_lanes_is_refused(library: Path, tmp_path: Path) -> None:
    try:
        toolchain.find_hipcc()
    except ToolchainError:
        pytest.skip("no hipcc to build the runtime with")
    source, driver = tmp_path / "driver.cc", tmp_path / "driver.so"
    source.write_text(WAVES_OF_32)
    subprocess.run([toolchain.find_cxx(), "-shared", "-fPIC", source, "-o", driver], check=True)
    program = f"from ait_mlir.runtime import Model; Model.from_library({str(library)!r}, 'rocm')"
    environment = {**os.environ, "LD_PRELOAD": str(driver)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (
        "rocm:0 cannot be used: its waves have 32 lanes, the kernels need 64: run the model on a card of" in ran.stderr
    )


def test_the_rocm_runtime_names_the_compiler_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPCXX", "no-such-compiler")
    with pytest.raises(
        ToolchainError, match=r"the HIP compiler \(no-such-compiler\) was not found: .*apt-get install hipcc"
    ):
        build.build_runtime("rocm")


_BUILD = """
import sys
from pathlib import Path
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
print(build_library({"a.cc": Path(sys.argv[2]).read_text()}, Target("cpu", "native"), sys.argv[1]))
"""


def start_build(workdir: Path, source: str) -> subprocess.Popen[str]:
    file = workdir.with_suffix(".txt")
    file.write_text(source)
    return subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(workdir), str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_processes_share_a_cache(tmp_path: Path, fresh_cache: Path) -> None:
    builds = [start_build(tmp_path / f"w{i}", SOURCE) for i in range(4)]
    outputs = [build.communicate(timeout=300) for build in builds]
    assert [build.returncode for build in builds] == [0] * 4, outputs
    assert len({Path(out.strip()).read_bytes() for out, _ in outputs}) == 1
    assert len(objects(fresh_cache)) == 1 and len(list((fresh_cache / "libraries").rglob("*.so"))) == 1


def test_a_killed_build_leaves_nothing_half_done(tmp_path: Path, fresh_cache: Path) -> None:
    slow = "template <int N> struct F { static int f() { return F<N - 1>::f() + N; } };\n"
    slow += "template <> struct F<0> { static int f() { return 0; } };\n"
    slow += 'extern "C" int answer() { return F<800>::f(); }\n'
    for delay in (0.4, 0.9, 1.4):
        build = start_build(tmp_path / "w", slow)
        time.sleep(delay)
        build.send_signal(signal.SIGKILL)
        build.communicate()
        assert not [
            path for path in fresh_cache.rglob("*.so") if path.parent.parent.name == "libraries" and not whole(path)
        ]
    build = start_build(tmp_path / "w", slow)
    out, _ = build.communicate(timeout=300)
    assert build.returncode == 0 and whole(Path(out.strip()))


def whole(library: Path) -> bool:
    import ctypes

    return ctypes.CDLL(str(library)).answer() == 800 * 801 // 2


def test_atomic_files_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")
    with pytest.raises(KeyboardInterrupt), atomic_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_cache_is_for_its_owner(fresh_cache: Path) -> None:
    assert cache_dir() == fresh_cache and fresh_cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["cpu", "cuda", "rocm"])
def test_a_library_depends_neither_on_folders_nor_on_processes(
    kind: toolchain.TargetKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two caches and two working directories: the same bytes, also where a name is local to its source."""
    monkeypatch.setenv("AIT_OPTIMIZE", "1")
    target = Target(kind, toolchain.DEFAULT_ARCH[kind])
    try:
        toolchain.toolchain(kind, target.arch)
    except ToolchainError as error:
        pytest.skip(str(error))
    name = {"cpu": "k_one.cc", "cuda": "k_one.cu", "rocm": "k_one.hip"}[kind]
    head = {"cpu": "#define __global__\n", "cuda": "", "rocm": "#include <hip/hip_runtime.h>\n"}[kind]
    kernel = f"{head}namespace {{ struct Local {{ int n; }}; }}\ntemplate <class T> __global__ void fill(int* p, T v) {{ *p = v.n; }}\n"
    kernel += f'extern "C" void run(int* p) {{ fill{"" if kind == "cpu" else "<<<1, 1>>>"}(p, Local{{3}}); }}\n'
    made: list[bytes] = []
    for place in ("one", "two"):
        monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / place / "cache"))
        made.append(build_library({name: kernel}, target, tmp_path / place / "w").read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("kind", ["cuda", "rocm"])
def test_sources_without_kernels_of_a_gpu_are_compiled_by_the_cpp_compiler(kind: str, tmp_path: Path) -> None:
    try:
        tools = toolchain.toolchain(kind, toolchain.DEFAULT_ARCH[kind])
    except ToolchainError as error:
        pytest.skip(str(error))
    kernel = "k.cu" if kind == "cuda" else "k.hip"
    units = build.library_units({"program.cc": SOURCE, kernel: SOURCE}, tools, tmp_path)
    compilers = {unit.source.name: (unit.tools or tools).compiler for unit in units}
    assert compilers == {"program.cc": toolchain.find_cxx(), kernel: tools.compiler}
    program = "#include <cuda_runtime_api.h>\n" + SOURCE if kind == "cuda" else SOURCE  # nvcc finds that by itself
    library = build.build_with(tools, {"program.cc": program, kernel: "int other = 1;"}, tmp_path, "test")
    assert "answer" in subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
