"""Bytes to standard output, for commands that write much or for long.

A reader that goes away (`| head -1`) is noticed while nothing is written, too. On a terminal,
control characters of records are shown as `^[`, so that no record changes the terminal.
"""

import os
import select
import sys
from typing import Final

_CONTROL: Final = [number for number in (*range(32), 127) if number not in (9, 10)]
_SHOWN: Final = {number: f"^{chr(number ^ 64)}".encode() for number in _CONTROL}


class Output:
    """Standard output. Raises BrokenPipeError when nobody reads it any more."""

    def __init__(self) -> None:
        self._out: Final = sys.stdout.buffer
        self._terminal: Final = sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        """Whole lines; they are seen after `flush`."""
        if self._terminal and any(number in data for number in _CONTROL):
            data = b"".join(_SHOWN.get(number, bytes((number,))) for number in data)
        self._write(data)

    def flush(self) -> None:
        """Everything that was written is with the reader."""
        try:
            self._out.flush()
        except BrokenPipeError:
            _abandon()
            raise

    def require_reader(self) -> None:
        """Raises BrokenPipeError when the pipe was closed at its other end."""
        try:
            poll = select.poll()
            poll.register(self._out.fileno(), 0)
        except (OSError, ValueError):  # not a file at all, as in tests
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
    """What is left in buffers goes nowhere: the interpreter would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
