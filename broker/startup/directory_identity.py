"""`meta.properties` at start-up: do the log directories belong to this broker and cluster?

Called once by the server, after the metadata store is open and before any log is opened
(S-START-6, S-START-7): `settle_identity` stand-alone, `settle_member_identity` in a cluster.

A member whose broker stands alone for a while would take records that its cluster does not have,
and truncate them when it is a member again. So both ways need the operator's word: see
`refuse_member_alone` and `refuse_return_to_cluster`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from broker.cluster.identity import (
    choose_store_directory,
    resolve_broker_id,
    resolve_cluster_id,
    resolve_shared_cluster_id,
)
from broker.cluster.metadata_store import MetadataStore
from broker.world.uuids import NewUuid
from config.broker_config import BrokerConfig
from protocol.types import uuid_to_text
from storage.errors import InconsistentMetaProperties
from storage.filesystem import FileSystem
from storage.log_dir import (
    MetaProperties,
    read_meta_properties,
    reconcile,
    write_meta_properties,
)
from storage.paths import META_PROPERTIES, DirState, join, parse_partition_dir
from storage.waits import call


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The ids of this broker."""

    broker_id: int
    cluster_id: str


Failed = Callable[[str, OSError], None]
"""Called with (log directory, cause) when its `meta.properties` cannot be read or written."""


def refuse(directory: str, error: OSError) -> NoReturn:
    """Raise `error`: a `Failed` for callers that need every directory."""
    raise error


def refuse_member_alone(fs: FileSystem, directories: Iterable[str], file_name: str) -> None:
    """Check that a stand-alone start does not take the logs of a broker in ZooKeeper mode.

    They have `meta.properties` of version 0. `pykafkalog adopt` takes them over: then the metadata
    store exists (`file_name`), and nothing is refused here. Raises InconsistentMetaProperties.
    """
    directories = list(directories)
    if any(fs.exists(join(directory, file_name)) for directory in directories):
        return
    for directory, found in _read_all(fs, directories, _ignore).items():
        if found is not None and found.version == 0 and _has_logs(fs, directory):
            raise InconsistentMetaProperties(
                f"{directory} has the logs of a broker in ZooKeeper mode, and zookeeper.connect is "
                "not set. A member of a cluster needs that line: records that it takes without it "
                "are lost when it returns. If this broker shall stand alone from now on, run "
                "`pykafkalog adopt` with this file first"
            )


def refuse_return_to_cluster(fs: FileSystem, directories: Iterable[str], file_name: str) -> None:
    """Check that no broker has stood alone with a member's directories.

    Its metadata store (`file_name`) says so. Raises InconsistentMetaProperties.
    """
    for directory in directories:
        store = join(directory, file_name)
        if fs.exists(store):
            raise InconsistentMetaProperties(
                f"A broker without zookeeper.connect has used {directory}: {store} is its "
                "metadata. Records that it took would be lost in the cluster. Give the member an "
                "empty directory, which the others fill; docs/cluster.md, From one broker to a "
                "cluster, says how to copy topics"
            )


def _has_logs(fs: FileSystem, directory: str) -> bool:
    try:
        parsed = map(parse_partition_dir, fs.list_dir(directory))
    except OSError:  # another check reports it
        return False
    return any(found is not None and found.state is DirState.LIVE for found in parsed)


def _ignore(directory: str, error: OSError) -> None:
    """Another check reports the directory."""


async def settle_identity(
    store: MetadataStore,
    config: BrokerConfig,
    fs: FileSystem,
    directories: Iterable[str],
    *,
    new_uuid: NewUuid,
    record: bool = True,
    failed: Failed = refuse,
) -> Identity:
    """Agree on the ids and write them to every directory that does not have them yet.

    Without `record` the directories stay as they are. A directory whose `meta.properties` cannot be
    read is reported to `failed` and ignored (Kafka's MetaPropertiesEnsemble).
    Raises InconsistentBrokerId, InconsistentClusterId, InconsistentMetaProperties, ConfigError.
    """
    stored = _read_all(fs, directories, failed)
    known = reconcile(stored, node_id=config.broker_id)
    cluster_id = await resolve_cluster_id(store, new_uuid, known.cluster_id)
    broker_id = await resolve_broker_id(store, config, known.node_id)
    agreed = reconcile(stored, node_id=broker_id, cluster_id=cluster_id)
    for directory, found in stored.items():
        wanted = replace(
            agreed,
            node_id=broker_id,
            cluster_id=cluster_id,
            directory_id=_directory_id(agreed, found, new_uuid),
        )
        if record and wanted != found:
            await _write(fs, directory, wanted, failed)
    return Identity(broker_id=broker_id, cluster_id=cluster_id)


async def settle_member_identity(
    store: MetadataStore,
    config: BrokerConfig,
    fs: FileSystem,
    directories: Iterable[str],
    *,
    new_uuid: NewUuid,
    failed: Failed = refuse,
) -> Identity:
    """`settle_identity` for a member of a cluster on ZooKeeper; `store` is its tree.

    The server calls it instead, in the same place. Directories get `meta.properties` of version 0,
    as Kafka writes in ZooKeeper mode, and one of version 1 is refused, as Kafka does: KRaft wrote
    it, or this broker when it was stand-alone, and its topics are not in ZooKeeper. If anything
    does not fit, nothing is written, neither to a directory nor to ZooKeeper.

    Raises InconsistentBrokerId, InconsistentClusterId, InconsistentMetaProperties, ConfigError,
    and MetadataStoreError. Source: `KafkaServer.startup`, `MetaPropertiesEnsemble.verify` (3.9).
    """
    stored = _read_all(fs, directories, failed)
    for directory, found in stored.items():
        if found is not None and found.version != 0:
            raise InconsistentMetaProperties(
                f"{join(directory, META_PROPERTIES)} has version {found.version}: the directory is "
                "of a KRaft broker, or of this broker without zookeeper.connect. A member of a "
                "cluster on ZooKeeper has version 0, or a new directory. docs/cluster.md, From one "
                "broker to a cluster, says how to copy topics"
            )
    known = reconcile(stored, node_id=config.broker_id)
    cluster_id = await resolve_shared_cluster_id(store, new_uuid, known.cluster_id)
    reconcile(stored, node_id=config.broker_id, cluster_id=cluster_id)
    broker_id = await resolve_broker_id(store, config, known.node_id)
    for directory, found in stored.items():
        wanted = MetaProperties(
            version=0,
            node_id=broker_id,
            cluster_id=cluster_id,
            directory_id=None if found is None else found.directory_id,
        )
        if wanted != found:
            await _write(fs, directory, wanted, failed)
    return Identity(broker_id=broker_id, cluster_id=cluster_id)


async def _write(fs: FileSystem, directory: str, meta: MetaProperties, failed: Failed) -> None:
    """Write `meta.properties` in a thread, because it is synced."""
    try:
        await call(write_meta_properties, fs, directory, meta)
    except OSError as error:
        failed(directory, error)


def _read_all(
    fs: FileSystem, directories: Iterable[str], failed: Failed
) -> dict[str, MetaProperties | None]:
    stored = {}
    for directory in directories:
        try:
            stored[directory] = read_meta_properties(fs, directory)
        except OSError as error:
            failed(directory, error)
    return stored


def locate_store(
    fs: FileSystem, live: Sequence[str], offline: Sequence[str], file_name: str
) -> str:
    """Return the path of the metadata store's file, which may not exist yet. Raises ConfigError."""
    with_store = [path for path in live if fs.exists(join(path, file_name))]
    return join(choose_store_directory(live, offline, with_store), file_name)


def _directory_id(
    agreed: MetaProperties, found: MetaProperties | None, new_uuid: NewUuid
) -> str | None:
    if found is not None and found.directory_id is not None:
        return found.directory_id
    return uuid_to_text(new_uuid()) if agreed.version > 0 else None
