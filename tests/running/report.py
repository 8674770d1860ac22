"""The end of a run: which tests failed, which were unsteady, and whether that is a failure."""

from collections.abc import Sequence
from typing import Final

from tests.running.stage import Failure, StageResult

MOST_UNSTEADY: Final = 3
"""A run in which more than these fail by chance says too little, so it has failed."""


def has_failed(results: Sequence[StageResult]) -> bool:
    """Return whether a test failed twice, or too many failed by chance."""
    unsteady = [failure for result in results for failure in result.unsteady]
    return any(result.failed for result in results) or _causes(unsteady) > MOST_UNSTEADY


def _causes(failures: Sequence[Failure]) -> int:
    """Count failures; tests of one file with one reason share a fixture that failed, so are one."""
    return len({(failure.test.partition("::")[0], failure.reason) for failure in failures})


def text(results: Sequence[StageResult]) -> str:
    """Return a line for each stage and, as the last lines, each test that did not just pass."""
    lines = [""]
    for result in results:
        counts = [f"{result.passed} passed", f"{len(result.failed)} failed"]
        if result.unsteady:
            counts.append(f"{len(result.unsteady)} unsteady")
        if result.skipped:
            counts.append(f"{result.skipped} skipped")
        minutes, seconds = divmod(round(result.seconds), 60)
        lines.append(f"{result.name:14} {minutes:3} min {seconds:02} s   {', '.join(counts)}")
    unsteady = [failure for result in results for failure in result.unsteady]
    if unsteady:
        lines += ["", "Unsteady: failed beside the others, passed alone"]
        lines += [f"UNSTEADY {failure.test} - {failure.reason}" for failure in unsteady]
        if _causes(unsteady) > MOST_UNSTEADY:
            lines.append(f"More than {MOST_UNSTEADY} are a failure of the run.")
    failed = [failure for result in results for failure in result.failed]
    if failed:
        lines += ["", "Failed"]
        lines += [f"FAILED {failure.test} - {failure.reason}" for failure in failed]
    return "\n".join(lines)
