"""The GPU path: what is found out without one, and every kernel against the oracle with one."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from softmax_lab import (
    arguments,
    facts,
    gpu,
    nvrtc,
    provenance,
    reference,
    registry,
    roofline,
    stopwatch,
)
from softmax_lab.registry import EXHIBITS, KERNELS

FAMILIES = dict.fromkeys(kernel.family.name for kernel in KERNELS.values())

SOON = ("sm_90", nvrtc.ARCHS[0], nvrtc.ARCHS[-1])
"""Architectures of the fast half, a kernel for one of them in turn: the reference's, the oldest and
the newest."""


def soon(turn: int, kernel: registry.Kernel) -> str:
    archs = [arch for arch in SOON if nvrtc.capability(arch) >= kernel.requires]
    return archs[turn % len(archs)]


BUILDS = [
    pytest.param(
        *(kernel, arch, dtype),
        id=f"{kernel.name}-{arch}-{dtype}",
        marks=[] if arch == soon(turn, kernel) else pytest.mark.slow,
    )
    for turn, kernel in enumerate((*KERNELS.values(), *EXHIBITS.values()))
    for arch in nvrtc.ARCHS
    for dtype in kernel.dtypes
    if nvrtc.capability(arch) >= kernel.requires
]


@pytest.fixture(scope="module")
def compiler():
    """NVRTC and its headers; skips with the reason where they are not installed."""
    try:
        nvrtc.include_folders()
    except nvrtc.ToolkitError as error:
        pytest.skip(str(error))


def python(code: str, *paths: Path, **environment: str) -> str:
    """Output of a fresh interpreter that looks for modules in `paths` first."""
    search = [*map(str, paths), str(Path(gpu.__file__).parents[1])]
    keep = {name: value for name, value in os.environ.items() if name not in environment}
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],  # -P: not what lies where pytest runs
        env={**keep, **environment, "PYTHONPATH": os.pathsep.join(search)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fake_cupy(tmp_path: Path, text: str) -> Path:
    (tmp_path / "cupy").mkdir(parents=True)
    (tmp_path / "cupy" / "__init__.py").write_text(textwrap.dedent(text))
    return tmp_path


# ------------------------------------------------------------------------------ compiling


@pytest.mark.parametrize(("kernel", "arch", "dtype"), BUILDS)
def test_every_kernel_compiles_without_spills(compiler, kernel, arch, dtype):
    made = gpu.compile(kernel, arch, dtype).checked()
    assert made.cubin.startswith(b"\x7fELF")
    assert 0 < made.registers <= 255
    assert made.registers * kernel.block <= 65536  # a block's registers must fit a multiprocessor
    assert made.stack_bytes == 0
    assert kernel.shared_bytes <= made.shared_bytes <= 48 * 1024
    # The chapters' words: no rung needs so many that a place for a warp stays empty.
    if kernel in registry.LADDER:
        assert made.registers <= roofline.registers_for_all(nvrtc.capability(arch))


@pytest.mark.slow
def test_the_chapters_words_on_registers_hold(compiler):
    """With more room, three passes take more."""
    taken: dict[int, list[int]] = {}
    for arch in gpu.ARCHS:
        room = roofline.registers_for_all(nvrtc.capability(arch))
        taken.setdefault(room, []).append(gpu.compile("naive", arch).registers)
    less, more, most = (taken[room] for room in sorted(taken))
    assert max(less) < min(more) and max(more) < min(most)


@pytest.mark.slow
def test_the_library_alone_is_enough(compiler, tmp_path):
    """No CUDA_PATH and no folder that may be written: CuPy's import needs one, kernels do not."""
    code = """
        import re
        from softmax_lab import gpu, registry
        kernels = {  # one for each group of headers
            tuple(re.findall("#include.*", kernel.path.read_text())): kernel
            for kernel in registry.KERNELS.values()
        }
        assert () in kernels and len(kernels) > 2
        for kernel in kernels.values():
            print(gpu.compile(kernel, "sm_90").registers > 0)
    """
    (tmp_path / "file").write_text("")  # nobody, not even root, makes a folder below a file
    home = str(tmp_path / "file")
    for cache in ("", str(tmp_path / "file" / "cache")):
        bare = {"CUDA_PATH": "", "CUDA_HOME": "", "HOME": home, "CUPY_CACHE_DIR": cache}
        assert set(python(code, **bare).split()) == {"True"}


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.slow
def test_a_folder_of_any_name_will_do(compiler, tmp_path, locale):
    """In a locale of ASCII, Python holds the bytes of such a name as surrogates."""
    place = tmp_path / "größe und 猫"
    shutil.copytree(Path(gpu.__file__).parent, place / "softmax_lab")
    shutil.copytree(registry.kernel_folder(), place / "kernels")
    code = """
        from softmax_lab import gpu
        print(gpu.compile("warp").registers > 0, "pytest" in gpu.__file__)
    """
    said = python(code, place, LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert said == "True True"


def test_a_folder_whose_name_is_no_text_is_named(compiler):
    folder = Path(os.fsdecode(b"/nowhere/gr\xf6\xdfe"))
    with pytest.raises(gpu.ToolkitError, match="not UTF-8: rename the folder or move it"):
        nvrtc.compile_source('#include "a.cuh"\n', "a", folder=folder)


def test_unknown_architectures_are_refused_by_name():
    for arch in ("sm_42", "90", "compute_90", ""):
        with pytest.raises(ValueError, match=r"sm_75, .*sm_120"):
            gpu.compile("naive", arch)
    for dtype in ("float64", np.float64):
        with pytest.raises(ValueError, match="naive takes float32, got float64"):
            gpu.compile("naive", "sm_90", dtype)
    with pytest.raises(ValueError, match="naive"):
        gpu.compile("no such kernel")


def test_a_kernel_is_not_compiled_below_what_it_requires():
    newer = dataclasses.replace(registry.get("naive"), requires=90)
    with pytest.raises(ValueError, match="naive needs sm_90 or newer, got sm_80"):
        gpu.compile(newer, "sm_80")


@pytest.mark.parametrize(
    ("capability", "arch"),
    [(75, "sm_75"), (80, "sm_80"), (87, "sm_86"), (89, "sm_89"), (90, "sm_90"), (103, "sm_100")],
)
def test_code_for_a_device_is_the_newest_it_can_run(capability, arch):
    assert nvrtc.arch_for(capability) == arch


@pytest.mark.parametrize("capability", [52, 70, 110])
def test_a_device_without_code_is_told_so(capability):
    with pytest.raises(ValueError, match=f"{capability / 10} is not served"):
        nvrtc.arch_for(capability)


def test_a_spill_is_an_error(compiler):
    source = """
        extern "C" __global__ void __launch_bounds__(1024, 2) hungry(float* x, int n) {
            float a[64];
            #pragma unroll
            for (int i = 0; i < 64; ++i) a[i] = x[i * n];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 64; ++i) x[i] = a[i] * a[(i + 1) & 63];
        }
    """
    made = nvrtc.compile_source(source, "hungry", "sm_90")
    assert made.spill_bytes > 0
    with pytest.raises(gpu.SpillError, match=f"hungry for sm_90 spills {made.spill_bytes} bytes"):
        made.checked()
    assert issubclass(gpu.SpillError, ValueError)


def test_resources_are_those_of_the_kernel_named(compiler):
    source = """
        extern "C" __global__ void small(float* x) { x[threadIdx.x] = 1; }
        extern "C" __global__ void shared(float* x) {
            __shared__ float s[128];
            s[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = s[127 - threadIdx.x];
        }
    """
    small, shared = (nvrtc.compile_source(source, name) for name in ("small", "shared"))
    assert (small.shared_bytes, shared.shared_bytes) == (0, 512)
    with pytest.raises(ValueError, match="no kernel 'absent'"):
        nvrtc.compile_source(source, "absent")


def test_a_source_that_does_not_compile_shows_the_compilers_words(compiler):
    with pytest.raises(gpu.CompileError, match=r'broken.cu\(1\): error: .*"oops" is undefined'):
        nvrtc.compile_source('extern "C" __global__ void broken() { oops; }', "broken")


@pytest.mark.slow
def test_cooperative_groups_and_half_types_find_their_headers(compiler):
    source = """
        #include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        #include <cuda_bf16.h>
        #include <cuda_fp16.h>
        namespace cg = cooperative_groups;
        extern "C" __global__ void all(float* x, __half* h) {
            auto warp = cg::tiled_partition<32>(cg::this_thread_block());
            const float sum = cg::reduce(warp, x[threadIdx.x], cg::plus<float>());
            h[threadIdx.x] = __float2half(sum);
        }
    """
    assert nvrtc.compile_source(source, "all").registers > 0


# ------------------------------------------------------------------------------ what is missing


def test_a_missing_library_names_the_command(monkeypatch):
    pytest.importorskip("cupy_backends.cuda.libs.nvrtc")

    def gone():
        raise RuntimeError("libnvrtc.so.12 not found")

    monkeypatch.setattr("cupy_backends.cuda.libs.nvrtc", SimpleNamespace(getVersion=gone))
    nvrtc._library.cache_clear()
    nvrtc.include_folders.cache_clear()
    try:
        with pytest.raises(gpu.ToolkitError, match=r"pip install nvidia-cuda-nvrtc.*CUDA_PATH"):
            gpu.compile("naive")
    finally:
        nvrtc._library.cache_clear()
        nvrtc.include_folders.cache_clear()


@pytest.mark.parametrize("version", [None, 11080])
def test_missing_headers_name_the_command(compiler, monkeypatch, tmp_path, version):
    """Headers of another major version are none: their mismatch shows as strange errors later."""
    if version:
        (tmp_path / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    monkeypatch.setattr(nvrtc, "_places", lambda major: [tmp_path])
    nvrtc.include_folders.cache_clear()
    try:
        with pytest.raises(gpu.ToolkitError, match=r"pip install nvidia-cuda-runtime.*CUDA_PATH"):
            gpu.compile("naive")
    finally:
        nvrtc.include_folders.cache_clear()


def test_headers_are_found_through_cuda_path(compiler, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    include = tmp_path / "include"
    include.mkdir()
    major = int(nvrtc.version().split(".")[0])
    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION {major * 1000}\n")
    # Half of the C++ library beside the headers, all of it in the folder where CUDA 13 has it.
    for whole in ("nv/target", "cccl/nv/target", "cccl/cuda/std/type_traits"):
        (include / whole).parent.mkdir(parents=True, exist_ok=True)
        (include / whole).write_text("")
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    nvrtc.include_folders.cache_clear()
    try:
        assert nvrtc.include_folders() == (include, include / "cccl")
    finally:
        nvrtc.include_folders.cache_clear()


STATUS = """
    import numpy as np
    import softmax_lab
    from softmax_lab import gpu, reference
    state = gpu.status()
    assert not state.available
    try:
        gpu.launch("naive", np.ones((2, 3), "float32"))
    except RuntimeError as error:
        assert str(error) == state.reason
    else:
        raise AssertionError("launched without a GPU")
    print(state.reason)
"""


def test_status_without_cupy(tmp_path):
    block = "import sys\n    sys.modules['cupy'] = None"
    assert python(f"    {block}{STATUS}").startswith("CuPy is not installed: pip install cupy-cuda")


RUNTIME = """
    from types import SimpleNamespace
    class CUDARuntimeError(RuntimeError):
        pass
    def count():
        {count}
    def fail(*_):
        raise KeyError("odd")
    runtime = SimpleNamespace(
        driverGetVersion=lambda: {driver}, runtimeGetVersion=lambda: 12090, getDeviceCount=count,
        CUDARuntimeError=CUDARuntimeError, getDeviceProperties=fail)
    cuda = SimpleNamespace(runtime=runtime, Device=lambda *_: SimpleNamespace(id=0))
    __version__ = "14"
"""
FAILING = ("RuntimeError", "PermissionError", "ImportError", "OSError")
LACKING = "import a_part_that_is_not_there"
DRIVERS = {
    (0, "return 0"): "no NVIDIA driver",
    (11080, "return 1"): "driver is too old: it serves CUDA 11.8, CuPy was built for 12.9",
    (13000, "return 0"): "no GPU that this process may use",
    (12090, "raise CUDARuntimeError('cudaErrorNoDevice')"): "may use (cudaErrorNoDevice)",
    (12090, "return 1"): "does not answer: KeyError: 'odd'",
}


def failing(error: str) -> str:
    return f"raise {error}('libcuda: bad')"


def runtime(driver: int, count: str) -> str:
    return RUNTIME.format(driver=driver, count=count)


@pytest.fixture(scope="module")
def reasons(tmp_path_factory) -> dict[str, str]:
    """What `gpu.status` says with each CuPy, by its text: one interpreter and a fork for each."""
    texts = [*map(failing, FAILING), LACKING, *(runtime(*each) for each in DRIVERS)]
    places = [str(fake_cupy(tmp_path_factory.mktemp("cupy") / "in", text)) for text in texts]
    code = f"""
        import os, sys
        import numpy
        from softmax_lab import gpu, reference
        assert "cupy" not in sys.modules
        for place in {places!r}:
            if not os.fork():
                sys.path.insert(0, place)
                exec({textwrap.dedent(STATUS)!r}, {{}})
                print(flush=True)
                os._exit(0)
            if os.wait()[1]:
                sys.exit("with the CuPy in " + place)
    """
    return dict(zip(texts, python(code).split("\n\n"), strict=True))


@pytest.mark.parametrize("error", FAILING)
def test_status_with_a_cupy_that_does_not_import(reasons, error):
    said = reasons[failing(error)]
    assert said.startswith("CuPy does not import: ")
    assert error in said and "bad" in said


def test_status_with_a_cupy_that_lacks_a_part(reasons):
    assert "CuPy does not import" in reasons[LACKING]
    assert "a_part_that_is_not_there" in reasons[LACKING]


@pytest.mark.parametrize(("driver", "count"), DRIVERS)
def test_status_tells_the_causes_apart(reasons, driver, count):
    assert DRIVERS[driver, count] in reasons[runtime(driver, count)]


def test_status_where_every_device_is_hidden():
    said = python(STATUS, CUDA_VISIBLE_DEVICES="")
    assert any(words in said for words in ("driver", "GPU", "CuPy"))


def test_importing_the_package_needs_no_cupy():
    code = """
        import sys
        import softmax_lab, softmax_lab.bench, softmax_lab.profiler
        print([name for name in sys.modules if name.startswith("cupy")])
    """
    assert python(code) == "[]"


# ------------------------------------------------------------------------------ arguments


def test_arrays_are_checked_before_anything_else():
    x = np.zeros((4, 6), "float32")
    with pytest.raises(TypeError, match="x must be float32, got float64"):
        gpu.launch("naive", x.astype("float64"))
    with pytest.raises(TypeError, match="got >f4"):
        gpu.launch("naive", x.astype(">f4"))
    with pytest.raises(TypeError, match="NumPy or CuPy array, got list"):
        gpu.launch("naive", x.tolist())
    with pytest.raises(TypeError, match="naive takes x, got 2: "):
        gpu.launch("naive", x, x)
    with pytest.raises(ValueError, match="one matrix"):
        gpu.launch("naive", x[0])
    for view in (x.T, x[:, 1:], x[::2], x[:, ::-1], np.broadcast_to(x[0], (3, 6))):
        with pytest.raises(ValueError, match="C-contiguous"):
            gpu.launch("naive", view)
    shifted = np.frombuffer(bytearray(4 * 24 + 1), "float32", 24, offset=1).reshape(4, 6)
    with pytest.raises(ValueError, match="multiple of 4 bytes"):
        gpu.launch("naive", shifted)


@pytest.mark.parametrize("shape", [(2**31, 0), (0, 2**31)])
def test_sizes_beyond_an_int_are_refused_not_wrapped(shape):
    with pytest.raises(ValueError, match=r"2\^31"):
        gpu.launch("naive", np.empty(shape, "float32"))


def test_out_is_checked_like_the_inputs():
    x = np.zeros((4, 6), "float32")
    for out, error, match in (
        (np.zeros((6, 4), "float32"), ValueError, r"naive: out .* of the result, \(4, 6\)"),
        (np.zeros((4, 6)), TypeError, "out must be float32"),
        (np.zeros((6, 4), "float32").T, ValueError, "C-contiguous"),
        (x, ValueError, "naive: out overlaps x"),
        (x.ravel()[:24].reshape(4, 6), ValueError, "overlaps x"),
    ):
        with pytest.raises(error, match=match):
            gpu.launch("naive", x, out=out)


def test_arrays_on_two_devices_are_refused_by_name():
    named = {
        name: SimpleNamespace(device=SimpleNamespace(id=i)) for i, name in enumerate(("x", "out"))
    }
    with pytest.raises(ValueError, match=r"naive: arrays.* x on GPU 0, out on GPU 1"):
        arguments.in_one_memory("naive", named)
    with pytest.raises(ValueError, match="x on the host"):
        arguments.in_one_memory("naive", {**named, "x": np.zeros(1)})


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_a_matrix_without_elements_needs_no_gpu(shape):
    y = gpu.launch("naive", np.empty(shape, "float32"))
    assert (y.shape, y.dtype) == (shape, np.float32)


def test_sizes_are_passed_as_the_four_byte_ints_that_kernels_declare():
    kernel = registry.get("naive")
    arguments = gpu.ordered(kernel, ("x",), "y", {"rows": 3, "cols": np.int64(5)})
    assert arguments == ("x", "y", 3, 5)
    assert all(isinstance(size, np.int32) for size in arguments[2:])


@pytest.fixture
def loading(monkeypatch):
    """CuPy as far as a kernel is loaded with it; the functions that were, in order."""
    made = []

    class Function:
        ptr = property(id)
        __slots__ = ()  # CuPy's takes no new attributes either

    class Module:
        def load(self, cubin):
            pass

        def get_function(self, symbol):
            made.append(Function())
            return made[-1]

    class Device:
        compute_capability = "90"

        def __init__(self, number):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    cuda = SimpleNamespace(Device=Device, function=SimpleNamespace(Module=Module))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(gpu, "_FUNCTIONS", {})
    monkeypatch.setattr(gpu, "compile", lambda *each: SimpleNamespace(cubin=b""))
    return made


@pytest.mark.parametrize("size", [facts.WITHOUT_OPT_IN, facts.WITHOUT_OPT_IN + 1])
def test_shared_memory_beyond_what_any_kernel_has_is_asked_for(loading, monkeypatch, size):
    name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    asked = []
    driver = SimpleNamespace(**{name: 8}, funcSetAttribute=lambda *each: asked.append(each))
    real = pytest.importorskip("cupy_backends.cuda.api.driver")
    assert getattr(real, name) == 8 and callable(real.funcSetAttribute)
    sys.modules["cupy"].cuda.driver = driver
    gpu.function(dataclasses.replace(KERNELS["block_tree"], shared_bytes=size), "float32", 0)
    more = size > facts.WITHOUT_OPT_IN
    assert asked == [(loading[0].ptr, 8, size)] * more


def test_of_two_threads_that_load_a_kernel_the_first_one_stays(loading, monkeypatch):
    """A module that is dropped is unloaded, perhaps under a launch of the other thread."""
    made = loading
    other = []

    def compile_while_another_does(*each):
        if not other:
            other.append(None)
            other.append(gpu.function("naive", "float32", 0))
        return SimpleNamespace(cubin=b"")

    monkeypatch.setattr(gpu, "compile", compile_while_another_does)
    assert gpu.function("naive", "float32", 0) is other[1] is made[0]
    assert gpu.function("naive", "float32", 0) is made[0]
    assert len(made) == 2


def test_fitting_selects_by_type_and_capability():
    assert gpu.fitting(None, "float32", 90) == [
        kernel for kernel in KERNELS.values() if kernel.requires <= 90
    ]
    assert gpu.fitting(None, "float32", 50) == []
    assert KERNELS["naive"] not in gpu.fitting(None, "float32", 90, [(1, 2**24 + 1)])
    with pytest.raises(ValueError, match=r"needs compute capability 7.5, this GPU has 5.0"):
        gpu.fitting(["naive"], "float32", 50)
    with pytest.raises(ValueError, match="naive takes float32, got bfloat16"):
        gpu.fitting(["naive"], "bfloat16", 90)


def test_what_a_run_starts_from(monkeypatch):
    device = SimpleNamespace(id=0, compute_capability="90")
    fake = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: device))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(available=True))
    every = [kernel for kernel in KERNELS.values() if kernel.requires <= 90]
    assert gpu.ready(None, np.float32, [(3, 4)]) == (device, every, "float32")
    assert gpu.ready(iter(["warp"]), "f4", [(3, 4)]) == (device, [KERNELS["warp"]], "float32")
    device.compute_capability = "50"
    with pytest.raises(ValueError, match=r"this GPU has 5\.0"):
        gpu.ready(["naive"], "float32", [(3, 4)])
    assert gpu.ready(None, "float32", [(3, 4)])[1] == []


def test_a_command_line_keeps_no_folder_of_this_machine():
    call = ["/some/where/softmax_lab/__main__.py", "bench", "--shapes", "2x3", "/else/y.csv"]
    assert provenance.command(call) == "python -m softmax_lab bench --shapes 2x3 y.csv"
    named = ["bench", "--kernels", "foil/unshifted"]
    assert provenance.command(named) == "bench --kernels foil/unshifted"
    assert provenance.command([]) == "python"
    assert (
        provenance.clocks_text([(1755, 3201), (1980, 3201)]) == "SM 1755–1980 MHz, memory 3201 MHz"
    )
    assert provenance.clocks_text([]) == "unknown"


# ------------------------------------------------------------------------------ on a GPU

SHAPES = (
    *((5, cols) for cols in (1, 2, 3, 7, 11, 17, 31, 32, 33, 63, 65)),
    *((rows, 9) for rows in (1, 31, 127, 128, 129, 257)),
    (257, 1001),
    (300, 1024),
    (2, 12289),
    (1, 65537),
)


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def check(y, x, *vectors, name="naive") -> None:
    family = KERNELS[name].family
    verdict = family.compare(y.get(), x.get(), *(v.get() for v in vectors), dtype=str(x.dtype))
    assert verdict.ok, verdict.message


def given(cupy, name, rows, cols, kind="normal") -> list:
    """Input arrays of a kernel on the device."""
    return [cupy.asarray(each) for each in KERNELS[name].family.inputs(kind, rows, cols)]


def poisoned(cupy, name, rows, cols):
    """An output array of a kernel, full of NaN."""
    y = cupy.empty(KERNELS[name].family.result(rows, cols), "float32")
    stopwatch.poison(y)
    return y


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_equal_the_oracle(cupy, name, shape):
    kernel = KERNELS[name]
    for kind in kernel.family.kinds:
        arrays = given(cupy, name, *shape, kind)
        y = poisoned(cupy, name, *shape)
        assert gpu.launch(name, *arrays, out=y) is y
        terms = kernel.family.roundings(kind, shape[1], kernel.threads_per_row)
        verdict = kernel.family.compare(y.get(), *(a.get() for a in arrays), terms=terms)
        assert verdict.ok, f"{kind}: {verdict.message}"


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_numpy_goes_there_and_back(name):
    family = KERNELS[name].family
    arrays = family.inputs("normal", 37, 100)
    y = gpu.launch(name, *arrays)
    assert isinstance(y, np.ndarray)
    assert family.compare(y, *arrays).ok
    out = np.full_like(y, np.nan)
    assert gpu.launch(name, *arrays, out=out) is out
    assert np.array_equal(out, y)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_results_repeat_to_the_bit(cupy, name):
    arrays = given(cupy, name, 256, 1024)
    first = gpu.launch(name, *arrays).get().tobytes()
    assert {gpu.launch(name, *arrays).get().tobytes() for _ in range(20)} == {first}


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_empty_matrices_leave_no_error_behind(cupy, name):
    for shape in ((0, 5), (5, 0), (0, 0)):
        arrays = given(cupy, name, *shape, "constant")
        y = gpu.launch(name, *arrays)
        assert (y.shape, y.dtype) == (KERNELS[name].family.result(*shape), np.float32)
        out = poisoned(cupy, name, *shape)
        for empty in (y, gpu.launch(name, *arrays, out=out)):
            assert (empty.get() == 0).all()  # a sum of no terms
    arrays = given(cupy, name, 3, 5)
    check(gpu.launch(name, *arrays), *arrays, name=name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_views_that_are_not_packed_are_refused(cupy, name):
    x, *vectors = given(cupy, name, 4, 6)
    for view in (x.T, x[:, 1:], x[::2], x[:, ::-1], cupy.broadcast_to(x[0], (3, 6))):
        with pytest.raises(ValueError, match="C-contiguous"):
            gpu.launch(name, view, *vectors)
    for k, vector in enumerate(vectors):
        others = list(vectors)
        others[k] = cupy.zeros(2 * vector.size, "float32")[::2]
        assert vector.shape == others[k].shape
        with pytest.raises(ValueError, match="C-contiguous"):
            gpu.launch(name, x, *others)


def shifted(cupy, array, by: int):
    """The same values from `by` elements past a boundary on, still packed."""
    buffer = cupy.zeros(array.size + by, "float32")
    view = buffer[by : by + array.size].reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_packed_views_may_start_anywhere(cupy, name):
    for rows, cols in ((4, 32), (3, 33), (104, 1001)):
        for shift in (1, 2, 3):  # each array at another distance from a boundary of 16 bytes
            arrays = [
                shifted(cupy, a, shift + k) for k, a in enumerate(given(cupy, name, rows, cols))
            ]
            y = shifted(cupy, poisoned(cupy, name, rows, cols), shift)
            check(gpu.launch(name, *arrays, out=y), *arrays, name=name)
    fresh = given(cupy, name, 4, 32)
    check(gpu.launch(name, *fresh), *fresh, name=name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_written_outside_the_output(cupy, name):
    rows, cols = 37, 101
    guard = 4096
    shape = KERNELS[name].family.result(rows, cols)
    size = int(np.prod(shape))
    buffer = cupy.asarray(np.full(size + 2 * guard, 7, "float32"))
    arrays = given(cupy, name, rows, cols)
    y = buffer[guard : guard + size].reshape(shape)
    check(gpu.launch(name, *arrays, out=y), *arrays, name=name)
    around = np.concatenate([buffer[:guard].get(), buffer[guard + size :].get()])
    assert (around == 7).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_follows_its_stream_and_does_not_wait(cupy, name):
    """x comes from a long kernel on the same non-blocking stream; nobody waits in between."""
    long, *vectors = given(cupy, name, 8, 1 << 20)
    x, y = cupy.empty_like(long), poisoned(cupy, name, 8, 1 << 20)
    for each in ("naive", name):
        gpu.launch(each, *given(cupy, each, 8, 8))  # loaded before it counts
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        gpu.launch("naive", long, out=x)
        gpu.launch(name, x, *vectors, out=y)
        still_running = not stream.done
        stream.synchronize()
    assert still_running
    check(y, x, *vectors, name=name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_can_be_captured(cupy, name):
    arrays, y = given(cupy, name, 130, 65), poisoned(cupy, name, 130, 65)
    cupy.cuda.Device().synchronize()
    gpu._FUNCTIONS.clear()  # even a kernel that has to be loaded first
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        gpu.launch(name, *arrays, out=y)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    check(y, *arrays, name=name)


@pytest.mark.gpu
def test_a_capture_that_fails_says_why_and_can_be_ended(cupy):
    x = cupy.asarray(reference.inputs("normal", 4, 4))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="give it out="):
            gpu.launch("naive", x)
        with pytest.raises(ValueError, match="overlaps"):
            gpu.launch("naive", x, out=x)
        stream.end_capture()
        check(gpu.launch("naive", x), x)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("bits", [31, 32])
@pytest.mark.parametrize("family", FAMILIES)
def test_offsets_reach_beyond_any_int(cupy, family, bits):
    """The last row begins at 2^31, where int wraps, and at 2^32, where unsigned does."""
    cols = 1024
    rows = 2**bits // cols + 1
    needed, free = 2.2 * rows * cols * 4, cupy.cuda.runtime.memGetInfo()[0]
    if free < needed:
        pytest.skip(f"needs {needed / 1e9:.0f} GB of GPU memory, {free / 1e9:.0f} GB are free")
    kernels = [kernel for kernel in KERNELS.values() if kernel.family.name == family]
    x, *vectors, y = stopwatch.buffers(kernels[0].family, rows, cols, "float32", pairs=1)[0]
    for kernel in kernels:
        stopwatch.poison(y)
        gpu.launch(kernel, x, *vectors, out=y)
        for part in (slice(0, 5), slice(rows // 2, rows // 2 + 5), slice(rows - 5, rows)):
            check(y[part], x[part], *vectors, name=kernel.name)
    del x, y, vectors
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.mark.gpu
def test_each_device_has_its_own_module_and_result(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    host = reference.inputs("normal", 64, 100)
    with cupy.cuda.Device(1):
        there = cupy.asarray(host)
    here = cupy.asarray(host)
    for x in (there, here, there):
        y = gpu.launch("naive", x)
        assert y.device == x.device
        check(y, x)
    with pytest.raises(ValueError, match="x on GPU 1, out on GPU 0"):
        gpu.launch("naive", there, out=cupy.empty_like(here))


@pytest.mark.gpu
def test_neither_home_nor_cache_folder_is_needed(tmp_path):
    (tmp_path / "file").write_text("")
    code = """
        from softmax_lab import gpu, reference
        x = reference.inputs("normal", 37, 100)
        print(reference.compare(gpu.launch("naive", x), x).ok)
    """
    assert python(code, HOME=str(tmp_path / "file"), CUPY_CACHE_DIR="") == "True"


@pytest.mark.gpu
def test_status_and_provenance_describe_the_device(cupy):
    state = gpu.status()
    assert state.available
    assert state.reason == ""
    assert state.multiprocessors > 0
    assert state.l2_bytes > 1 << 20
    about = provenance.collect(0, "a protocol")
    assert about["GPU"] == state.name
    assert about["protocol"] == "a protocol"
    assert not any(re.search(r"(^|[\s=])[/~.]", value) for value in about.values()), about
