"""`scripts/bench/controller.py` runs to its end."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = (sys.executable, str(ROOT / "scripts" / "bench" / "controller.py"))


def run(brokers: int, partitions: int) -> subprocess.CompletedProcess[str]:
    size = ("--brokers", str(brokers), "--partitions", str(partitions))
    return subprocess.run([*BENCH, *size], check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("brokers", "partitions"),
    [
        (3, 200),  # no broker without a replica
        (12, 1000),  # partitions whose fourth rack is the first one's
    ],
)
def test_every_step_runs(brokers: int, partitions: int) -> None:
    done = run(brokers, partitions)
    assert done.returncode == 0, done.stderr
    steps = done.stdout.splitlines()[1:]
    assert len(steps) == 7
    assert steps[-1].startswith(f"{partitions // 200} partitions moved ")


def test_too_few_brokers_are_refused() -> None:
    done = run(2, 200)
    assert done.returncode == 2
    assert "--brokers must be 3 at least" in done.stderr
