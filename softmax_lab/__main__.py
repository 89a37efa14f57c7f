"""`python -m softmax_lab`: what this machine can do, and the runs that fill the records."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence

from softmax_lab import facts, registry

SHAPES = "rows x cols; default: those of the record, by family of kernels"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 1 if it could not, 2 for a line that cannot be read."""
    options = _parser().parse_args(argv)
    try:
        return options.command(options)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"softmax_lab {options.name}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m softmax_lab", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True, metavar="command")

    def add(name: str, run, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(command=run)
        return one

    add("doctor", _doctor, "say what this machine can do, what is missing and how to get it")
    bench = add("bench", _bench, "time the kernels on this machine's GPU and record it")
    clock = add("launches", _launches, "measure what launches cost by several clocks, record it")
    clock.add_argument("--publish", action="store_true", help="into the package's records")
    again = add("rerun", _rerun, "measure a published table again, by its protocol and by ours")
    again.add_argument("--shapes", type=_shapes, metavar="RxC,RxC", help="default: as published")
    again.add_argument("--publish", action="store_true", help="into the package's records")
    profile = add("profile", _profile, "read hardware counters with Nsight Compute and record them")
    agree = add("agree", _agree, "time kernels again and say how far the record is from it")
    for one in (bench, profile, agree):
        one.add_argument("--kernels", type=_names, metavar="A,B", help="default: all that fit")
        one.add_argument("--shapes", type=_shapes, metavar="RxC,RxC", help=SHAPES)
        types = tuple(facts.ITEMSIZE)
        one.add_argument("--dtype", choices=types, default="float32", help="default: float32")
    for one in (bench, profile):
        one.add_argument("--publish", action="store_true", help="into the package's records")
    bench.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help="timed replays of each graph; default: as in the record",
    )
    bench.add_argument(
        "--warm", action="store_true", help="also single launches on one buffer pair"
    )
    profile.add_argument("--child", action="store_true", help=argparse.SUPPRESS)

    sanitize = add("sanitize", _sanitize, "run every kernel under compute-sanitizer, record it")
    soak = add("soak", _soak, "hold random launches on this machine's GPU against the oracle")
    soak.add_argument("--launches", type=int, metavar="N", help="default: 100000")
    soak.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    soak.add_argument("--batch", type=int, metavar="B", help="only that one again, unrecorded")
    pressure = add("pressure", _pressure, "launch from many streams and threads, and after errors")
    for one in (sanitize, soak, pressure):
        one.add_argument("--kernels", type=_names, metavar="A,B", help="default: all")
        one.add_argument("--publish", action="store_true", help="into the package's records")
    sanitize.add_argument(
        "--shapes",
        type=_shapes,
        metavar="RxC,RxC",
        help="rows x cols; default: those of the record",
    )
    for hidden in ("--tool", "--planted"):
        sanitize.add_argument(hidden, help=argparse.SUPPRESS)
    sanitize.add_argument("--child", action="store_true", help=argparse.SUPPRESS)

    records = add("records", _records, "list the records, or those whose source has changed")
    actions = "all of them, those whose kernel has changed since, or forget a kernel's own ones"
    records.add_argument("action", choices=("list", "stale", "drop"), help=actions)
    records.add_argument("kernel", nargs="?", help="with drop: the kernel")

    compiled = add(
        "compile", _compile, "compile kernels with NVRTC, without a GPU; registers, spills"
    )
    compiled.add_argument("--kernels", type=_names, metavar="A,B", help="default: all")
    compiled.add_argument("--archs", type=_names, metavar="sm_90,…", help="default: all")

    contract = add("contract", _contract, "say what the operators and kernels do with any input")
    contract.add_argument(
        "--peers", action="store_true", help="run torch, SciPy, JAX where installed and record them"
    )
    contract.add_argument(
        "--large", action="store_true", help="with --peers, also more than 2^31 elements (20 GB)"
    )
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    if not all(names):
        raise argparse.ArgumentTypeError(f"names are written A,B with none left out, got {text!r}")
    return names


def _shapes(text: str) -> list[tuple[int, int]]:
    out = []
    for each in text.split(","):
        rows, x, cols = each.lower().partition("x")
        if not (x and rows.isdecimal() and cols.isdecimal()):
            raise argparse.ArgumentTypeError(f"a shape is written 256x1024, got {each!r}")
        out.append((int(rows), int(cols)))
    return out


def _doctor(options) -> int:
    from softmax_lab import doctor

    return doctor.main()


def _bench(options) -> int:
    from softmax_lab import bench

    session = bench.run(
        options.kernels,
        options.shapes,
        options.dtype,
        repeats=bench.REPEATS if options.repeats is None else options.repeats,
        warm=options.warm,
        say=lambda line: print(line, flush=True),
    )
    print(f"recorded in {session.save(options.publish)}")
    return 0


def _agree(options) -> int:
    from softmax_lab import agreement, bench

    session = bench.run(options.kernels, options.shapes, options.dtype)
    lines, agreed = agreement.report(session.runs())
    print(*lines, sep="\n")
    return 0 if agreed else 1


def _launches(options) -> int:
    from softmax_lab import launches

    session = launches.run(say=lambda line: print(line, flush=True))
    print(f"recorded in {session.save(options.publish)}")
    return 0


def _rerun(options) -> int:
    from softmax_lab import rerun

    session = rerun.run(options.shapes, say=lambda line: print(line, flush=True))
    print(f"recorded in {session.save(options.publish)}")
    return 0


def _profile(options) -> int:
    from softmax_lab import profiler

    if options.child:  # `profiler.command` names both
        profiler.child(options.kernels, options.shapes, options.dtype)
        return 0
    session = profiler.run(
        options.kernels, options.shapes, options.dtype, say=lambda line: print(line, flush=True)
    )
    print(f"recorded in {session.save(options.publish)}")
    return 0


def _sanitize(options) -> int:
    from softmax_lab import sanitize

    if options.child:  # `sanitize.command` names what it is to do
        if options.planted:
            sanitize.child_with_a_defect(options.planted)
        else:
            sanitize.child(options.tool, options.kernels, options.shapes)
        return 0
    session, errors = sanitize.run(
        options.kernels,
        options.shapes or sanitize.SHAPES,
        say=lambda line: print(line, flush=True),
    )
    print(f"recorded in {session.save(options.publish)}")
    return 1 if errors else 0


def _soak(options) -> int:
    from softmax_lab import soak

    session, failed = soak.run(
        soak.LAUNCHES if options.launches is None else options.launches,
        options.seed,
        options.kernels,
        batch=options.batch,
        say=lambda line: print(line, flush=True),
    )
    if options.batch is None:
        print(f"recorded in {session.save(options.publish)}")
    return 1 if failed else 0


def _pressure(options) -> int:
    from softmax_lab import pressure

    session, failed = pressure.run(options.kernels, say=lambda line: print(line, flush=True))
    print(f"recorded in {session.save(options.publish)}")
    return 1 if failed else 0


def _records(options) -> int:
    from softmax_lab import records

    if (options.action == "drop") != bool(options.kernel):
        raise ValueError("records drop takes a kernel's name; list and stale take none")
    if options.action == "drop":
        removed = records.drop(options.kernel)
        print(f"{removed} rows of {options.kernel} removed")
        return 0 if removed else 1
    if options.action == "stale":
        found = Counter((str(path), row.kernel) for path, row in records.stale())
        for (path, kernel), count in found.items():
            print(f"{path}: {count} rows of {kernel} were recorded from other source")
        if not found:
            print("no stale rows")
        return 1 if found else 0
    if not records.gpus():
        print("nothing is recorded yet")
    for slug in records.gpus():
        for kind in records.KINDS:
            table = records.table(kind, slug)
            shapes = Counter((row.kernel, row.dtype, row.rows, row.cols) for row in table.rows)
            for (kernel, dtype, rows, cols), count in sorted(shapes.items()):
                print(f"{slug}  {kind:<7}  {kernel} {dtype} {rows}x{cols}: {count} rows")
    return 0


def _contract(options) -> int:
    from softmax_lab import contract_table, peers

    if options.large and not options.peers:
        raise ValueError("--large goes with --peers")
    if options.peers:
        print(f"recorded in {peers.record(lambda line: print(line, flush=True), options.large)}")
        return 0
    print(contract_table.text(shutil.get_terminal_size((100, 24)).columns))
    return 0


def _compile(options) -> int:
    from softmax_lab import nvrtc

    kernels = [registry.get(name) for name in options.kernels or registry.KERNELS]
    capabilities = {arch: nvrtc.capability(arch) for arch in options.archs or nvrtc.ARCHS}
    head = f"{'kernel':<24} {'arch':<7} {'registers':>9} {'shared [B]':>10} {'spills [B]':>10}"
    spilled = False
    for kernel in kernels:
        for arch, capability in capabilities.items():
            if not options.archs and capability < kernel.requires:
                continue
            for dtype in kernel.dtypes:
                made = nvrtc.compile(kernel, arch, dtype)
                spilled |= made.spill_bytes > 0
                sizes = f"{made.registers:>9} {made.shared_bytes:>10} {made.spill_bytes:>10}"
                print(*filter(None, [head, f"{kernel.name:<24} {arch:<7} {sizes}"]), sep="\n")
                head = ""  # printed once, and only when there is something below it
    return 1 if spilled else 0


if __name__ == "__main__":
    sys.exit(main())
