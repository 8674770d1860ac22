"""Finds the Python that runs the broker cheapest: the same requests on each, side by side.

    .venv/bin/python scripts/bench/pythons.py PYTHON PYTHON … [--alternations 5]

PYTHON is an interpreter of an environment that has this project's dependencies
(`scripts/test-pythons` makes .venvs/3.12 and the like). In each alternation every interpreter runs
`micro.py handler/` once (codec, handlers and log, in-process, as many requests of each) and starts
the command line once, so that other work of the machine affects all of them. Shows processor time:
the median over the alternations, and the smallest.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cpu_seconds(words: list[str]) -> float:
    """Processor time of a command and of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Keep compiled modules, or each start would compile them again.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="+")
    parser.add_argument("--alternations", type=int, default=5)
    args = parser.parse_args()
    work = {
        "requests": lambda python: [
            python,
            "scripts/bench/micro.py",
            "handler/",
            "--operations",
            "3000",
        ],
        "pykafkalog --version": lambda python: [python, "-m", "pykafkalog", "--version"],
    }
    for python in args.python:
        for words in work.values():
            cpu_seconds(words(python))  # compiles
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(args.alternations):
        for python in args.python[:: 1 if number % 2 else -1]:
            for name, words in work.items():
                taken.setdefault((python, name), []).append(cpu_seconds(words(python)))
    for name in work:
        print(f"{name}: seconds of processor time, median (smallest)")
        for python in args.python:
            seconds = taken[python, name]
            print(f"  {statistics.median(seconds):8.3f} ({min(seconds):.3f})  {python}")


if __name__ == "__main__":
    sys.exit(main())
