"""Another broker, as the rest of this one sees it."""

from typing import Protocol

from protocol.api_keys import ApiKey
from protocol.schema import Message


class PeerError(Exception):
    """A request was not answered: no connection, no answer in time, an end, nonsense.

    The peer may have done it or not. The text names the peer and the reason.
    """


class UnsupportedByPeerError(PeerError):
    """The peer does not serve the API or the version; nothing was sent."""


class Peer(Protocol):
    """One connection to one broker, made when it is needed. Event loop only."""

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Message:
        """Send a request and wait for the reply, in the house's form of waiting (`storage.waits`).

        Without `version`, in the highest one that both know. Connects if there is no connection;
        after a failed attempt it waits for the next one's time. Requests go out in the order in
        which they were asked, and several may be under way. One that is not answered within
        `timeout_s` ends the connection, and with it all that is under way. Raises PeerError.

        The records of a Fetch response are slices of the received frame, which stays as long as
        they do.
        """
        ...

    async def ready(self, *, timeout_s: float) -> None:
        """Connect if there is no connection, so that `version_of` knows. Raises PeerError."""
        ...

    def version_of(self, key: ApiKey) -> int | None:
        """The highest version of an API that both know; None before the first connection, or if
        there is none."""
        ...

    def close(self) -> None:
        """End the connection, and what is under way with PeerError. Later asks are refused."""
        ...
