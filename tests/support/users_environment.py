"""A user's virtual environment: with modules of their own, and the dependencies of this project.

The dependencies are links to those of the tests' own environment, so that it takes a second and no
network. It has neither this project nor anything that leads to the checkout.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

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
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=60
    )
    packages = site_packages(directory)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("pykafkalog", "__editable__")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    for name, content in OWN_MODULES.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(content)


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
