"""The project's wheel and source distribution, built without a network by the in-tree backend."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT

_CALL = "import sys, pykafkalog_build; print(getattr(pykafkalog_build, sys.argv[1])(sys.argv[2]))"


def build_wheel(target: Path, project: Path = ROOT) -> Path:
    """A wheel in the directory `target`. Raises AssertionError with the backend's output."""
    return _build("build_wheel", target, project)


def build_sdist(target: Path, project: Path = ROOT) -> Path:
    """A source distribution in the directory `target`."""
    return _build("build_sdist", target, project)


def _build(hook: str, target: Path, project: Path) -> Path:
    # In another process, as front ends do, because setuptools works on the current directory.
    done = subprocess.run(
        [sys.executable, "-c", _CALL, hook, str(target.absolute())],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "publishing")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target / done.stdout.splitlines()[-1]
