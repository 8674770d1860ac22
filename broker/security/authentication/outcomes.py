"""What comes of a message of a mechanism, and of a request about authentication."""

from typing import NamedTuple

from protocol.errors import ErrorCode


class AuthenticatedUser(NamedTuple):
    """Whom a connection has proved to be."""

    user: str
    by_token: bool = False
    """Whether by a delegation token."""
    expires_ms: int | None = None
    """Wall clock at which the credentials expire; None: never."""

    @property
    def principal(self) -> str:
        """The user as ACLs name it."""
        return f"User:{self.user}"


class Progress(NamedTuple):
    """What the client is answered, and who it is if that is proved now."""

    message: bytes
    identity: AuthenticatedUser | None = None


class Answer(NamedTuple):
    """What a request about authentication is answered."""

    code: ErrorCode = ErrorCode.NONE
    text: str = ""
    message: bytes = b""
    lifetime_ms: int = 0
    """After which the client must authenticate again; 0: never."""


class RefusedError(Exception):
    """The client has not proved who it is."""

    def __init__(self, told: str | None = None, *, why: str = "") -> None:
        """`told` is what the client learns; None: no more than that its credentials are invalid.

        `why` is for the log at level DEBUG.
        """
        super().__init__(told or why)
        self.told = told
        self.why = why or told or ""
