"""Asks the controller, whichever broker that is at the moment.

The image has the controller's id and endpoint. A request that finds no controller, or a broker that
is the controller no more, is sent again until its time is up: the next UpdateMetadata names the
successor. So a request may be done twice; the requests that are sent this way bear that.

Source: `kafka.server.NodeToControllerChannelManager`, `NodeToControllerRequestThread` (3.9).
"""

import logging
from typing import Any, Final

from broker.cluster.image import MetadataImage
from broker.peers.peer import Peer, PeerError
from broker.peers.peers import Peers
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.schema import Message
from storage.clock import Clock
from storage.waits import sleep

log = logging.getLogger(__name__)

AGAIN_S: Final = 0.1
"""The wait before a controller is looked for again."""


def endpoint_of(image: MetadataImage, broker_id: int, listener_name: str) -> Listener | None:
    """A broker's endpoint for others; None if it does not live or has no such listener."""
    broker = image.broker(broker_id)
    if broker is None:
        return None
    for endpoint in broker.endpoints:
        if endpoint.name == listener_name:
            return endpoint
    return None


class ControllerChannel:
    """One connection to the controller, made anew when that is another broker."""

    def __init__(
        self,
        *,
        image: MetadataImage,
        peers: Peers,
        listener_name: str,
        client_id: str,
        clock: Clock,
        longest_s: float,
    ) -> None:
        """`listener_name`: the listener between brokers. `longest_s`: of one attempt."""
        self._image = image
        self._peers = peers
        self._listener_name = listener_name
        self._client_id = client_id
        self._clock = clock
        self._longest_s = longest_s
        self._peer: Peer | None = None
        self._at: tuple[int, Listener] | None = None

    def _controller(self) -> Peer | None:
        """The connection to the controller; None while none is known."""
        broker_id = self._image.controller_id
        endpoint = endpoint_of(self._image, broker_id, self._listener_name)
        if endpoint is None:
            return None
        if self._peer is None or self._at != (broker_id, endpoint):
            self.close()
            self._peer = self._peers.to(broker_id, endpoint, self._client_id)
            self._at = broker_id, endpoint
        return self._peer

    def drop_former(self) -> None:
        """End the connection if another broker is the controller now; requests go to that one."""
        if self._at is not None:
            broker_id, endpoint = self._at
            now = self._image.controller_id
            if now != broker_id or endpoint_of(self._image, now, self._listener_name) != endpoint:
                self.close()

    async def ask_once(self, key: ApiKey, request: Message) -> Any:
        """Ask the controller that is known now. Raises PeerError if it does not answer.

        The answer may be that it is the controller no more.
        """
        peer = self._controller()
        if peer is None:
            raise PeerError("There is no controller")
        return await peer.ask(key, request, timeout_s=self._longest_s)

    async def ask(self, key: ApiKey, request: Message, *, timeout_s: float) -> Any:
        """Ask until the controller answers. Raises PeerError when `timeout_s` are over.

        An answer with another error than NOT_CONTROLLER is the caller's.
        """
        deadline = self._clock.monotonic() + timeout_s
        reason = "there is no controller"
        while (left := deadline - self._clock.monotonic()) > 0:
            peer = self._controller()
            if peer is not None:
                try:
                    answer: Any = await peer.ask(key, request, timeout_s=min(left, self._longest_s))
                except PeerError as error:
                    reason = str(error)
                else:
                    if answer.error_code != ErrorCode.NOT_CONTROLLER:
                        return answer
                    reason = "the broker that was asked is not the controller"
            await sleep(min(AGAIN_S, max(left, 0)))
        raise PeerError(f"The controller did not answer {key.name}: {reason}")

    def close(self) -> None:
        """Close the connection."""
        peer, self._peer, self._at = self._peer, None, None
        if peer is not None:
            peer.close()
