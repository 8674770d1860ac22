"""The ids of the cluster and of this broker (S-START-6, S-START-7).

Both must be known before the logs are opened (`meta.properties` is checked against them), so they
are resolved right after the metadata store is open. A new id is made only if `meta.properties` has
none: a directory that was Kafka's keeps its ids.
"""

from collections.abc import Sequence
from contextlib import suppress

from broker.cluster.metadata_store import Create, MetadataStore, NodeExistsError
from broker.cluster.tree_values import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    decode_cluster_id,
    encode_cluster_id,
)
from broker.world.uuids import NewUuid
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from protocol.types import uuid_to_text
from storage.errors import InconsistentClusterId


async def resolve_cluster_id(
    store: MetadataStore, new_uuid: NewUuid, recorded: str | None = None
) -> str:
    """Return the cluster's id, made once (S-START-7): 22 characters of base64url.

    `recorded` is the one in `meta.properties`, if any; a new store takes it over. The check of the
    log directories compares the two, not this function.
    """
    node = await store.get(CLUSTER_ID)
    if node is not None:
        return decode_cluster_id(node.value)
    cluster_id = recorded or uuid_to_text(new_uuid())
    await store.create(CLUSTER_ID, encode_cluster_id(cluster_id))
    return cluster_id


async def resolve_shared_cluster_id(
    store: MetadataStore, new_uuid: NewUuid, recorded: str | None = None
) -> str:
    """Return the id of a cluster that several brokers share, made once by the first of them.

    `recorded`: the one in `meta.properties`. A directory that has one is never given to a cluster
    that has none yet: the connection most likely leads to another ensemble or path than before, and
    the broker would take its data for nobody's. Raises InconsistentClusterId.
    Source: `KafkaServer.getOrGenerateClusterId` (3.9), which makes an id first and fails then.
    """
    node = await store.get(CLUSTER_ID)
    if node is None and recorded is not None:
        raise InconsistentClusterId(
            f"The log directories are of cluster {recorded}, but there is no cluster yet at the "
            "servers and the path of zookeeper.connect. Is it the right one? (meta.properties)"
        )
    if node is None:
        cluster_id = uuid_to_text(new_uuid())
        try:
            await store.create(CLUSTER_ID, encode_cluster_id(cluster_id))
        except NodeExistsError:  # another broker was faster
            return await resolve_shared_cluster_id(store, new_uuid, recorded)
        return cluster_id
    return decode_cluster_id(node.value)


async def resolve_broker_id(
    store: MetadataStore, config: BrokerConfig, recorded: int | None = None
) -> int:
    """Return the configured id, else the recorded one, else a new one (S-START-6).

    New ids are `reserved.broker.max.id` plus the version of /brokers/seqid after a write: 1001
    first, and never the same twice. Raises ConfigError if a new one is needed and generation is
    disabled.
    """
    if config.broker_id >= 0:
        return config.broker_id
    if recorded is not None and recorded >= 0:
        return recorded
    if not config.broker_id_generation_enable:
        raise ConfigError("broker.id must be greater than or equal to 0")
    if await store.get(BROKER_SEQUENCE) is None:
        with suppress(NodeExistsError):  # another broker of the cluster was faster
            await store.apply([Create(BROKER_SEQUENCE)])
    return config.reserved_broker_max_id + await store.put(BROKER_SEQUENCE, b"")


def choose_store_directory(
    live: Sequence[str], offline: Sequence[str], has_store: Sequence[str]
) -> str:
    """Return the log directory for the metadata store.

    It is the one that has the store already, else the first live one. Raises ConfigError when none
    has it and a configured directory cannot be read: the store may be in that one, and starting
    without it would forget every topic.
    """
    for directory in live:
        if directory in has_store:
            return directory
    if offline:
        raise ConfigError(
            "No metadata store was found in the log directories that can be read "
            f"({', '.join(live) or 'none'}); it may lie in {', '.join(offline)}. Repair that "
            "directory or take it out of log.dirs."
        )
    return live[0]
