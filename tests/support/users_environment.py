"""A user's virtual environment: with modules of their own, and the dependencies of this project.

The dependencies are links to those of the tests' own environment, so that it takes a second and no
network. It has neither this project nor anything that leads to the checkout.
"""

import importlib.metadata
import subprocess
import sys
import sysconfig
from email import message_from_string
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement

OWN_MODULES: Final = {
    "config.py": "MINE = 'config'\n",
    "tools/__init__.py": "",
    "tools/hammer.py": "MINE = 'tools'\n",
    "storage/__init__.py": "MINE = 'storage'\n",
    "storage/paths.py": "MINE = 'storage.paths'\n",
    "broker.py": "MINE = 'broker'\n",
    "protocol/__init__.py": "MINE = 'protocol'\n",
    "pipeline.py": "MINE = 'pipeline'\n",
}
"""Modules that have the names of this project's rooms."""


def make_environment(directory: Path) -> None:
    """Make the environment in a directory that does not exist yet."""
    packages = _new(directory)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("pykafkalog", "__editable__")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    for name, content in OWN_MODULES.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(content)


def make_plain_environment(directory: Path, wheel: Path) -> None:
    """Make an environment with this wheel, and what it needs without any extra."""
    packages = _new(directory)
    for name in _needed(wheel):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    words = ("--python", str(directory / "bin/python"), "install", "--no-deps", "--no-index")
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, str(wheel)],
        check=True,
        capture_output=True,
        timeout=120,
    )


def _needed(wheel: Path) -> set[str]:
    """The distributions that the wheel requires without an extra, and those that they require."""
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    found: set[str] = set()
    waiting: list[str] = metadata.get_all("Requires-Dist", [])
    while waiting:
        requirement = Requirement(waiting.pop())
        marker = requirement.marker
        if requirement.name in found or (marker and not marker.evaluate({"extra": ""})):
            continue
        found.add(requirement.name)
        waiting += importlib.metadata.requires(requirement.name) or []
    return found


def _new(directory: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=60
    )
    return site_packages(directory)


def site_packages(environment: Path) -> Path:
    """Return the directory into which pip installs."""
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def pip(environment: Path, *words: str) -> str:
    """Run the environment's pip; return its output. Raises AssertionError if it fails."""
    done = subprocess.run(
        [environment / "bin/python", "-m", "pip", "--disable-pip-version-check", *words],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
