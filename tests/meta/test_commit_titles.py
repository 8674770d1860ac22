"""Titles of commits: the rule, and the hook that `scripts/install dev` makes."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.commit_title import flaw
from tests.support.installation import ROOT


@pytest.mark.parametrize(
    "message",
    [
        "network: close the slowest holder when others wait",
        "broker, storage/log: find, close and free what ends\n\nIt was kept.",
        "\n# a comment of git\ndocs: process `S-APP-2`\n# another\n",
        "tests: " + "need " * 13,
        'Revert "Storage: Adds."',
        "Merge branch 'words'",
        "fixup! whatever it is",
    ],
)
def test_a_good_title_passes(message: str) -> None:
    assert flaw(message) is None


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("", "not `area: verb object`"),
        ("close the slowest holder", "not `area: verb object`"),
        ("Network: close the slowest holder", "not `area: verb object`"),
        ("network: Close the slowest holder", "not `area: verb object`"),
        ("network: close the slowest holder.", "not `area: verb object`"),
        ("network: close", "not `area: verb object`"),
        ("network: closes the slowest holder", "`closes` is no imperative"),
        ("network: closed the slowest holder", "`closed` is no imperative"),
        ("network: closing the slowest holder", "`closing` is no imperative"),
        ("network: close " + "x" * 60, "has 75 characters"),
        ("network: close the holder\nas it waits", "not empty"),
    ],
)
def test_a_bad_title_is_named(message: str, wrong: str) -> None:
    assert wrong in (flaw(message) or "")


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory in which `scripts/install dev` finds everything installed."""
    (tmp_path / "scripts").mkdir()
    files = [ROOT / "pyproject.toml", ROOT / "scripts/constraints.txt"]
    for name in ("install", "commit-msg", "commit_title.py", "constraints.txt"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    shutil.copy(files[0], tmp_path)
    version = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    (tmp_path / ".venv/.installed").write_text(f"dev {version}\n")
    return tmp_path


def _install(checkout: Path) -> None:
    subprocess.run(["scripts/install", "dev"], cwd=checkout, check=True)


def test_the_hook_holds_titles_in_every_worktree(checkout: Path) -> None:
    _git(checkout, "init", "--quiet")
    _install(checkout)
    assert "not `area" in _git(checkout, "commit", "--allow-empty", "-m", "Bad").stderr
    assert _git(checkout, "commit", "--allow-empty", "-m", "area: take it").returncode == 0
    _git(checkout, "add", "scripts/commit_title.py")
    _git(checkout, "commit", "-m", "scripts: hold titles")
    _git(checkout, "worktree", "add", "other")
    other = checkout / "other"
    assert _git(other, "commit", "--allow-empty", "-m", "Not installed").returncode == 0
    shutil.copytree(checkout / ".venv", other / ".venv", symlinks=True)
    assert "not `area" in _git(other, "commit", "--allow-empty", "-m", "Bad").stderr


def test_a_hook_of_the_user_stays(checkout: Path) -> None:
    _git(checkout, "init", "--quiet")
    own = checkout / ".git/hooks/commit-msg"
    own.parent.mkdir(exist_ok=True)
    own.write_text("exit 0")
    _install(checkout)
    assert own.read_text() == "exit 0"


def test_directories_for_hooks_and_other_checkouts_are_left_alone(checkout: Path) -> None:
    before = sorted(checkout.rglob("*"))
    _install(checkout)
    assert sorted(checkout.rglob("*")) == before
    _git(checkout, "init", "--quiet")
    _git(checkout, "config", "core.hooksPath", str(checkout / "hooks"))
    _install(checkout)
    assert not (checkout / "hooks").exists()
