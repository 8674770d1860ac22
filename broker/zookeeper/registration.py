"""This broker's node in ZooKeeper, /brokers/ids/<id>: it is ephemeral, and makes a live member.

The number of the change that made the node is the broker's epoch: it grows with each registration,
which distinguishes this life of the broker from earlier ones.

If the node is there already, it belongs (a) to this session: a registration whose answer was lost;
(b) to an earlier session of this process, which ZooKeeper has not cleared away yet: it is removed;
(c) to an earlier process of this broker, killed and started again within the session timeout: its
endpoints are ours, and no two brokers listen on the same. Kafka fails then; here the end of that
session is waited for (decision 104); (d) to another broker: the start ends.

Source: `KafkaZkClient.registerBroker`, `KafkaServer.createBrokerInfo` (3.9).
"""

import logging
from collections.abc import Collection, Sequence
from typing import Final

from broker.cluster.image import BrokerImage
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeEvent,
    NodeExistsError,
    Put,
)
from broker.cluster.tree_values import (
    BROKER_IDS,
    BadValueError,
    broker_path,
    decode_broker,
    encode_broker,
)
from broker.zookeeper.zookeeper_store import ZooKeeperStore
from config.listener import Listener
from storage.waits import Signal

logger = logging.getLogger(__name__)

_LONGEST_ENDS: Final = 2
"""Session timeouts that the end of a session may take: it begins with the last sign of life."""


_UNSIGNED: Final = (1 << 64) - 1
"""Session ids are written as such; kazoo reads them with a sign."""


class BrokerRegistrationError(MetadataStoreError):
    """Another broker has the id, or an endpoint. The text is for the operator."""


async def register(
    store: ZooKeeperStore,
    broker: BrokerImage,
    bound: tuple[Listener, ...] = (),
    *,
    timestamp_ms: int,
) -> int:
    """Make the node of this broker and return its epoch; also after a session has expired.

    `bound`: where it listens, if it advertises nothing. Raises BrokerRegistrationError, and
    StoreUnavailableError.
    """
    path = broker_path(broker.broker_id)
    endpoints = {(listener.host, listener.port) for listener in broker.endpoints or bound}
    await _check_endpoints(store, broker.broker_id, endpoints)
    value = encode_broker(broker, bound, timestamp_ms)
    has_waited = False
    while True:
        try:
            await store.apply([Create(path, ephemeral=True), Put(path, value, 0)])
        except NodeExistsError:
            owner = await store.owner(path)
            if owner is not None and owner != store.session_id:
                if owner in store.ended_sessions:  # (b)
                    logger.info("%s is of an earlier session: made anew", path)
                    await store.apply([Delete(path, recursive=True)])
                elif not has_waited and await _is_ours(store, broker.broker_id, endpoints):  # (c)
                    has_waited = True
                    await _wait_until_gone(store, path, owner)
                else:  # (d)
                    raise _taken(broker.broker_id, owner) from None
        node = await store.get(path)
        if node is not None and await store.owner(path) == store.session_id:  # (a) too
            logger.info("Registered broker %d, epoch %d", broker.broker_id, node.created)
            return node.created


async def expect_free(store: ZooKeeperStore, broker_id: int, ports: Collection[int]) -> None:
    """Raise BrokerRegistrationError if a broker of this id, but of other ports, is registered."""
    path = broker_path(broker_id)
    node, owner = await store.get(path), await store.owner(path)
    if node is None or not owner or owner == store.session_id:
        return
    if {port for _, port in _endpoints_in(broker_id, node.value)} != set(ports):
        raise _taken(broker_id, owner)


def _taken(broker_id: int, owner: int) -> BrokerRegistrationError:
    return BrokerRegistrationError(
        broker_path(broker_id),
        f"a broker with id {broker_id} is already registered (ZooKeeper session "
        f"0x{owner & _UNSIGNED:x}); each broker of a cluster has an id of its own",
    )


async def _check_endpoints(
    store: ZooKeeperStore, broker_id: int, endpoints: set[tuple[str, int]]
) -> None:
    others = [name for name in await store.children(BROKER_IDS) if name != str(broker_id)]
    paths = [f"{BROKER_IDS}/{name}" for name in others if name.isdecimal()]
    for path, node in zip(paths, await store.get_many(paths), strict=True):
        if node is None:
            continue
        other = int(path.rpartition("/")[2])
        common = _endpoints_in(other, node.value) & endpoints
        if common:
            listed = ", ".join(f"{host}:{port}" for host, port in sorted(common))
            raise BrokerRegistrationError(
                path,
                f"broker {other} is registered with {listed}, which advertised.listeners of this "
                "broker has too",
            )


async def _is_ours(store: ZooKeeperStore, broker_id: int, endpoints: set[tuple[str, int]]) -> bool:
    node = await store.get(broker_path(broker_id))
    return node is not None and _endpoints_in(broker_id, node.value) == endpoints


def _endpoints_in(broker_id: int, value: bytes) -> set[tuple[str, int]]:
    try:
        found = decode_broker(broker_id, value).endpoints
    except BadValueError:
        return set()
    return {(listener.host, listener.port) for listener in found}


async def _wait_until_gone(store: ZooKeeperStore, path: str, owner: int) -> None:
    longest_s = _LONGEST_ENDS * store.session_timeout_s
    logger.warning(
        "%s is of an earlier process with these endpoints, ZooKeeper session 0x%x: waiting for "
        "its end, %g s at the most",
        path,
        owner & _UNSIGNED,
        longest_s,
    )
    gone: Signal[None] = Signal()

    def changed(_: Sequence[NodeEvent]) -> None:
        gone.fire()

    unwatch = store.watch(path, changed)
    try:
        if await store.owner(path) == owner:
            await gone.within(longest_s)
    finally:
        unwatch()
