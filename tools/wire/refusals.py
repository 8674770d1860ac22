"""Turns a broker's refusal into a sentence: the broker's own message, else the error's name."""

from protocol.errors import ErrorCode
from tools.errors import CommandError


def sentence(code: int, message: str | None = None) -> str:
    """Return the broker's message with the error's name, for people."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"{message or 'an error'} (error code {code})"
    return f"{message} ({known.name})" if message else known.name.lower().replace("_", " ")


def require_done(code: int, message: str | None = None, *, what: str = "") -> None:
    """Raise CommandError if `code` is an error."""
    if code:
        raise CommandError(
            f"{what}: {sentence(code, message)}" if what else sentence(code, message)
        )
