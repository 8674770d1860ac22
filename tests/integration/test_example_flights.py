"""The worked example of the README: all flights through the broker, a group and Spark."""

import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT


def test_the_flights_example_holds(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "examples.flights", "--directory", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "All of it holds" in result.stdout
