"""Runs of `tests.anomalies` from seeds, with progress; see docs/developing/exactly-once.md.

The exit code is 0 if no run showed an anomaly. The directory of a run with one is kept.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.anomalies.cluster_broker import SABOTAGES, command
from tests.anomalies.cluster_run import ClusterPlan, ClusterRun
from tests.anomalies.faults.cluster_nemesis import WEIGHTS, ClusterFaults
from tests.anomalies.faults.nemesis import DEFAULT_WEIGHTS, SLOW_START_WEIGHTS, NemesisPlan
from tests.anomalies.run import Run, RunPlan, RunResult
from tests.support.cluster.member import Kind


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first run; drawn when not given")
    parser.add_argument("--seconds", type=float, default=60, help="of faults, for each run")
    parser.add_argument("--runs", type=int, default=1, help="seeds N, N+1, …")
    parser.add_argument(
        "--keep", action="store_true", help="keep the directories of clean runs too"
    )
    parser.add_argument("--apache", action="store_true", help="on Apache Kafka, the oracle")
    parser.add_argument(
        "--cluster",
        nargs="?",
        const="ours,ours,ours",
        metavar="KINDS",
        help="over several brokers on ZooKeeper: ours or kafka, a word for each (default: three)",
    )
    parser.add_argument(
        "--zookeepers", type=int, default=1, help="3: an ensemble, whose servers fail as well"
    )
    parser.add_argument(
        "--sabotage", choices=tuple(SABOTAGES), help="of the cluster's brokers, to be found"
    )
    parser.add_argument(
        "--faults", metavar="NAME,…", help="only these, such as 'full disk,zookeeper: kill'"
    )
    parser.add_argument("--json", type=Path, help="append a line for each run to this file")
    arguments = parser.parse_args(argv)
    first = arguments.seed if arguments.seed is not None else SystemRandom().randrange(2**31)
    console = Console()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Ends what was started, unmounts disks.
    clean = True
    for seed in range(first, first + arguments.runs):
        console.print(f"[bold]seed {seed}[/bold], {arguments.seconds:g} s of faults")
        directory = Path(tempfile.mkdtemp(prefix=f"anomalies-{seed}-"))
        if arguments.cluster is not None:
            clean = _over_a_cluster(console, directory, seed, arguments) and clean
            continue
        weights = SLOW_START_WEIGHTS if arguments.apache else DEFAULT_WEIGHTS
        plan = RunPlan(
            seed=seed,
            seconds=arguments.seconds,
            apache=arguments.apache,
            nemesis=NemesisPlan(weights=weights),
        )
        result = _play(console, directory, plan)
        _show(console, result)
        if arguments.json is not None:
            with arguments.json.open("a") as out:
                out.write(json.dumps(_as_json(result)) + "\n")
        if result.report.is_clean and not arguments.keep:
            shutil.rmtree(directory)
        else:
            (directory / "report.txt").write_text(result.text() + "\n")
            console.print(f"kept: {directory}")
        clean = clean and result.report.is_clean
    return 0 if clean else 1


def _over_a_cluster(
    console: Console, directory: Path, seed: int, arguments: argparse.Namespace
) -> bool:
    """One run over several brokers; whether nothing was found."""
    kinds = [Kind(word) for word in arguments.cluster.split(",")]
    only = arguments.faults.split(",") if arguments.faults else WEIGHTS
    plan = ClusterPlan(
        seed=seed,
        seconds=arguments.seconds,
        kinds=kinds,
        zookeepers=arguments.zookeepers,
        faults=ClusterFaults(weights={name: WEIGHTS[name] for name in only}),
        own={"command": command(arguments.sabotage)},
    )
    result = ClusterRun(directory, plan).play()
    console.print(result.text(), markup=False, highlight=False)
    if result.is_clean and not arguments.keep:
        shutil.rmtree(directory)
    else:
        (directory / "report.txt").write_text(result.text() + "\n")
        console.print(f"kept: {directory}")
    return result.is_clean


def _play(console: Console, directory: Path, plan: RunPlan) -> RunResult:
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[faults]} faults, {task.fields[clients]} client processes"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=plan.seconds, faults=0, clients=0)

        def watch(run: Run, left_s: float) -> bool:
            progress.update(
                task,
                completed=plan.seconds - left_s,
                faults=run.proxy.counts.total() + run.nemesis.counts.total(),
                clients=run.clients.incarnations,
            )
            return True

        return Run(directory, plan).play(watch)


def _show(console: Console, result: RunResult) -> None:
    for title, counts in (
        ("history", Counter(result.report.counts)),
        ("faults", _by_kind(result.faults)),
    ):
        table = Table(title=title, show_header=False, title_justify="left")
        for name, count in counts.items():
            table.add_row(name, f"{count:,}")
        console.print(table)
    if result.report.is_clean:
        console.print("[green]no anomalies[/green]")
    else:
        console.print(result.report.text(), style="red", markup=False)


def _by_kind(faults: Counter[str]) -> Counter[str]:
    """The faults counted by kind: `drop answer PRODUCE` and `drop answer END_TXN` are one."""
    kinds: Counter[str] = Counter()
    for name, count in faults.items():
        kinds[" ".join(word for word in name.split() if not word.isupper())] += count
    return kinds


def _as_json(result: RunResult) -> dict[str, object]:
    return {
        "seed": result.seed,
        "clean": result.report.is_clean,
        "anomalies": {kind.label: count for kind, count in result.report.kinds.items()},
        "history": result.report.counts,
        "faults": dict(sorted(result.faults.items())),
        "repeats": dict(sorted(result.repeats.items())),
        "client processes": result.incarnations,
    }


if __name__ == "__main__":
    sys.exit(main())
