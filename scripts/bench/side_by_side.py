"""The bench: this broker beside Apache Kafka 4.4.0, case by case, in alternation.

All sides run at the same time, warmed up by the same load, and measure in turn, the order changing
with each round. Shown are medians, and ratios to the first side with their spread.

examples:
  scripts/bench/side_by_side.py --json now.json --png now.png          everything: some hours
  scripts/bench/side_by_side.py requests/ 'latency/500*' --rounds 7    cases by name; --list
  scripts/bench/side_by_side.py --quick --json before.json             before a change, and
  scripts/bench/side_by_side.py --quick --before before.json           after it
  scripts/bench/side_by_side.py --quick --tree old=../old              beside another checkout
  scripts/bench/side_by_side.py requests/ --sides pure --tree 3.12=.venvs/3.12/bin/python
  scripts/bench/side_by_side.py --markdown now.json                    the tables of the page

Sides: kafka, compiled (where this checkout is), pure, and what --tree names. docs/performance.md
lists the cases, and says how to read the figures.
"""

import argparse
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cases import (  # noqa: E402
    Bench,
    access,
    encryption,
    followers,
    groups,
    growth,
    latency,
    lives,
    requests,
    tools,
    transactions,
)
from floor import Floor  # noqa: E402
from frames import SMALL, batch_of, produce_frame  # noqa: E402
from load import Load  # noqa: E402
from results import Results  # noqa: E402
from rich.console import Console  # noqa: E402
from sides import FLOOR, FORMS, KAFKA, Maker, Side, another, has_compiled  # noqa: E402

console = Console(stderr=True)
ROOMS = (
    *(tools, encryption, access, requests, latency),
    *(followers, growth, groups, transactions, lives),
)
CASES = {name: case for room in ROOMS for name, case in room.CASES.items()}
ROUNDS, QUICK_ROUNDS = 5, 3
SECONDS, QUICK_SECONDS = 4.0, 0.6
MEGABYTES = 300
CLIENTS = 3
"""Loads beside each other that a case may want."""


def chosen_sides(args: argparse.Namespace) -> dict[str, Maker]:
    """Sides by name, in the order of the columns."""
    trees = {name: another(Path(path)) for name, path in args.tree}
    known = {**FORMS, **trees}
    if args.sides:
        names = args.sides.split(",")
        if unknown := [name for name in names if name not in known]:
            raise SystemExit(f"--sides: no side is {unknown[0]!r}; there are {', '.join(known)}")
        if "compiled" in names and not has_compiled():
            raise SystemExit("--sides compiled: nothing compiled fits the sources: scripts/compile")
    else:
        form = "compiled" if has_compiled() else "pure"
        names = [KAFKA, form] if args.quick else [KAFKA, *{form: 0, "pure": 0}]
    return {name: known[name] for name in (*names, *(name for name in trees if name not in names))}


def chosen_cases(args: argparse.Namespace) -> list[str]:
    """Names of cases that match, or those of a quick bench."""
    if not args.cases:
        return [name for name, case in CASES.items() if case.quick or not args.quick]
    patterns = [f"{pattern}*" if pattern.endswith("/") else pattern for pattern in args.cases]
    return [name for name in CASES if any(fnmatchcase(name, pattern) for pattern in patterns)]


def measure(bench: Bench, sides: list[Side], results: Results, name: str, rounds: int) -> None:
    """Measure one case in all rounds."""
    case = CASES[name]
    floor = case.floor and not bench.quick
    taking = [side for side in sides if floor or side.name != FLOOR]
    with ExitStack() as stack:
        stack.callback(bench.end_case)
        measures = {side.name: stack.enter_context(case.prepare(bench, side)) for side in taking}
        for number in range(-1, rounds):  # the first only warms up
            for side in list(measures)[:: 1 if number % 2 else -1]:
                figures = measures[side]()
                if number >= 0:
                    results.note(name, side, figures)
                    told = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
                    console.print(f"  {name}: {side}: {told}", highlight=False)


def about(rounds: int) -> dict[str, Any]:
    """Facts about the run and its machine, for a reader of the figures."""
    commit = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    cpu = next(
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return {
        "measured": datetime.date.today().isoformat(),
        "commit": subprocess.run(commit, capture_output=True, text=True).stdout.strip(),
        "machine": f"{os.cpu_count()} x {cpu}",
        "Python": sys.version.split()[0],
        "rounds": rounds,
        "load average at the start": round(os.getloadavg()[0], 1),
    }


def run(args: argparse.Namespace, names: list[str], makers: dict[str, Maker]) -> Results:
    """Start all sides, measure all cases, stop all sides."""
    rounds = args.rounds or (QUICK_ROUNDS if args.quick else ROUNDS)
    results = Results(about(rounds), list(makers))
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    with tempfile.TemporaryDirectory(prefix="bench-") as where, ExitStack() as stack:
        directory = Path(where)
        loads = []
        for number in range(CLIENTS):
            loads.append(Load(directory, number))
            stack.callback(loads[-1].stop)
        bench = Bench(loads, seconds, args.megabytes, args.quick)
        sides = []
        for name, make in {**makers, FLOOR: Floor}.items():
            sides.append(Side(name, make, directory / name))
            stack.callback(sides[-1].broker.kill)
            sides[-1].broker.start()
        try:
            warm_up_clients(bench, sides[-1])
            if not args.quick:
                warm_up(bench, sides)
            for name in names:
                try:
                    measure(bench, sides, results, name, rounds)
                except Exception as error:  # hours of figures are not lost by one case
                    results.failed[name] = f"{type(error).__name__}: {error}"
                    traceback.print_exc()
                    console.print(f"  {name} FAILED", highlight=False)
        except KeyboardInterrupt:
            console.print("interrupted: the figures so far")
    return results


def warm_up_clients(bench: Bench, floor: Side) -> None:
    """Let the clients' JVMs compile: a request costs them a fifth of what their first ones do."""
    for connections, inflight in ((64, 1), (2, 20)):
        for load in bench.loads:
            load.start(
                "load",
                [produce_frame("none", [0], batch_of(SMALL))],
                port=floor.port,
                connections=connections,
                inflight=inflight,
                seconds=1,
            )
        for load in bench.loads:
            load.finish()


def warm_up(bench: Bench, sides: list[Side]) -> None:
    """Put a load on all, so that the JVM compiles and what all cases need is there."""
    for name in ("requests/4 x 64 KB, 2 x 5", "requests/0.9 KB, 4 x 1", "tools/1024 B x 16 KB"):
        measure(bench, sides, Results({}, []), name, 2)


def arguments() -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add: Any = parser.add_argument
    add("cases", nargs="*", help="patterns; a room is `requests/`; default: all")
    add("--list", action="store_true", help="only name the cases")
    add("--quick", action="store_true", help="few cases and ratios only, under two minutes")
    add("--rounds", type=int, help=f"alternations ({ROUNDS}; {QUICK_ROUNDS} if quick)")
    add("--seconds", type=float, help=f"of a measurement ({SECONDS:.0f})")
    add("--megabytes", type=int, default=MEGABYTES, help="that Kafka's tools produce (%(default)s)")
    add("--sides", help="names, the first is what the others are compared with")
    add(
        "--tree",
        action="append",
        default=[],
        type=lambda text: text.split("=", 1),
        metavar="NAME=PATH",
        help="one more side: a checkout, an environment with a wheel, or an interpreter",
    )
    add("--json", type=Path, help="write every single figure there")
    add("--png", type=Path, help="draw throughput and latency there")
    add("--before", type=Path, help="show changes against figures of --json")
    add("--markdown", type=Path, metavar="JSON", help="print tables of such figures, no more")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if args.markdown:
        print(Results.read(args.markdown).markdown())
        return 0
    names = chosen_cases(args)
    if args.list or not names:
        for name in names or CASES:
            print(f"{name:44} {CASES[name].about}")
        return 0 if names else 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no broker is left behind
    began = time.monotonic()
    results = run(args, names, chosen_sides(args))
    output = Console(width=None if sys.stdout.isatty() else 160)
    output.print(results.ratios_table() if args.quick else results.table())
    if args.before:
        output.print(results.changes(Results.read(args.before)))
    if args.json:
        results.write(args.json)
    if args.png:
        results.draw(args.png)
    console.print(f"{time.monotonic() - began:.0f} s")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
