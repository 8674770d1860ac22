"""Simulated runs of a whole broker from seeds; see docs/developing/simulation.md.

  scripts/simulate --seed 7               one run: its plan, and its findings
  scripts/simulate --seed 7 --trace t.txt the same, and a line for each event
  scripts/simulate --seed 7 --shrink      the smallest plan that still fails, with its trace
  scripts/simulate --seeds 10000          seeds 1 to 10000, on all cores

The same seed gives the same run, byte for byte. The exit code is 0 if nothing was found.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from config.form import choose_form

if "--sabotage" not in sys.argv:  # which replaces functions
    choose_form()

from tests.simulation.plan import Plan, drawn
from tests.simulation.run import Result, simulate
from tests.simulation.sabotage import ALL_SABOTAGES
from tests.simulation.shrink import shrunk


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="one run; with --seeds: the first of them")
    parser.add_argument("--seeds", type=int, metavar="COUNT", help="so many runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write what happened")
    parser.add_argument("--shrink", action="store_true", help="make a failing plan smaller")
    parser.add_argument(
        "--sabotage",
        choices=list(ALL_SABOTAGES),
        metavar="KIND",
        help="on a broker that lacks a guarantee",
    )
    arguments = parser.parse_args(argv)
    console = Console()
    if arguments.seeds is None:
        if arguments.seed is None:
            parser.error("--seed or --seeds is needed")
        prepare(arguments.sabotage)
        return one(console, drawn(arguments.seed), arguments.trace, shrink=arguments.shrink)
    first = 1 if arguments.seed is None else arguments.seed
    seeds = range(first, first + arguments.seeds)
    return many(console, seeds, arguments.jobs, arguments.sabotage)


def prepare(sabotage: str | None) -> None:
    """Prepare a process that simulates: sabotage it if asked to, import, freeze the collector."""
    if sabotage is not None:
        ALL_SABOTAGES[sabotage](setattr)
    simulate(drawn(0))  # so that modules which are imported at first use are
    gc.collect()
    gc.freeze()
    gc.disable()


# ---- one seed


def one(console: Console, plan: Plan, trace: Path | None, *, shrink: bool) -> int:
    console.print(plan.text(), markup=False, highlight=False)
    result = simulate(plan, keep_trace=trace is not None)
    if shrink and not result.is_clean:
        console.print("\nmaking it smaller ...")
        plan = shrunk(
            plan,
            lambda smaller: not simulate(smaller).is_clean,
            lambda smaller: console.print(
                f"  {len(smaller.crowd)} clients, {len(smaller.events)} events, "
                f"{smaller.seconds:.2f} s still fail"
            ),
        )
        result = simulate(plan, keep_trace=True)
        console.print("\nthe smallest plan that fails:")
        console.print(plan.text(), markup=False, highlight=False)
        trace = trace or Path(f"simulation-{plan.seed}.trace")
    if trace is not None:
        trace.write_text("\n".join((*result.trace, "", result.text(), "")))
        console.print(f"\nwhat happened: {trace}")
    show(console, result)
    return 0 if result.is_clean else 1


def show(console: Console, result: Result) -> None:
    console.print()
    console.print(result.report.text(), markup=False, highlight=False)
    for problem in result.problems:
        console.print(problem, style="red", markup=False, highlight=False)
    console.print(f"lives of the broker: {result.lives}, trace {result.digest}")
    console.print("[green]nothing found[/green]" if result.is_clean else "[red]FOUND[/red]")


# ---- many seeds


def many(console: Console, seeds: range, jobs: int, sabotage: str | None) -> int:
    began = time.monotonic()
    found: list[int] = []
    committed = lives = 0
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[found]} found"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(seeds), found=0)
        for seed, text, counts in results(seeds, jobs, sabotage):
            committed += counts[0]
            lives += counts[1]
            if text:
                found.append(seed)
                console.print(f"\nseed {seed}:\n{text}", markup=False, highlight=False)
            progress.update(task, advance=1, found=len(found))
    took = time.monotonic() - began
    console.print(
        f"{len(seeds)} seeds in {took:.0f} s on {jobs} processes ({took * jobs / len(seeds):.3f} s "
        f"each): {committed} transactions committed, {lives} lives of brokers, "
        f"{len(found)} seeds with something found{': ' if found else ''}"
        f"{', '.join(map(str, sorted(found)))}"
    )
    return 1 if found else 0


def results(
    seeds: range, jobs: int, sabotage: str | None
) -> Iterator[tuple[int, str, tuple[int, int]]]:
    if jobs == 1:
        prepare(sabotage)
        yield from map(run, seeds)
        return
    with get_context("spawn").Pool(jobs, prepare, (sabotage,)) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=4)


def run(seed: int) -> tuple[int, str, tuple[int, int]]:
    """Return (seed, findings or "", (committed transactions, lives))."""
    result = simulate(drawn(seed))
    gc.collect()  # once a run: old objects are frozen, new ones are few
    counts = result.report.counts.get("committed", 0), result.lives
    return seed, "" if result.is_clean else result.text(), counts


if __name__ == "__main__":
    sys.exit(main())
