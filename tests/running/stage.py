"""Runs one stage of the tests, and once more those that failed in it.

A test that fails twice has failed. One that fails beside the others and passes alone is
*unsteady*: it is named at the end of the run, and `tests/running/report.py` says how many of these
a run may have.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

MOST_REPEATED: Final = 30
"""More failures than these are no chance, so they are not repeated."""

PASSED, TESTS_FAILED, NONE_CHOSEN = 0, 1, 5
"""Exit codes of pytest after which its record says all."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a test failed, by the first line of the reason."""

    test: str
    reason: str


@dataclass(frozen=True, slots=True)
class StageResult:
    """The outcome of a stage."""

    name: str
    seconds: float
    passed: int = 0
    skipped: int = 0
    failed: Sequence[Failure] = ()
    """Tests that failed twice, or were not repeated; and failures of the stage as a whole."""
    unsteady: Sequence[Failure] = ()
    """Tests that passed when they were repeated, with the reason of the first failure."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A choice of tests, and how they run."""

    name: str
    words: Sequence[str]
    """Arguments of pytest that both runs get: marks, paths, warnings."""
    side_by_side: Sequence[str] = ()
    """Arguments of the first run only, such as the number of workers."""
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = ROOT

    def run(self, records: Path) -> StageResult:
        """Run the tests and repeat what failed; `records` is a directory for what they print."""
        began = time.monotonic()
        first = self._pytest(records / self.name, [*self.words, *self.side_by_side])
        failed, unsteady = first.failures, ()
        if first.is_complete and 0 < len(failed) <= MOST_REPEATED:
            print(f"--- {self.name}: {len(failed)} failed; once more, alone", flush=True)
            chosen = records / f"{self.name}.failed"
            chosen.write_text(json.dumps([failure.test for failure in failed]))
            words = [*self.words, "--only-in", str(chosen)]
            again = self._pytest(records / f"{self.name}-again", words)
            if again.is_complete:
                sound = again.passed - {failure.test for failure in again.failures}
                unsteady = tuple(f for f in failed if f.test in sound)
                failed = tuple(f for f in failed if f.test not in sound)
        return StageResult(
            name=self.name,
            seconds=time.monotonic() - began,
            passed=len(first.passed - {failure.test for failure in first.failures}),
            skipped=first.skipped,
            failed=failed,
            unsteady=unsteady,
        )

    def _pytest(self, record: Path, words: Sequence[str]) -> "_Record":
        """Run pytest; what it and its workers write to the standard error goes to a file."""
        command = [self.python, "-m", "pytest", "-q", "-p", "tests.running.record"]
        with record.with_suffix(".stderr").open("w") as errors:
            code = subprocess.run(
                [*command, "--record", str(record), *words],
                cwd=self.directory,
                env={**os.environ, **self.environment},
                stderr=errors,
                check=False,
            ).returncode
        if code not in (PASSED, TESTS_FAILED, NONE_CHOSEN) or not record.exists():
            end = record.with_suffix(".stderr").read_text(errors="replace").strip()
            print(end[-4_000:], flush=True)
            why = ([line for line in end.splitlines() if "error:" in line] or ["see above"])[0]
            return _Record(False, failures=(Failure("pytest", f"exit code {code}: {why}"),))
        told = json.loads(record.read_text())
        failures = [Failure(*item) for item in told["failed"].items()]
        not_collected = [Failure(*item) for item in told["not_collected"].items()]
        return _Record(
            is_complete=not not_collected,
            passed=frozenset(told["passed"]),
            skipped=told["skipped"],
            failures=(*not_collected, *failures),
        )


@dataclass(frozen=True, slots=True)
class _Record:
    """One run of pytest."""

    is_complete: bool
    """Whether all tests were found, so that those that failed can be repeated."""
    passed: frozenset[str] = frozenset()
    """Tests whose own part passed; one whose teardown failed is among the failures too."""
    skipped: int = 0
    failures: tuple[Failure, ...] = ()
