"""Tables on a terminal of 80 columns, the same rows in a pipe, and a watch that is drawn anew."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from tests.support.command_in_process import in_process
from tests.support.installation import under_test

COLUMNS, ROWS = 80, 24
_CODES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[78=>])")
LONG = "a-topic-with-a-name-that-is-much-longer-than-any-column-of-a-table-could-be"


class Terminal:
    """A command whose outputs are a terminal."""

    def __init__(self, *words: str) -> None:
        used = under_test()
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = used.process_environment()
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [*used.tool(), *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=used.directory,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = b""

    def read(self) -> bool:
        """A piece more; False at the end."""
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # how Linux tells that nobody has the other end any more
            return False
        self.seen += piece
        return bool(piece)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self.read():
            pass
        os.close(self._ours)
        return self.process.wait(20)

    @property
    def lines(self) -> list[str]:
        return _CODES.sub("", self.seen.decode()).replace("\r", "").splitlines()


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    done = in_process("topics", "-b", bootstrap, "--create", LONG, "--if-not-exists")
    assert done.returncode == 0, done.stderr
    done = in_process("produce", LONG, "-b", bootstrap, stdin=b"x\n" * 1234)
    assert done.returncode == 0, done.stderr
    done = in_process("configs", "-b", bootstrap, "--topic", LONG, "--add", "retention.ms=99999999")
    assert done.returncode == 0, done.stderr
    return LONG


COMMANDS = (
    ("cluster",),
    ("cluster", "--api-versions"),
    ("topics", "--describe", LONG),
    ("topics", "--sizes"),
    ("topics", "--trim", LONG, "--before", "end", "--dry-run"),
    ("configs", "--topic", LONG, "--all"),
    ("configs", "--broker", "1", "--all"),
    ("configs", "--loggers", "1"),
    ("transactions", "--producers", LONG),
    ("transactions", "--why", f"{LONG}:0"),
    ("transactions", "--find-hanging"),
    ("log-dirs",),
    ("log-dirs", "--topics"),
    ("log-dirs", "--partitions", LONG),
    ("groups",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_tables_fit_a_terminal_and_are_plain_in_a_pipe(
    bootstrap: str, topic: str, words: tuple[str, ...]
) -> None:
    terminal = Terminal(*words, "-b", bootstrap)
    assert terminal.end() == 0, terminal.lines
    # Sentences, and the line above a topic's table, are wrapped by the terminal itself.
    tables = [
        line for line in terminal.lines if "  " in line.strip() and not line.startswith(f"{LONG}  ")
    ]
    assert [line for line in tables if len(line) > COLUMNS] == []
    assert "…" not in "".join(terminal.lines)
    piped = in_process(*words, "-b", bootstrap)
    assert piped.returncode == 0, piped.stderr
    assert re.search(r"[─│━┃╇…\x1b]|\d,\d{3}\b", piped.stdout) is None


@pytest.mark.parametrize("words", [("topics", "--sizes"), ("log-dirs", "--partitions")])
def test_a_long_name_is_folded_and_not_cut(
    bootstrap: str, topic: str, words: tuple[str, ...]
) -> None:
    terminal = Terminal(*words, "-b", bootstrap)
    assert terminal.end() == 0
    assert topic in "".join(line.split("  ")[0].strip() for line in terminal.lines)
    assert topic in in_process(*words, "-b", bootstrap).stdout


def test_a_watch_is_drawn_anew_and_ended_by_ctrl_c(bootstrap: str, topic: str) -> None:
    terminal = Terminal("topics", "--watch", topic, "--interval", "0.2", "-b", bootstrap)
    deadline = time.monotonic() + 20
    while terminal.seen.count(b"1,234") < 3:
        assert terminal.read()
        assert time.monotonic() < deadline
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in "".join(terminal.lines)
    assert b"\x1b[?25h" in terminal.seen  # the cursor is there again
    drawn = _CODES.sub("", terminal.seen.decode())
    assert max(map(len, re.split(r"[\r\n]+", drawn))) <= COLUMNS
