"""Asks Apache Kafka and this broker the same; see docs/developing/hostile-clients.md.

  scripts/compare-answers                   every mutation, pairs from the seed, walks: about 20,000
  scripts/compare-answers --requests 500    a sample
  scripts/compare-answers --api FETCH --api PRODUCE
  scripts/compare-answers --access          what clients are allowed and denied, by access rules

The exit code is 0 if tests/answers/accepted.py gives a reason for every difference.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.answers.access_grants import SETTINGS
from tests.answers.access_run import compare_access
from tests.answers.cases import Case
from tests.answers.pair import Pair
from tests.answers.run import Comparison, compare, plan, versions_of
from tests.answers.waits import compare_waits
from tests.answers.walking import WALKS, walk

WALK_STEPS = 60


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, metavar="COUNT", help="so many of all")
    parser.add_argument("--api", action="append", metavar="NAME", help="these only, and no walks")
    parser.add_argument("--walks", type=int, default=20, metavar="COUNT", help="of each kind")
    parser.add_argument("--theirs", metavar="FILE", help="write every finding there, in full")
    parser.add_argument("--access", action="store_true", help="who may do what, with access rules")
    parser.add_argument(
        "--record", action="store_true", help="keep Kafka's: tests/golden/access.json"
    )
    arguments = parser.parse_args(argv)
    console = Console()
    if arguments.access:
        return compare_clients(console, set(arguments.api or ()), record=arguments.record)
    began = time.monotonic()
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as directory, Pair(Path(directory)) as pair:
        cases = plan(versions_of(pair), arguments.seed, arguments.requests)
        if arguments.api:
            cases = [case for case in cases if case.key.name in arguments.api]
        walks = 0 if arguments.api else arguments.walks
        try:
            ask(
                console, pair, cases, comparison, [1_000 * arguments.seed + n for n in range(walks)]
            )
        except KeyboardInterrupt:
            console.print("interrupted")
        tracebacks = pair.output().count("Traceback")
    show(console, comparison, tracebacks, time.monotonic() - began)
    if arguments.theirs:
        text = "\n".join(
            f"{one.text()}\n  Kafka: {one.theirs}\n  here:  {one.ours}"
            for one in comparison.findings
        )
        Path(arguments.theirs).write_text(text)
    return 1 if comparison.findings or tracebacks else 0


def compare_clients(console: Console, apis: set[str], *, record: bool) -> int:
    """The table of tests/conformance/test_access_against_kafka.py, or some of its APIs."""
    began = time.monotonic()
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as directory, Pair(Path(directory), SETTINGS) as pair:
        access = compare_access(
            pair, comparison, wanted=lambda key, client: not apis or key.name in apis
        )
        tracebacks = pair.output().count("Traceback")
    if record:
        access.record.write([client.name for client in access.sets])
    show(console, comparison, tracebacks, time.monotonic() - began)
    return 1 if comparison.findings or tracebacks else 0


def ask(
    console: Console,
    pair: Pair,
    cases: Sequence[Case],
    comparison: Comparison,
    walk_seeds: Sequence[int],
) -> None:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        total = len(cases) + len(walk_seeds) * len(WALKS) * WALK_STEPS
        task = progress.add_task("requests", total=total)

        def advance() -> None:
            found = len(comparison.findings)
            progress.update(task, advance=1, description=f"{found} differ")

        compare(pair, cases, comparison, on_case=advance)
        if walk_seeds:
            compare_waits(pair, comparison)
        for seed in walk_seeds:
            for name in WALKS:
                walk(pair, comparison, name, seed, WALK_STEPS, on_step=advance)


def show(console: Console, comparison: Comparison, tracebacks: int, took_s: float) -> None:
    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    say(f"{took_s:.0f} s, {tracebacks} tracebacks of this broker")
    for line in comparison.lines():
        say(line)
    seen: Counter[tuple[str, str]] = Counter()
    for one in comparison.findings:
        kind = (one.case.split()[0], one.difference.path)
        seen[kind] += 1
        if seen[kind] <= 5:
            say(one.text()[:400])
    for (api, path), count in seen.items():
        if count > 5:
            say(f"... {count - 5} more of {api}: {path or 'all of it'}")


if __name__ == "__main__":
    sys.exit(main())
