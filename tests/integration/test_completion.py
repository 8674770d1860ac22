"""`pykafkalog completion`: real shells complete commands, options, choices and files with it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import pykafkalog
from tests.support.terminal import Terminal

needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")

CASES = (
    ("pykafkalog get-o", "pykafkalog get-offsets "),
    ("pykafkalog topics --desc", "pykafkalog topics --describe "),
    ("pykafkalog completion fi", "pykafkalog completion fish "),
    ("pykafkalog fsck my-l", "pykafkalog fsck my-logs/"),
    ("pykafkalog pipeline arch", "pykafkalog pipeline archive "),
)
"""The words before a TAB, and the line that the shell makes of them."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home and working directory with the scripts in it."""
    (tmp_path / "my-logs").mkdir()
    for shell in ("bash", "zsh", "fish"):
        done = pykafkalog("completion", shell)
        assert done.returncode == 0, done.stderr
        (tmp_path / f"complete.{shell}").write_text(done.stdout)
    (tmp_path / "zfunc").mkdir()
    (tmp_path / "complete.zsh").rename(tmp_path / "zfunc/_pykafkalog")
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PS1": "ready> ", "ZDOTDIR": str(home)}


@pytest.mark.parametrize(
    ("shell", "prepare"),
    [
        (["bash", "--norc", "--noprofile"], 'eval "$(< complete.bash)"'),
        pytest.param(
            ["zsh", "-f"],
            "fpath=($PWD/zfunc $fpath); autoload -U compinit; compinit -u",
            marks=needs_zsh,
        ),
    ],
)
def test_a_tab_completes(shell: list[str], prepare: str, place: Path) -> None:
    with Terminal(shell, environment(place), place) as terminal:
        terminal.wait_to_see("ready>")
        terminal.type(f"{prepare}; clear; PS1='now> '\n")
        terminal.wait_to_see("now>")
        for typed, wanted in CASES:
            terminal.type(typed + "\t")
            terminal.wait_to_see(f"now> {wanted}".rstrip(), 10)
            terminal.type("\x15clear\n")
            terminal.wait_to_see("now>", 10)


@needs_fish
@pytest.mark.parametrize(("typed", "wanted"), CASES)
def test_fish_completes(typed: str, wanted: str, place: Path) -> None:
    said = subprocess.run(
        ["fish", "--no-config", "-c", "source complete.fish; complete -C $argv[1]", typed],
        cwd=place,
        env={**environment(place), "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert wanted.split()[-1] in [line.split("\t")[0] for line in said.splitlines()]


def test_a_shell_that_is_not_known_is_wrong_usage() -> None:
    done = pykafkalog("completion", "tcl")
    assert done.returncode == 2
    assert "invalid choice: 'tcl'" in done.stderr
