"""`scripts/bench/micro.py` measures what it names: every case runs, and checks its answers."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_case_runs() -> None:
    micro = (sys.executable, str(ROOT / "scripts" / "bench" / "micro.py"))
    listed = subprocess.run([*micro, "--list"], check=True, capture_output=True, text=True)
    once = ("--rounds", "1", "--operations", "1")
    measured = subprocess.run([*micro, *once], check=False, capture_output=True, text=True)
    assert measured.returncode == 0, measured.stderr
    names = listed.stdout.splitlines()
    assert len(names) > 50
    assert [name for name in names if name not in measured.stdout] == []
