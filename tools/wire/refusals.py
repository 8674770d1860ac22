"""What a broker that refuses is told as: its own sentence where it has one, the error's if not."""

from protocol.errors import ErrorCode
from tools.errors import CommandError


def sentence(code: int, message: str | None = None) -> str:
    """For a person: what the broker says, with the name under which the error is looked up."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"{message or 'an error'} (error code {code})"
    return f"{message} ({known.name})" if message else known.name.lower().replace("_", " ")


def require_done(code: int, message: str | None = None, *, what: str = "") -> None:
    """Raises CommandError unless the code says that it was done."""
    if code:
        raise CommandError(
            f"{what}: {sentence(code, message)}" if what else sentence(code, message)
        )
