"""How the cases of `micro.py` are measured, kept and compared.

A case does some number of operations. Time is user time of this process, best and median of some
rounds, each long enough to be measured. Byte codes are those that more operations add, by function;
they hardly differ between an idle and a crowded machine, so a change of one or two per cent shows.
Byte codes of the files in this folder are not counted.
"""

import collections
import json
import os
import resource
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

Run = Callable[[int], float | None]
"""Does so many operations; returns the user seconds if it measured them itself."""

LEAST_S = 0.05
"""User seconds of a round: the kernel counts them in steps of some milliseconds."""
HERE = str(Path(__file__).parent)


def user_seconds() -> float:
    """User time of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


@dataclass(frozen=True, slots=True)
class Figure:
    """The result of one case."""

    best: float
    median: float
    unit: str

    def __str__(self) -> str:
        return f"{self.best:10.2f} {self.median:10.2f}  {self.unit}"


def timed(run: Run, rounds: int, operations: int | None) -> Figure:
    """Measure microseconds of user time per operation.

    A round has `operations`, or as many as take `LEAST_S`.
    """

    def seconds(count: int) -> float:
        before = user_seconds()
        own = run(count)
        return user_seconds() - before if own is None else own

    count = operations or 1
    while operations is None and (took := seconds(count)) < LEAST_S:
        count = max(count * 2, int(count * LEAST_S * 1.2 / max(took, LEAST_S / 50)))
    each = [seconds(count) / count * 1e6 for _ in range(rounds)]
    return Figure(min(each), statistics.median(each), "us")


def counted(run: Run, top: int, count: int = 200) -> Figure:
    """Count byte codes per operation; print the `top` functions."""
    run(10)  # what only the first operations do
    more, some = _byte_codes(run, 2 * count), _byte_codes(run, count)
    more.subtract(some)
    for name, number in more.most_common(top):
        print(f"{number / count:10.1f}  {name}")
    total = sum(more.values()) / count
    return Figure(total, total, "byte codes")


def _byte_codes(run: Run, count: int) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_filename.startswith(HERE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            counts[f"{os.path.relpath(code.co_filename)}:{code.co_name}"] += 1
        return trace

    sys.settrace(trace)
    try:
        run(count)
    finally:
        sys.settrace(None)
    return counts


def report(figures: Iterable[tuple[str, Figure]], before: Mapping[str, Any]) -> dict[str, Any]:
    """Print each figure as it comes, beside the one from `before`; return all of them for JSON."""
    print(f"{'':52} {'best':>10} {'median':>10}")
    kept = {}
    for name, figure in figures:
        was = before.get(name)
        ratio = f"  x {figure.best / was['best']:.3f}" if was and was["best"] else ""
        print(f"{name:52} {figure}{ratio}", flush=True)
        kept[name] = {"best": figure.best, "median": figure.median, "unit": figure.unit}
    return kept


def load(path: Path | None) -> dict[str, Any]:
    """The figures of an earlier run."""
    figures: dict[str, Any] = json.loads(path.read_text()) if path else {}
    return figures
