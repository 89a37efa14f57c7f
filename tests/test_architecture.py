"""The shape of the project, held: who imports whom, what runs where, how a kernel's file looks.

Each rule is a function from text to complaints. Beside the test on the real files stands one on
text that breaks the rule.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from pybtex.database import parse_file

from softmax_lab import probe, registry

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "softmax_lab"

# Each module imports only from those before it.
ORDER = (
    "facts",
    "arguments",
    "units",
    "counts",
    "counters",
    "coalescing",
    "unrolling",
    "shuffle",
    "online",
    "merging",
    "replay",
    "roofline",
    "cost",
    "block_cost",
    "gemv_cost",
    "reference",
    "products",
    "families",
    "registry",
    "choice",
    "fingerprint",
    "recordrows",
    "recordfile",
    "records",
    "series",
    "published",
    "agreement",
    "excerpts",
    "promises",
    "contract",
    "nvrtc",
    "provenance",
    "emulator",
    "gpu",
    "stopwatch",
    "bench",
    "launches",
    "rerun",
    "profiler",
    "soak",
    "trial",
    "pressure",
    "ledger",
    "probe",
    "ops",
    "peers",
    "svg",
    "mathml",
    "prose",
    "canvas",
    "labels",
    "runs",
    "roof_chart",
    "plots",
    "frames",
    "findings",
    "tables",
    "versus",
    "rungs",
    "clock",
    "access",
    "overhead",
    "floors",
    "clock_plots",
    "clock_frames",
    "machine",
    "meeting",
    "theirs",
    "rare",
    "wide",
    "caches",
    "pace",
    "waits",
    "contract_table",
    "tried",
    "lane_art",
    "microscope",
    "shuffle_frames",
    "tree_frames",
    "online_frames",
    "climbs",
    "trace_frames",
    "hand",
    "overflow",
    "overflow_frames",
    "widgets",
    "steppers",
    "cuts",
    "planted",
    "sanitize",
    "livefile",
    "live",
    "alive",
    "explorers",
    "merging_frames",
    "predictions",
    "labs",
    "doctor",
    "__main__",
)
VIEWS = set(
    "svg mathml prose canvas labels roof_chart plots frames runs findings tables widgets versus "
    "clock access machine meeting theirs rare wide caches pace waits tried lane_art "
    "microscope shuffle_frames tree_frames online_frames contract_table trace_frames hand "
    "steppers overhead floors clock_plots clock_frames overflow overflow_frames rungs climbs alive "
    "explorers merging_frames predictions labs".split()
)
RUNS = {
    "emulator",
    "probe",
    "nvrtc",
    "gpu",
    "stopwatch",
    "bench",
    "launches",
    "rerun",
    "profiler",
    "soak",
    "trial",
    "pressure",
    "sanitize",
}  # what launches or measures
VERBS = {"count", "measure", "launch"}  # the ledger's functions that do
GPU_ONLY = set(
    "nvrtc provenance gpu stopwatch bench launches rerun profiler soak trial pressure "
    "sanitize".split()
)
CUPY = {"cupy", "cupyx", "cupy_backends"}
LONGEST = 300  # lines of a module; a longer one has a second idea in it

INCLUDES = {
    "math_constants.h",
    "cooperative_groups.h",
    "cooperative_groups/reduce.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "../common.cuh",
    "../merge.cuh",
    "../hopper.cuh",
}
HEAD = ("Idea", "Launch", "Traffic", "Source")


parsed = cache(ast.parse)  # five rules read each module


def modules() -> dict[Path, str]:
    """Every Python file of the package and the name of the module in ORDER it belongs to."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {path: path.relative_to(PACKAGE).with_suffix("").parts[0] for path in files}


def name(path: Path) -> str:
    """How a test on one file is called."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def complaints(rule: Callable[[str, str], object], left_out: set[str] = frozenset()) -> dict:
    """What rule(module, source) has against each file of the package, where it has anything."""
    found = {
        name(path): rule(module, path.read_text())
        for path, module in modules().items()
        if module not in left_out
    }
    assert found
    return {path: faults for path, faults in found.items() if faults}


@cache
def bibliography() -> list[str]:
    """The tags of the works in book/references.bib."""
    entries = parse_file(ROOT / "book" / "references.bib").entries.values()
    return [entry.fields["shorthand"] for entry in entries]


def kernel_files() -> list[Path]:
    return sorted(registry.kernel_folder().glob("*/*.cu"))


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """(module, name) of every import, wherever it stands, `import_module("...")` included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((name.name, None) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                assert level == 0, (
                    f"line {node.lineno}: write imports out: from softmax_lab import …"
                )
                yield from ((module, name.name) for name in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module, None


def imported_modules(tree: ast.AST) -> set[str]:
    """Modules of ours that `tree` imports, by their name in ORDER."""
    found = set()
    for module, name in imports(tree):
        head, *rest = module.split(".")
        if head == "softmax_lab":
            found.add(rest[0] if rest else name)
    return found - {None, "__version__"}


def out_of_order(module: str, source: str) -> set[str]:
    """Modules that `module` imports and must not, by ORDER."""
    return imported_modules(parsed(source)) - set(ORDER[: ORDER.index(module) + 1])


def views_that_run(source: str) -> set[str]:
    """What a view imports of that which launches or measures."""
    tree = parsed(source)
    verbs = {
        name or module for module, name in imports(tree) if module == "softmax_lab.ledger"
    } & VERBS
    whole = {"ledger"} if ("softmax_lab", "ledger") in set(imports(tree)) else set()
    return imported_modules(tree) & RUNS | verbs | whole


def cupy_imports(source: str) -> set[str]:
    return {module.split(".")[0] for module, _ in imports(parsed(source))} & CUPY


def repeated_lists(source: str, names: set[str]) -> list[int]:
    """Lines of literals that name two kernels or more: a second list."""
    lines = []
    for node in ast.walk(parsed(source)):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        texts = {part.value for part in parts if isinstance(part, ast.Constant)}
        if len(texts & names) > 1:
            lines.append(node.lineno)
    return lines


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)


def head_faults(source: str) -> list[str]:
    """Which of the four opening lines of a kernel's file are not what they should be."""
    lines = (source.splitlines() + [""] * 4)[:4]
    return [
        f"line {number} must be `// {word}: …`, is {line!r}"
        for number, (word, line) in enumerate(zip(HEAD, lines, strict=True), 1)
        if not re.match(rf"// {word}: \S", line)
    ]


def source_faults(source: str, known: set[str]) -> set[str]:
    """Tags of the Source line that are not `known`; the line where it has none, nor "ours"."""
    line = source.splitlines()[3]
    tags = set(re.findall(r"\[(\w+)\]", line))
    return tags - known if tags or ": ours" in line else {line}


def include_faults(source: str) -> set[str]:
    found = re.findall(r"#\s*include\s*[<\"]([^>\"]*)[>\"]", without_comments(source))
    return set(found) - INCLUDES


def narrow_products(source: str) -> list[str]:
    """Products with `rows` or `cols` in which no factor is a size_t: they wrap at 2^31."""
    code = without_comments(source)
    wide = set(re.findall(r"\bsize_t\s+(\w+)\s*(?:=|;|,|\))", code))
    cast = r"(?:static_cast<size_t>|size_t)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
    operand = rf"(?:{cast}|\(size_t\)\s*\w+|[\w.]+)"
    faults = []
    for product in re.finditer(rf"{operand}(?:\s*\*\s*{operand})+", code):
        factors = [factor.strip() for factor in product.group().split("*")]
        sizes = {"rows", "cols"} & set(factors)
        first_two = factors[:2]  # a * b * c is (a * b) * c: the first product decides
        if sizes and not any("size_t" in f or f in wide for f in first_two):
            faults.append(product.group())
    return faults


def tracked_files() -> list[Path]:
    """Files under version control or about to be; in an exported tree, all but what make makes."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]
    made = {".venv", "_build", "vendor", "build", "dist", ".git"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not any(
            part in made or part.endswith(("_cache", ".egg-info", "__pycache__", ".hypothesis"))
            for part in path.relative_to(ROOT).parts
        )
    ]


# A folder of someone's machine, a package registry's host; split, so as not to find this file.
MACHINE = re.compile(
    r"(?<![\w.}])/(?:wo" r"rk|fa" r"rm|ro" r"ot|tm" r"p|ho" r"me/\w+|Use" r"rs/\w+)/"
)
HOSTS = re.compile(
    r"\b(?:py" r"pi\.org|pythonho" r"sted\.org|registry\.npm" r"js\.org|deb\.deb" r"ian\.org)"
)


def foreign(text: str) -> list[str]:
    return [match.group() for pattern in (MACHINE, HOSTS) for match in pattern.finditer(text)]


def python(code: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run `code` in a fresh interpreter, with the package on its path and little else set."""
    path = os.pathsep.join(filter(None, (environment.pop("first", ""), str(ROOT))))
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )


# --- modules --------------------------------------------------------------------------------------


def test_every_module_has_its_place_in_the_order():
    assert set(modules().values()) - {"__init__"} <= set(ORDER)


def test_modules_import_only_from_those_above():
    assert not complaints(out_of_order, {"__init__"})


def test_import_order_is_seen_through_every_way_of_importing():
    assert out_of_order("cost", "from softmax_lab import ledger, counts") == {"ledger"}
    assert out_of_order("cost", "def f():\n    import softmax_lab.gpu") == {"gpu"}
    assert out_of_order("cost", "from softmax_lab.plots import bar") == {"plots"}
    assert out_of_order("cost", "import_module('softmax_lab.gpu')") == {"gpu"}
    assert not out_of_order("ledger", "from softmax_lab.cost import evaluate")


def test_only_gpu_modules_import_cupy():
    assert not complaints(lambda _, source: cupy_imports(source), GPU_ONLY)


def test_cupy_is_seen_however_it_is_imported():
    assert cupy_imports("def f():\n    import cupy.cuda as c") == {"cupy"}
    assert cupy_imports("from cupy_backends.cuda.libs import nvrtc") == {"cupy_backends"}
    assert cupy_imports("importlib.import_module('cupyx')") == {"cupyx"}


def test_views_never_launch_or_measure():
    assert set(modules().values()) > VIEWS
    assert not complaints(lambda _, source: views_that_run(source), {*ORDER, "__init__"} - VIEWS)


def test_views_that_would_run_something_are_seen():
    assert views_that_run("from softmax_lab import gpu") == {"gpu"}
    assert views_that_run("from softmax_lab.ledger import Ledger, measure") == {"measure"}
    assert views_that_run("from softmax_lab import ledger") == {"ledger"}
    assert not views_that_run("from softmax_lab.ledger import Ledger")


def test_modules_are_short():
    lengths = complaints(lambda _, source: len(source.splitlines()))
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def test_there_is_one_list_of_kernels():
    names = set(registry.KERNELS)
    assert not complaints(lambda _, source: repeated_lists(source, names), {"registry"})


def test_a_second_list_is_seen():
    names = {"naive", "online"}
    assert repeated_lists("x = 1\ny = ['naive', 'online']", names) == [2]
    assert repeated_lists("colours = {'naive': 1, 'online': 2}", names) == [1]
    assert not repeated_lists("f('naive', shape=('online',))", names)


# --- kernels --------------------------------------------------------------------------------------


def test_registry_and_kernel_files_are_the_same_set():
    every = {**registry.KERNELS, **registry.EXHIBITS}
    registered = [kernel.path for kernel in every.values() if not kernel.code]
    assert sorted([*registered, probe.path()]) == kernel_files()
    assert all(registry.KERNELS[kernel.code] for kernel in every.values() if kernel.code)


@pytest.mark.parametrize("path", kernel_files(), ids=name)
def test_kernel_files_follow_the_house(path):
    source = path.read_text()
    assert not head_faults(source)
    assert not include_faults(source)
    assert not narrow_products(source)
    assert re.search(rf'extern "C" __global__ void {path.stem}\(', source)


@pytest.mark.parametrize("path", kernel_files(), ids=name)
def test_kernels_name_their_source_by_its_tag_in_the_bibliography(path):
    assert not source_faults(path.read_text(), set(bibliography()))


def test_a_source_that_cannot_be_looked_up_is_seen():
    head = "// Idea: a\n// Launch: b\n// Traffic: c\n// Source: {}\n".format
    assert not source_faults(head("after [MSF], [OPS] V2."), {"MSF", "OPS"})
    assert not source_faults(head("ours."), {"MSF"})
    assert source_faults(head("after [MSF] and [ABC]."), {"MSF"}) == {"ABC"}
    assert source_faults(head("Milakov 2018."), {"MSF"})


def test_kernel_rules_see_what_breaks_them():
    good = "// Idea: a\n// Launch: b\n// Traffic: c\n// Source: d\n"
    assert not head_faults(good)
    assert head_faults(good.replace("// Traffic: c\n", ""))
    assert head_faults(good.replace("Idea: a", "Idea:"))
    assert include_faults("#include <cmath>\n#include <cuda_fp16.h>") == {"cmath"}
    assert not include_faults("// #include <cmath>")


@pytest.mark.parametrize(
    "code",
    [
        "int row = 0; x[row * cols + i]",
        "x + (blockIdx.x * cols)",
        "x[row * (cols)]; y[threadIdx.x * cols]",
        "int row; size_t k = row * cols;",
        "int n = rows * cols;",
        "x[2 * row * cols]; size_t other = 1;",
    ],
)
def test_narrow_offsets_are_seen(code):
    assert narrow_products(code)


@pytest.mark.parametrize(
    "code",
    [
        "const size_t row = 0; x[row * cols + i]",
        "x[static_cast<size_t>(row) * cols]",
        "x[size_t(blockIdx.x * 4 + f(1)) * cols]",
        "(size_t)row * cols",
        "x += 2 * 3; for (int i = 0; i < cols; ++i)",
        "void f(const float* x, float* y, int rows, int cols)",
        "// row * cols\n",
    ],
)
def test_wide_offsets_pass(code):
    assert not narrow_products(code)


# --- the tree -------------------------------------------------------------------------------------


def test_no_path_of_a_machine_and_no_registry_host_is_written_down():
    found = {}
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # a picture
        if words := foreign(text):
            found[str(path.relative_to(ROOT))] = words
    assert not found


def test_machine_paths_and_hosts_are_seen():
    assert foreign("open('/tm" + "p/x')")
    assert foreign("cd /ho" + "me/ada/softmax")
    assert foreign("https://py" + "pi.org/project")
    assert not foreign("softmax_lab/tmp" + "/x and https://example.org/ho" + "me/")


# --- importing ------------------------------------------------------------------------------------

HEAVY = "import softmax_lab, sys; print(sorted({m.split('.')[0] for m in sys.modules} & {%s}))"


def test_import_is_light(tmp_path):
    names = ", ".join(
        repr(n) for n in (*sorted(CUPY), "matplotlib", "ipywidgets", "IPython", "pygments")
    )
    done = python(HEAVY % names, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    control = python("import matplotlib; " + HEAVY % names, tmp_path)
    assert control.stdout.strip() == "['matplotlib']"


WITHOUT_GPU = """
import numpy as np, softmax_lab
from softmax_lab import gpu, reference
status = gpu.status()
assert not status.available, status
assert status.reason.strip(), status
x = np.arange(12, dtype=np.float32).reshape(3, 4)
y = softmax_lab.launch("naive", x, device="cpu")
assert reference.compare(y, x).ok
try:
    softmax_lab.launch("naive", x, device="gpu")
except RuntimeError as error:
    print(error)
else:
    raise SystemExit("asking for a GPU that is not there raised nothing")
"""


@pytest.mark.parametrize(
    "error",
    [None, "ImportError"]
    + [pytest.param(each, marks=pytest.mark.slow) for each in ("RuntimeError", "PermissionError")],
)
def test_package_works_where_cupy_does_not(tmp_path, error):
    """No GPU to be seen, or a CuPy that fails on import in a way of its own (public case C03)."""
    if error:
        (tmp_path / "cupy.py").write_text(f"raise {error}('a broken install')\n")
    done = python(WITHOUT_GPU, tmp_path, first=str(tmp_path), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()  # what to do, in words
