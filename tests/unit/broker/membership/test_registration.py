"""A broker is registered again after its session has ended, and says where it listens."""

from collections.abc import Callable

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.image import BrokerImage, MetadataImage
from broker.cluster.metadata_store import MetadataStoreError, StoreUnavailableError
from broker.cluster.tree_values import decode_log_dir_event
from broker.membership.broker_peers import BrokerPeers
from broker.membership.controller_fence import ControllerFence
from broker.membership.log_dir_events import LogDirEvents
from broker.membership.registration import Registration, advertised_endpoints
from broker.zookeeper.session import SessionState
from config.listener import Listener
from storage.waits import Work, at_once
from tests.support.stores import Ended, value_of


class Candidate:
    """Notes the events of the session; the session that begins is the end of the test."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def session_ended(self) -> None:
        self.told.append("ended")

    def session_began(self) -> None:
        self.told.append("began")
        raise Ended


def registered(epochs: "list[int | MetadataStoreError]") -> Callable[[], Work[int]]:
    async def register() -> int:
        epoch = epochs.pop(0)
        if isinstance(epoch, MetadataStoreError):
            raise epoch
        return epoch

    return register


def test_after_an_expiry_a_broker_registers_until_it_is_registered() -> None:
    fence, candidate = ControllerFence(), Candidate()
    refused = StoreUnavailableError("/brokers/ids/1", "no connection")
    registration = Registration(
        register=registered([5, refused, refused, 9]), fence=fence, candidate=candidate
    )
    at_once(registration.begin())
    assert fence.broker_epoch == 5
    for state in (SessionState.SUSPENDED, SessionState.CONNECTED):
        registration.on_session(state)
    assert candidate.told == []
    registration.on_session(SessionState.EXPIRED)
    assert candidate.told == ["ended"]
    registration.on_session(SessionState.CONNECTED)
    with pytest.raises(Ended):
        at_once(registration.run())
    assert (fence.broker_epoch, candidate.told) == (9, ["ended", "began"])


def listener(name: str, host: str, port: int) -> Listener:
    return Listener(name=name, host=host, port=port, protocol="PLAINTEXT")


BOUND = (listener("A", "0.0.0.0", 41), listener("B", "h", 42))


@pytest.mark.parametrize(
    ("advertised", "endpoints"),
    [
        ((), ("A://me:41", "B://h:42")),
        ((listener("A", "a", 1),), ("A://a:1",)),
        ((listener("A", "", 0), listener("B", "b", 0)), ("A://me:41", "B://b:42")),
        ((listener("A", "::", 7),), ("A://me:7",)),
    ],
)
def test_others_are_told_a_host_and_a_port_that_they_can_reach(
    advertised: tuple[Listener, ...], endpoints: tuple[str, ...]
) -> None:
    found = advertised_endpoints(advertised, BOUND, lambda: "me")
    assert tuple(map(str, found)) == endpoints


async def test_a_failed_log_directory_is_told_until_the_tree_has_it(store: EmbeddedStore) -> None:
    events = LogDirEvents(store, 7)
    real, failures = store.apply, 2

    async def apply(operations: object) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailableError("zookeeper", "no connection")
        await real(operations)  # type: ignore[arg-type]
        raise Ended

    store.apply = apply  # type: ignore[method-assign]
    events.directory_offline("/d")
    with pytest.raises(Ended):
        await events.run()
    [name] = await store.children("/log_dir_event_notification")
    path = f"/log_dir_event_notification/{name}"
    assert decode_log_dir_event(path, await value_of(store, path)) == 7


class Made:
    """A connection that was made, and perhaps closed."""

    def __init__(self, to: str) -> None:
        self.to = to
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Peers:
    def to(self, broker_id: int, endpoint: Listener, client_id: str) -> Made:
        return Made(f"{broker_id} {endpoint} {client_id}")


def test_a_connection_for_each_purpose_is_kept_while_the_broker_is_where_it_was() -> None:
    image = MetadataImage()
    peers = BrokerPeers(image, Peers(), listener_name="B", client_id="c")  # type: ignore[arg-type]
    assert peers.get(1, "markers") is None
    image.set_broker(BrokerImage(broker_id=1, endpoints=BOUND))
    first = peers.get(1, "markers")
    assert isinstance(first, Made)
    assert first.to == "1 B://h:42 c-markers"
    assert peers.get(1, "markers") is first
    assert peers.get(1, "transactions") is not first
    image.set_broker(BrokerImage(broker_id=1, endpoints=(listener("B", "h", 43),)))
    second = peers.get(1, "markers")
    assert second is not first
    assert first.is_closed
    image.remove_broker(1)
    assert peers.get(1, "markers") is None


def test_connections_to_brokers_that_are_gone_end_at_once() -> None:
    """Such a broker may stand still: who waits for its answer would wait for half a minute."""
    image = MetadataImage()
    peers = BrokerPeers(image, Peers(), listener_name="B", client_id="c")  # type: ignore[arg-type]
    for broker_id in (1, 2):
        image.set_broker(BrokerImage(broker_id=broker_id, endpoints=BOUND))
    one, two = peers.get(1, "markers"), peers.get(2, "markers")
    peers.drop_gone()
    assert isinstance(one, Made)
    assert isinstance(two, Made)
    assert not one.is_closed
    image.remove_broker(1)
    peers.drop_gone()
    assert one.is_closed
    assert not two.is_closed
    assert peers.get(2, "markers") is two
