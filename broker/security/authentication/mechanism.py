"""The interface of a mechanism for the authenticator."""

from typing import Protocol

from broker.security.authentication.outcomes import Progress


class Exchange(Protocol):
    """One attempt of one client."""

    async def evaluate(self, message: bytes) -> Progress:
        """Take the client's next message. Raises RefusedError, after which nothing is evaluated.

        Work of more than a millisecond is done in a thread.
        """
        ...


class Mechanism(Protocol):
    """A mechanism as one listener offers it."""

    @property
    def name(self) -> str:
        """Its name, as clients choose it."""
        ...

    @property
    def max_reauth_ms(self) -> int:
        """How long a session lasts (`connections.max.reauth.ms`); 0: as long as its credentials."""
        ...

    def begin(self) -> Exchange:
        """Begin an attempt."""
        ...
