"""Bytes to standard output, for commands that write much or for long.

`require_reader` notices that the reader has gone (`| head -1`) even while nothing is written. On a
terminal, control characters of records are shown (`config.terminal`).
"""

import os
import select
import sys
from typing import Final

from config.terminal import shown


class Output:
    """Standard output. Raises BrokenPipeError once its reader has gone."""

    def __init__(self) -> None:
        self._out: Final = sys.stdout.buffer
        self._terminal: Final = sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        """Write whole lines; the reader gets them at `flush` at the latest."""
        if self._terminal:
            data = shown(data.decode(errors="surrogateescape")).encode()
        self._write(data)

    def flush(self) -> None:
        """Send everything that was written to the reader."""
        try:
            self._out.flush()
        except BrokenPipeError:
            _abandon()
            raise

    def require_reader(self) -> None:
        """Raise BrokenPipeError if the pipe was closed at its other end."""
        try:
            poll = select.poll()
            poll.register(self._out.fileno(), 0)
        except (OSError, ValueError):  # standard output is not a file, as in tests
            return
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            _abandon()
            raise BrokenPipeError

    def _write(self, data: bytes) -> None:
        try:
            self._out.write(data)
        except BrokenPipeError:
            _abandon()
            raise


def _abandon() -> None:
    """Redirect buffered output to /dev/null; the interpreter would fail to flush it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
