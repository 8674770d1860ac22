"""Python programs of the ecosystem, each in a virtual environment of its own.

A program brings its own versions of client libraries, which must not become those of the tests.
`tests/ecosystem/requirements/NAME.txt` lists everything to install, with versions, so that a run
next month tries the same. The environments stay in `.cache/` of the checkout; other requirements,
or another interpreter, get another environment.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.installation import ROOT

REQUIREMENTS: Final = ROOT / "tests/ecosystem/requirements"
INSTALL_TIMEOUT_S: Final = 600


def required_version(name: str, distribution: str) -> str:
    """Return the version of a distribution that `NAME.txt` lists."""
    for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines():
        listed, _, version = line.partition("==")
        if listed == distribution:
            return version
    raise AssertionError(f"{name}.txt does not list {distribution}")


def environment(name: str) -> Path:
    """Return the environment with everything in `NAME.txt`; make it if it does not exist yet."""
    requirements = REQUIREMENTS / f"{name}.txt"
    content = requirements.read_bytes() + sys.version.encode() + sys.base_prefix.encode()
    target = ROOT / ".cache" / "ecosystem" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    done = target / ".complete"
    if not done.exists():
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True, timeout=120)
        subprocess.run(
            [
                *(str(target / "bin/python"), "-m", "pip", "--quiet"),
                *("--disable-pip-version-check", "install", "--no-deps", "-r", str(requirements)),
            ],
            check=True,
            timeout=INSTALL_TIMEOUT_S,
        )
        done.touch()
    return target


def python(name: str) -> str:
    """Return the interpreter of an environment."""
    return str(environment(name) / "bin/python")
