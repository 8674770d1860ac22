"""The compiled form of the hot modules does the same as their sources, event by event."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.form import PURE_VARIABLE, form_that_runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(form_that_runs() != "compiled", reason="this run is of the sources")
@pytest.mark.parametrize("seed", [3, 7, 1208])
def test_both_forms_give_the_same_trace(seed: int, tmp_path: Path) -> None:
    traces = []
    for pure in ("", "1"):
        trace = tmp_path / f"trace{pure}"
        words = [sys.executable, "scripts/simulate.py", f"--seed={seed}", f"--trace={trace}"]
        environment = {**os.environ, PURE_VARIABLE: pure, "PYTHONHASHSEED": "0"}
        subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
        traces.append(trace.read_text())
    assert traces[0] == traces[1]
    assert traces[0].count("\n") > 100
