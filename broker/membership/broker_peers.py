"""Connections to other brokers by their ids, one for each purpose, where the image finds them."""

from broker.cluster.image import MetadataImage
from broker.membership.controller_channel import endpoint_of
from broker.peers.peer import Peer
from broker.peers.peers import Peers
from config.listener import Listener


class BrokerPeers:
    """Keeps a connection per broker and purpose; made anew when the broker has moved."""

    def __init__(
        self, image: MetadataImage, peers: Peers, *, listener_name: str, client_id: str
    ) -> None:
        """`listener_name`: the listener between brokers."""
        self._image = image
        self._peers = peers
        self._listener_name = listener_name
        self._client_id = client_id
        self._kept: dict[tuple[int, str], tuple[Listener, Peer]] = {}

    def get(self, broker_id: int, purpose: str) -> Peer | None:
        """The connection; None if the broker does not live, as far as is known."""
        key = broker_id, purpose
        endpoint = endpoint_of(self._image, broker_id, self._listener_name)
        kept = self._kept.get(key)
        if kept is not None and kept[0] != endpoint:
            kept[1].close()
            del self._kept[key]
            kept = None
        if endpoint is None:
            return None
        if kept is None:
            peer = self._peers.to(broker_id, endpoint, f"{self._client_id}-{purpose}")
            kept = self._kept[key] = endpoint, peer
        return kept[1]

    def drop_gone(self) -> None:
        """End connections to brokers that the image does not have any more, or elsewhere.

        A broker that stands still, or that nobody reaches, would else keep who asks it waiting
        until the time of the request is up, long after others have taken over what it led.
        """
        for key, (endpoint, peer) in list(self._kept.items()):
            if endpoint_of(self._image, key[0], self._listener_name) != endpoint:
                del self._kept[key]
                peer.close()
