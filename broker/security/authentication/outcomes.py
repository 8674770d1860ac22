"""The outcomes of a mechanism's message, and of a request about authentication."""

from typing import NamedTuple

from protocol.errors import ErrorCode


class AuthenticatedUser(NamedTuple):
    """The user that a connection has proved to be."""

    user: str
    by_token: bool = False
    """Whether a delegation token was the proof."""
    expires_ms: int | None = None
    """Wall clock at which the credentials expire; None: never."""

    @property
    def principal(self) -> str:
        """The user as ACLs name it."""
        return f"User:{self.user}"


class Progress(NamedTuple):
    """The mechanism's answer to the client, and the client's identity if it is proved now."""

    message: bytes
    identity: AuthenticatedUser | None = None
    refusal: str = ""
    """For the log: why the message says that the proof is refused; the client may leave with it."""


class Answer(NamedTuple):
    """The answer to a request about authentication."""

    code: ErrorCode = ErrorCode.NONE
    text: str = ""
    message: bytes = b""
    lifetime_ms: int = 0
    """The time after which the client must authenticate again; 0 if never."""


class RefusedError(Exception):
    """The client has not proved who it is."""

    def __init__(self, told: str | None = None, *, why: str = "", is_logged: bool = False) -> None:
        """`told` is the text for the client; None: that its credentials are invalid, and no more.

        `why` is for the log at level DEBUG. `is_logged`: a `Progress.refusal` has said it.
        """
        super().__init__(told or why)
        self.told = told
        self.why = why or told or ""
        self.is_logged = is_logged
