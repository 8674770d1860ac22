"""Another broker, as the rest of this one sees it."""

from typing import Protocol

from protocol.api_keys import ApiKey
from protocol.schema import Message


class PeerError(Exception):
    """A request was not answered: no connection, no answer in time, a lost connection, nonsense.

    The peer may have done the request or not. The text names the peer and the reason.
    """


class UnsupportedByPeerError(PeerError):
    """The peer does not serve the API or the version; nothing was sent."""


class Peer(Protocol):
    """One connection to one broker, made when it is needed. Event loop only."""

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Message:
        """Send a request and wait for the reply, in the house's form of waiting (`storage.waits`).

        Without `version` the request has the highest one that both brokers know. Connects if there
        is no connection; after a failed attempt it waits until the back-off is over. Requests go
        out in the order of the calls, and several may be under way. A request without an answer
        within `timeout_s` ends the connection, and with it all that is under way. Raises PeerError.

        The records of a Fetch response are slices of the received frame, which stays as long as
        they do.
        """
        ...

    async def ready(self, *, timeout_s: float) -> None:
        """Connect if there is no connection, so that `version_of` knows. Raises PeerError."""
        ...

    def version_of(self, key: ApiKey) -> int | None:
        """The highest version of an API that both brokers know; None before the first connection,
        or if there is none."""
        ...

    def close(self) -> None:
        """End the connection, and requests under way with PeerError. Later ones are refused."""
        ...
