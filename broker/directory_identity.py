"""`meta.properties` at start-up: do the log directories belong to this broker and cluster?

Called once by the server, after the metadata store is open and before any log is opened
(S-START-6, S-START-7).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.cluster.identity import random_uuid, resolve_broker_id, resolve_cluster_id
from broker.cluster.metadata_store import MetadataStore
from config.broker_config import BrokerConfig
from protocol.types import uuid_to_text
from storage.filesystem import FileSystem
from storage.log_dir import (
    MetaProperties,
    read_meta_properties,
    reconcile,
    write_meta_properties,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this broker is."""

    broker_id: int
    cluster_id: str


async def settle_identity(
    store: MetadataStore, config: BrokerConfig, fs: FileSystem, directories: Iterable[str]
) -> Identity:
    """Agree on the ids and write them to every directory that does not have them yet.

    Raises InconsistentBrokerId, InconsistentClusterId, InconsistentMetaProperties, ConfigError.
    """
    stored = {directory: read_meta_properties(fs, directory) for directory in directories}
    known = reconcile(stored, node_id=config.broker_id)
    cluster_id = await resolve_cluster_id(store, known.cluster_id)
    broker_id = await resolve_broker_id(store, config, known.node_id)
    agreed = reconcile(stored, node_id=broker_id, cluster_id=cluster_id)
    for directory, found in stored.items():
        wanted = replace(
            agreed,
            node_id=broker_id,
            cluster_id=cluster_id,
            directory_id=_directory_id(agreed, found),
        )
        if wanted != found:
            write_meta_properties(fs, directory, wanted)
    return Identity(broker_id=broker_id, cluster_id=cluster_id)


def _directory_id(agreed: MetaProperties, found: MetaProperties | None) -> str | None:
    if found is not None and found.directory_id is not None:
        return found.directory_id
    return uuid_to_text(random_uuid()) if agreed.version > 0 else None
