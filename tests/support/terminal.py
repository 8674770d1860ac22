"""A program on a terminal of 80 columns and 24 rows, as a person sees it.

    with Terminal(["bash", "--norc"], environment) as terminal:
        terminal.wait_for("$ ")
        terminal.type("ls\\n")

Its output is kept twice: as text without escape sequences (`text`), and as the terminal's screen
(`screen`, by pyte). Ctrl-C is typed as a key, so the terminal sends the signal to the program's
process group.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import pyte

Found = TypeVar("Found")
COLUMNS: Final = 80
ROWS: Final = 24
TIMEOUT_S: Final = 60.0
CTRL_C: Final = "\x03"
_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])"
)


class Terminal:
    """Runs the program for the length of a `with` block."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], directory: Path | None = None
    ) -> None:
        self._words: Final = list(words)
        self._environment: Final = {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self._directory: Final = directory
        self._raw = b""
        self.screen: Final = pyte.Screen(COLUMNS, ROWS)
        self._stream: Final = pyte.ByteStream(self.screen)

    def __enter__(self) -> "Terminal":
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *self._words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=self._directory,
            env=self._environment,
        )
        os.close(slave)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._master)  # a hang-up, which ends the shell and its programs
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    @property
    def raw(self) -> str:
        """All output so far; bytes that are no UTF-8 are surrogates."""
        return self._raw.decode(errors="surrogateescape")

    @property
    def text(self) -> str:
        """All output so far, as lines without escape sequences."""
        return self.without_escapes.replace("\r", "")

    @property
    def without_escapes(self) -> str:
        """All output so far without escape sequences, with the carriage returns of redrawings."""
        return _ESCAPE.sub("", self._raw.decode("utf-8", "replace"))

    @property
    def position(self) -> int:
        """The length of the text: later output is `text[position:]`."""
        return len(self.text)

    def type(self, keys: str) -> None:
        """Send keys as from the keyboard."""
        os.write(self._master, keys.encode())

    def wait_for(self, pattern: str, since: int = 0, timeout_s: float = TIMEOUT_S) -> re.Match[str]:
        """Wait for the pattern in the text after `since`. Raises AssertionError with the text."""
        return self._wait(
            lambda: re.compile(pattern, re.MULTILINE).search(self.text, since), pattern, timeout_s
        )

    def wait_to_see(self, line: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until a line of the screen is this one, except for blanks at its end."""
        self._wait(lambda: line in map(str.rstrip, self.screen.display) or None, line, timeout_s)

    def read(self) -> bool:
        """Wait for more output; return False if the program has ended."""
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that no process has the other end any more
            return False
        self._raw += data
        self._stream.feed(data)
        return True

    def end(self) -> int:
        """Read until the program has ended; return its exit code."""
        while self.read():
            pass
        return self._process.wait(TIMEOUT_S)

    def _wait(self, look: Callable[[], Found | None], wanted: str, timeout_s: float) -> Found:
        deadline = time.monotonic() + timeout_s
        while True:
            found = look()
            if found is not None:
                return found
            left = deadline - time.monotonic()
            seen = "\n".join(self.screen.display)
            assert left > 0, f"no {wanted!r} in:\n{seen}\n---\n{self.text[-4000:]}"
            if select.select([self._master], [], [], left)[0]:
                assert self.read(), f"it ended without {wanted!r}:\n{self.text[-4000:]}"
