"""The sources of a new password: a file, a person at a terminal, or standard input.

A password is no argument, because everybody on the machine can see arguments.
"""

import getpass
import sys
from pathlib import Path

from config.terminal import shown_line
from tools.errors import CommandError

_STANDARD_INPUT = Path("-")


def read(file: Path | None, user: str) -> str:
    """Return the password. Raises CommandError."""
    if file is not None and file != _STANDARD_INPUT:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise CommandError(f"cannot read {file}: {reason}") from None
    elif file is None and sys.stdin.isatty():
        try:
            text = getpass.getpass(f"Password of {shown_line(user)}: ")  # it writes to the terminal
            if text and getpass.getpass("Once more: ") != text:
                raise CommandError("the two passwords differ")
        except EOFError:
            text = ""
    else:
        text = sys.stdin.readline()
    password = text.splitlines()[0] if text else ""
    if not password:
        raise CommandError("there is no password: --password-file FILE, or standard input")
    return password
