"""`pykafkalog …` as a function call: quicker than a process, for tests that run many commands.

What only a process has (signals, pipes that are closed early, exit codes of the interpreter) is
tried with `tests.support.command_line`.
"""

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from tools.__main__ import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left."""

    returncode: int
    output: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        """As text."""
        return self.output.decode()


def in_process(*words: str, stdin: bytes = b"") -> Done:
    """Run one command to its end."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        mock.patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(words)
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return Done(code, buffer.getvalue(), err.getvalue())
