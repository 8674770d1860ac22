"""All connections of this broker to others, and the nursery of their tasks."""

from collections import deque
from typing import Final

import trio

from broker.peers.broker_peer import BrokerPeer
from broker.peers.opening import Opener
from broker.peers.security import PeerSecurity
from broker.peers.surroundings import PeerSurroundings
from broker.peers.traffic import PeerTraffic
from config.broker_config import BrokerConfig
from config.listener import Listener


class Peers:
    """Makes peers; `run` is up while this broker is. Event loop only."""

    def __init__(self, config: BrokerConfig, around: PeerSurroundings) -> None:
        """Raises ConfigError if the listener between brokers asks for a login that is not set."""
        self._around: Final = around
        self._opener: Final = Opener(
            around.transport, around.workers, around.random, PeerSecurity(config)
        )
        self._setup_s: Final = (
            config.socket_connection_setup_timeout_ms / 1000,
            max(
                config.socket_connection_setup_timeout_ms,
                config.socket_connection_setup_timeout_max_ms,
            )
            / 1000,
        )
        self._nursery: trio.Nursery | None = None
        self._early: deque[BrokerPeer] = deque()
        """Peers whose tasks begin when `run` does."""
        self._has_ended = False
        self.traffic: Final[dict[tuple[str, int], PeerTraffic]] = {}
        """By the client id of the connections and the broker that they lead to."""

    def use(self, config: BrokerConfig) -> None:
        """Use the stores and the login of another configuration for new connections.

        Raises ConfigError.
        """
        self._opener.security = PeerSecurity(config)

    def to(self, broker_id: int, endpoint: Listener, client_id: str) -> BrokerPeer:
        """Return a new peer for a broker's endpoint, which connects at its first request."""
        return BrokerPeer(
            broker_id,
            endpoint,
            client_id,
            opener=self._opener,
            around=self._around,
            setup_s=self._setup_s,
            start=self._start,
            traffic=self.traffic.setdefault((client_id, broker_id), PeerTraffic()),
        )

    async def run(self) -> None:
        """Run the connections' tasks until cancelled; then what is under way fails."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            while self._early:
                nursery.start_soon(self._early.popleft().live)
            try:
                await trio.sleep_forever()
            finally:
                self._has_ended = True  # a nursery without tasks takes none a turn later

    def _start(self, peer: BrokerPeer) -> bool:
        """Run the peer's task; return False if this broker stops."""
        if self._has_ended:
            return False
        if self._nursery is None:
            self._early.append(peer)
        else:
            self._nursery.start_soon(peer.live)
        return True
