"""What is installed is what is here: only users miss a package that pyproject.toml forgets."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "protocol", "storage", "broker", "tools", "pipeline")


def test_every_package_is_listed_and_tests_are_not_shipped() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    here = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for room in ROOMS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert listed == here


def test_the_dockerfile_copies_every_room() -> None:
    copied = (ROOT / "Dockerfile").read_text()
    assert [room for room in ROOMS if f"COPY {room} {room}" not in copied] == []
