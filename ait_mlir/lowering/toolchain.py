"""The C++, CUDA and HIP compilers: their paths, their versions, and their flags for a model library."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.errors import ToolchainError
from ait_mlir.host.cpu import cpu_fields, cpu_flags, instruction_sets
from ait_mlir.host.settings import whole_number
from ait_mlir.lowering.target import DEFAULT_ARCH, TargetKind, architecture_problem

_WARN = ("-fdiagnostics-color=never",)
_CPU_FLAGS = ("-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-std=c++17")
_X86_FLAGS = ("-mprefer-vector-width=512",)  # elementwise loops run 1.3 to 1.6 times as fast where there is AVX-512
_WITHOUT_SPECIAL_FUNCTIONS = "-D_GLIBCXX_BITS_SPECFUN_H"
"""The include guard of a header of libstdc++ with Bessel functions and the like. <cmath>, which CUDA includes in every
source, includes it; no kernel calls them, and they take 0.2 of the 1.2 s in which nvcc reads headers."""
_CUDA_FLAGS = (
    *("-O3", "-DNDEBUG", "-std=c++17", "--expt-relaxed-constexpr", _WITHOUT_SPECIAL_FUNCTIONS),
    *("-Xcompiler", "-fPIC,-fno-gnu-unique"),
)
_KEEPS_NAMES_SINCE = 12
"""The release of CUDA whose nvcc can be told which names of files an object has (`ninja.build_file`)."""
_HIP_FLAGS = ("-O3", "-DNDEBUG", "-std=c++17", "-fPIC")
_CPU_ARCH = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_CUDA_ARCH = re.compile(r"sm_(\d{2,3}[af]?)")
_KFD = Path("/sys/class/kfd/kfd/topology/nodes")
"""The folder in which the AMD driver lists the CPUs and cards of this machine, each as a folder."""


MadeOf = tuple[TargetKind, str, int]
"""The arguments of `toolchain`."""

_CHANGES_OBJECTS = re.compile(
    # GCC, its linker, and clang: where they look for headers, libraries and their own programs
    r"CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|COMPILER_PATH|GCC_EXEC_PREFIX|LD_RUN_PATH|LDEMULATION"
    r"|CCC_OVERRIDE_OPTIONS|SOURCE_DATE_EPOCH|SYSROOT|CONDA_BUILD_SYSROOT"
    # nvcc, and hipcc with the places of ROCm
    r"|NVCC_\w+|CUDAFE_FLAGS|HIPCC_\w+|HIP_PATH|HIP_PLATFORM|HIP_COMPILER|HIP_RUNTIME|HIP_CLANG_PATH|HIP_LIB_PATH"
    r"|HIP_CLANG_LAUNCHER|(?:HIP_)?DEVICE_LIB_PATH|ROCM_PATH|HSA_PATH"
    # variables by which compiler wrappers change the command
    r"|NIX_(?:CFLAGS|LDFLAGS)\w*|CCACHE_\w+|SCCACHE_\w+|DISTCC_\w+"
)
"""The environment variables that can change the object compiled from the same source and flags."""
_WRITES_FILES = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES")
"""Variables that make GCC write a file beside the object. They are taken out of the environment of compilers."""


def compiler_environment(tools: Toolchain) -> dict[str, str]:
    """The environment of a compiler: this process's environment and the settings of the toolchain."""
    return {**{k: v for k, v in os.environ.items() if k not in _WRITES_FILES}, **dict(tools.environment)}


@dataclass(frozen=True)
class Toolchain:
    """One compiler with the flags of one target.

    `identity` changes if the same source and flags may give another object: it depends on the compiler, on the
    variables of the environment that compilers read, and for `-march=native` on the CPU.
    """

    compiler: Path
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    identity: str
    environment: tuple[tuple[str, str], ...] = ()
    is_for_cpu_kernels: bool = False
    """Whether its sources include the intrinsics and the standard headers that `precompiled` has."""
    uses_shell: bool = False
    """Whether the compiler, like nvcc and hipcc, starts programs by a shell, with names between double quotes."""
    host: Toolchain | None = None
    """The compiler for sources without kernels, if it differs: g++ takes 0.03 s for a program, nvcc 0.6 s."""
    made_of: MadeOf | None = None
    """The arguments of `toolchain`, with which another machine makes the same one; None for a compiler of libraries
    that are not those of models."""
    versioned: tuple[str, ...] = ()
    """Folders of headers among the flags that another machine may have elsewhere: `identity` has their version."""
    keeps_names: bool = False
    """Whether the compiler, like nvcc, writes the path of the source and names of temporary files into the object,
    unless it is told others."""


def optimization() -> int:
    """The optimization level for g++: `AIT_OPTIMIZE`, or 3 if it is not set.

    Raises `InputError` unless it is 0, 1, 2 or 3.
    """
    level = whole_number("AIT_OPTIMIZE", 3, least=0)
    return 3 if level is None else level


def cpp_root() -> Path:
    """The C++ sources: `ait_mlir/_cpp` in an installed wheel, `runtime/` beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for root in (package / "_cpp", package.parent / "runtime"):
        if (root / "include" / "ait" / "model_abi.h").is_file():
            return root
    raise ToolchainError(f"the C++ sources of the runtime are missing from {package}: install ait_mlir again")


def find_cxx() -> Path:
    """The C++ compiler: `$CXX`, else g++."""
    return _find(
        os.environ.get("CXX") or "g++", [], "a C++17 compiler", "install g++ (apt-get install g++), or set CXX"
    )


def find_nvcc() -> Path:
    """The CUDA compiler: `$CUDACXX`, else nvcc from PATH, `$CUDA_HOME`, /usr/local/cuda or NVIDIA's pip packages."""
    places = [Path(home) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    places.append(Path("/usr/local/cuda/bin"))
    if (wheel := nvidia_wheel()) is not None:
        places.append(wheel / "bin")
    advice = "install the CUDA toolkit, or `pip install ait_mlir[nvcc]`, or compile for target cpu"
    return _find(os.environ.get("CUDACXX") or "nvcc", places, "the CUDA compiler", advice)


def find_hipcc() -> Path:
    """The HIP compiler: `$HIPCXX`, else hipcc from PATH or /opt/rocm."""
    advice = "install it (apt-get install hipcc), or compile for target cpu"
    return _find(os.environ.get("HIPCXX") or "hipcc", [Path("/opt/rocm/bin")], "the HIP compiler", advice)


def nvidia_wheel() -> Path | None:
    """The directory of NVIDIA's CUDA 13 pip packages, with bin, include and lib; None if they are not installed."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or [] if spec else []:
        if (Path(place) / "cu13").is_dir():
            return Path(place) / "cu13"
    return None


def cuda_home() -> Path:
    """The CUDA toolkit that has `include/cuda_runtime.h` and the static CUDA runtime."""
    for home in (find_nvcc().resolve().parent.parent, Path("/usr/local/cuda"), nvidia_wheel()):
        if home is not None and (home / "include" / "cuda_runtime.h").is_file():
            return home
    raise ToolchainError("cuda_runtime.h was not found beside nvcc: install the CUDA toolkit, or set CUDA_HOME")


def default_arch(kind: TargetKind) -> str:
    """The default architecture of a kind: this machine's card, else native, sm_90a or gfx90a.

    Raises `ToolchainError` if this machine has AMD cards and the kernels support none of them.
    """
    if kind == "cuda":
        return detect_cuda_arch() or DEFAULT_ARCH[kind]
    if kind == "rocm" and (cards := detect_rocm_archs()):
        supported = supported_rocm_arch()
        if supported is None:
            raise ToolchainError(
                f"{architecture_problem(kind, cards[0])}, but the AMD cards of this machine are {', '.join(cards)}; "
                "name an architecture to compile for another machine, or compile for target cpu"
            )
        return supported
    return DEFAULT_ARCH[kind]


def detect_cuda_arch(device: int = 0) -> str | None:
    """The architecture of a CUDA device, from its compute capability ("sm_80", "sm_90a"); None without a card."""
    return _ask_cuda(device)[0]


def why_no_cuda(device: int = 0) -> str:
    """The driver's reason why there is no usable CUDA device; empty if there is a device."""
    return _ask_cuda(device)[1]


@functools.cache
def _ask_cuda(device: int) -> tuple[str | None, str]:
    """The architecture of a CUDA device, or None and the reason."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "the CUDA driver (libcuda.so.1) is not installed"
    handle, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    capability_major, capability_minor = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(handle), device)
        or cuda.cuDeviceGetAttribute(ctypes.byref(major), capability_major, handle)
        or cuda.cuDeviceGetAttribute(ctypes.byref(minor), capability_minor, handle)
    )
    if failed:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(failed, ctypes.byref(text))
        return None, f"the CUDA driver says: {(text.value or b'').decode(errors='replace') or f'error {failed}'}"
    # From 9.0 on the features that matter (wgmma, TMA multicast) exist only in the architecture-specific set.
    return f"sm_{major.value}{minor.value}{'a' if major.value >= 9 else ''}", ""


def detect_rocm_archs() -> tuple[str, ...]:
    """The architectures of the AMD cards of this machine ("gfx90a"), in the driver's order; none without a card."""
    return tuple(arch for node in _kfd_nodes() if (arch := _arch_of_node(node)) is not None)


def supported_rocm_arch() -> str | None:
    """The architecture of the first AMD card of this machine that the kernels support."""
    return next((arch for arch in detect_rocm_archs() if architecture_problem("rocm", arch) is None), None)


def _kfd_nodes() -> list[Path]:
    try:
        return sorted((node for node in _KFD.iterdir() if node.name.isdecimal()), key=lambda node: int(node.name))
    except OSError:
        return []


def _arch_of_node(node: Path) -> str | None:
    """The architecture of a node of the AMD driver; gfx90a is `gfx_target_version 90010`, a CPU has version 0."""
    try:
        found = re.search(r"^gfx_target_version (\d+)$", (node / "properties").read_text(), re.MULTILINE)
    except OSError:
        return None
    version = 0 if found is None else int(found[1])
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else None


def toolchain(kind: TargetKind, arch: str, level: int | None = None) -> Toolchain:
    """The compiler and the flags for model libraries of a target; `level` is in place of `optimization`.

    Raises `ToolchainError` when the compiler is missing or `arch` is malformed or not supported, `InputError` for an
    `AIT_OPTIMIZE` that is no level.
    """
    include = ("-I", str(cpp_root() / "include"))
    level = optimization() if level is None else level
    if kind == "cpu":
        _check_arch(arch, _CPU_ARCH, kind, "'native' or a value of -march")
        compiler = find_cxx()
        x86 = _X86_FLAGS if platform.machine() in ("x86_64", "AMD64") else ()
        flags = (f"-O{level}", *_CPU_FLAGS, f"-march={arch}", *x86, "-fno-gnu-unique", *_WARN, *include)
        machine = _cpu_identity() if arch == "native" else ""
        link = ("-shared", "-Wl,-z,defs")
        identity = _identity(compiler, machine)
        made_of: MadeOf = kind, arch, level
        return Toolchain(compiler, flags, link, identity, is_for_cpu_kernels=True, made_of=made_of)
    if kind == "cuda":
        arch = default_arch(kind) if arch == "native" else arch
        number = _check_arch(arch, _CUDA_ARCH, kind, "sm_80, sm_90a ...")[1]
        compiler = find_nvcc()
        gencode = ("-gencode", f"arch=compute_{number},code=sm_{number}")
        version = f"-DAIT_SM={number.rstrip('af')}"
        libraries = ("-L", str(wheel / "lib")) if (wheel := nvidia_wheel()) and compiler.is_relative_to(wheel) else ()
        link = ("-shared", *gencode, *libraries)
        made_of: MadeOf = kind, arch, level
        release = re.search(r"release (\d+)", _version_of(compiler))
        keeps_names = release is not None and int(release[1]) >= _KEEPS_NAMES_SINCE
        identity = _identity(compiler, *(("names are kept",) if keeps_names else ()))
        flags = (*_CUDA_FLAGS, version, *gencode, *include, "-x", "cu")
        host = _host(include, made_of, _cuda_include(), _version_of(compiler))
        return Toolchain(
            *(compiler, flags, link, identity), uses_shell=True, host=host, made_of=made_of, keeps_names=keeps_names
        )
    if kind == "rocm":
        arch = default_arch(kind) if arch == "native" else arch
        if (problem := architecture_problem(kind, arch)) is not None:
            raise ToolchainError(problem)
        compiler = find_hipcc()
        offload = f"--offload-arch={arch}"
        environment = (("HIP_PLATFORM", "amd"),)  # without it hipcc starts nvcc
        flags = (*_HIP_FLAGS, offload, *_WARN, *include, "-x", "hip")
        link, identity = ("-shared", offload), _identity(compiler)
        made_of: MadeOf = kind, arch, level
        host = _host(include, made_of)
        return Toolchain(compiler, flags, link, identity, environment, uses_shell=True, host=host, made_of=made_of)
    raise ToolchainError(f"unknown target '{kind}': expected cpu, cuda or rocm")


def _cuda_include() -> tuple[str, ...]:
    """The flags with which the C++ compiler finds CUDA's headers, as nvcc does; no flags if there are no headers."""
    try:
        return ("-isystem", str(cuda_home() / "include"))
    except ToolchainError:
        return ()


def _host(
    include: tuple[str, ...], made_of: MadeOf, versioned: tuple[str, ...] = (), version: str = ""
) -> Toolchain:
    """The C++ compiler for sources without kernels in a library for a GPU, such as its program.

    `versioned` are flags for headers of a toolkit with this `version`.
    """
    compiler = find_cxx()
    flags = ("-O2", "-DNDEBUG", "-std=c++17", "-fPIC", "-fno-gnu-unique", *_WARN, *include, *versioned)
    return Toolchain(compiler, flags, (), _identity(compiler, version), made_of=made_of, versioned=versioned[1:])


def _check_arch(arch: str, pattern: re.Pattern[str], kind: str, expected: str) -> re.Match[str]:
    if (match := pattern.fullmatch(arch)) is None:
        raise ToolchainError(f"'{arch}' is no architecture of target {kind}: expected {expected}")
    return match


def _find(name: str, places: list[Path], what: str, advice: str) -> Path:
    found = shutil.which(name)
    for place in [] if found else places:
        found = found or shutil.which(name, path=str(place))
    if found is None:
        raise ToolchainError(f"{what} ({name}) was not found: {advice}")
    return Path(found)


def _identity(compiler: Path, *more: str) -> str:
    settings = [f"{name}={os.environ[name]}" for name in sorted(filter(_CHANGES_OBJECTS.fullmatch, os.environ))]
    return "\n".join([_version_of(compiler), *more, *settings])


def _version_of(compiler: Path) -> str:
    return _version(str(compiler), compiler.resolve().stat().st_mtime_ns)


@functools.cache
def _version(compiler: str, modified: int) -> str:
    """The output of `--version`, cached; `modified` is only a key, so that a replaced compiler is asked again."""
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    try:
        command = [compiler, "--version"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{compiler} cannot be run: {error}") from error
    return ran.stdout


_FEATURES = {
    **{
        f"__{name.upper()}__": name
        for name in ("sse", "sse2", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c")
    },
    **{f"__{name.upper()}__": name for name in ("bmi2", "movbe", "gfni", "vaes", "vpclmulqdq", "adx")},
    **{f"__AVX512{name.upper()}__": f"avx512{name}" for name in ("f", "bw", "dq", "vl", "cd", "ifma", "vbmi")},
    **{
        f"__AVX512{name.upper()}__": f"avx512_{name}"
        for name in ("vbmi2", "vnni", "bitalg", "vpopcntdq", "bf16", "fp16")
    },
    **{f"__AMX_{name.upper()}__": f"amx_{name}" for name in ("tile", "bf16", "int8")},
    "__BMI__": "bmi1",
    "__LZCNT__": "abm",
    "__AVXVNNI__": "avx_vnni",
}
"""For each compiler macro of an instruction set, the name in /proc/cpuinfo."""


def cpu_features(arch: str) -> tuple[str, ...]:
    """The instruction sets, by their names in /proc/cpuinfo, that code compiled with a value of -march may use.

    Raises `ToolchainError` for a value that the compiler does not know.
    """
    if arch == "native":
        return tuple(sorted(instruction_sets()))
    _check_arch(arch, _CPU_ARCH, "cpu", "'native' or a value of -march")
    compiler = find_cxx()
    command = [str(compiler), f"-march={arch}", "-dM", "-E", "-x", "c++", os.devnull]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        message = next((line for line in ran.stderr.splitlines() if "error" in line), ran.stderr.strip())
        raise ToolchainError(f"{compiler} cannot compile for CPU '{arch}': {message}")
    defined = {line.split()[1] for line in ran.stdout.splitlines() if line.startswith("#define ")}
    return tuple(sorted(_FEATURES[macro] for macro in defined & _FEATURES.keys()))


@functools.cache
def _cpu_identity() -> str:
    """A digest of the CPU's model and flags, on which `-march=native` depends."""
    text = cpu_fields().get("model name", "") + " ".join(sorted(cpu_flags()))
    return hashlib.sha256(text.encode()).hexdigest()
