"""A log directory's own files: its owner, its lock, and whether it was stopped cleanly.

    meta.properties        which broker of which cluster owns it (S-START-6, S-START-7)
    .lock                  locked for as long as a broker uses the directory (S-REC-7)
    .kafka_cleanshutdown   the last stop was clean: no recovery needed (S-REC-1)
    <partition>/partition.metadata   the topic's id, which tells a recreated topic from the old one

`meta.properties`, version 0 (Kafka 0.8 to 3.x with ZooKeeper) and version 1 (KRaft, Kafka 4):

    #                          #
    version=0                  version=1
    broker.id=1                node.id=1
    cluster.id=<22 chars>      cluster.id=<22 chars>
                               directory.id=<22 chars>

`partition.metadata` (no newline at the end):

    version: 0
    topic_id: <22 characters>

`.lock` keeps a second broker out, Kafka's or this one. If a person removes the file while a broker
runs, Kafka can use the directory too, as with two Kafkas; a second broker of this kind cannot,
because the directory itself is locked as well (not on NFS).

`.kafka_cleanshutdown` was empty up to Kafka 3.6; now it holds `{"version":0,"brokerEpoch":<n>}`.
Its existence alone means a clean stop.

Used by `storage.log_manager` and by the broker's start-up.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protocol.types import ZERO_UUID, uuid_from_text, uuid_to_text
from storage.errors import (
    CheckpointError,
    DirectoryLocked,
    InconsistentBrokerId,
    InconsistentClusterId,
    InconsistentMetaProperties,
)
from storage.filesystem import File, FileSystem
from storage.paths import (
    CLEAN_SHUTDOWN_FILE,
    LOCK_FILE,
    META_PROPERTIES,
    PARTITION_METADATA,
    join,
)

NO_NODE_ID: Final = -1
NO_BROKER_EPOCH: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Content of `meta.properties`."""

    version: int = 1
    node_id: int | None = None
    """`node.id`, in version 0 `broker.id`; may be absent in version 0."""
    cluster_id: str | None = None
    """May be absent in version 0."""
    directory_id: str | None = None


def read_meta_properties(fs: FileSystem, directory: str) -> MetaProperties | None:
    """The content of the directory's `meta.properties`; None when it has none, as a new one.

    Raises InconsistentMetaProperties when the file is malformed, OSError.
    """
    path = join(directory, META_PROPERTIES)
    try:
        raw = fs.read_bytes(path)
    except FileNotFoundError:
        return None
    from config import java_properties

    try:
        # Properties files are Latin-1 with \\u escapes, whatever the machine's locale.
        return _parse_meta(java_properties.loads(raw.decode("latin-1")))
    except (ValueError, java_properties.InvalidUEscapeError) as error:
        raise InconsistentMetaProperties(f"{path}: {error}") from error


def _parse_meta(properties: Mapping[str, str]) -> MetaProperties:
    version = _integer("version", properties.get("version", "0"))
    if version not in (0, 1):
        raise ValueError(f"unknown version {version}")
    node_key = "broker.id" if version == 0 else "node.id"
    node_id = properties.get(node_key)
    cluster_id = properties.get("cluster.id")
    directory_id = properties.get("directory.id")
    if version == 1:
        for key, value in (("cluster.id", cluster_id), (node_key, node_id)):
            if value is None:
                raise ValueError(f"{key} was not found")
    if directory_id is not None:
        uuid_from_text(directory_id)
    return MetaProperties(
        version=version,
        node_id=None if node_id is None else _integer(node_key, node_id),
        cluster_id=cluster_id,
        directory_id=directory_id,
    )


def _integer(key: str, text: str, *, bits: int = 32) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{key}={text} is no number") from None
    if not -1 << (bits - 1) <= value < 1 << (bits - 1):
        raise ValueError(f"{key}={text} is no number of {bits} bits")
    return value


def write_meta_properties(fs: FileSystem, directory: str, meta: MetaProperties) -> None:
    """Replace `meta.properties`, durably. Raises OSError."""
    from config import java_properties

    items = {
        "version": str(meta.version),
        "cluster.id": meta.cluster_id,
        "broker.id" if meta.version == 0 else "node.id": meta.node_id,
        "directory.id": meta.directory_id,
    }
    lines = [
        java_properties.join_key_value(key, str(value))
        for key, value in sorted(items.items())
        if value is not None
    ]
    text = "\n".join(["#", *lines, ""])
    fs.write_atomic(join(directory, META_PROPERTIES), (text.encode("latin-1"),))


def reconcile(
    stored: Mapping[str, MetaProperties | None],
    *,
    node_id: int = NO_NODE_ID,
    cluster_id: str | None = None,
) -> MetaProperties:
    """The identity all log directories agree on, or the broker must not start (S-START-6).

    `stored` is directory to content (None: a new directory); `node_id` and `cluster_id` are what
    the configuration or the cluster gives, -1 and None if they give none. Ids that neither has
    are None in the result, which has the newest stored version (1 if none) and no directory id.

    Raises InconsistentBrokerId, InconsistentClusterId.
    """
    known = {path: meta for path, meta in stored.items() if meta is not None}
    ids = {path: meta.node_id for path, meta in known.items() if meta.node_id is not None}
    if len(set(ids.values())) > 1:
        raise InconsistentBrokerId(
            f"The log directories belong to different brokers: {_listing(ids)}. Was a directory "
            "shared or copied from another broker?"
        )
    for path, stored_id in ids.items():
        if node_id not in (NO_NODE_ID, stored_id):
            raise InconsistentBrokerId(
                f"Configured broker.id {node_id} doesn't match stored broker.id {stored_id} in "
                f"{join(path, META_PROPERTIES)}. Configure the stored id if the data was moved, "
                "or give a new broker empty log.dirs."
            )
    clusters = {path: meta.cluster_id for path, meta in known.items() if meta.cluster_id}
    if len(set(clusters.values())) > 1:
        raise InconsistentClusterId(
            f"The log directories belong to different clusters: {_listing(clusters)}."
        )
    for path, stored_cluster in clusters.items():
        if cluster_id not in (None, stored_cluster):
            raise InconsistentClusterId(
                f"The cluster id {cluster_id} doesn't match stored cluster.id {stored_cluster} in "
                f"{join(path, META_PROPERTIES)}. The broker is trying to join the wrong cluster."
            )
    return MetaProperties(
        version=max((meta.version for meta in known.values()), default=1),
        node_id=next(iter(ids.values()), None if node_id == NO_NODE_ID else node_id),
        cluster_id=next(iter(clusters.values()), cluster_id),
    )


def _listing(values: Mapping[str, object]) -> str:
    return ", ".join(f"{path} -> {value}" for path, value in sorted(values.items()))


class LogDir:
    """One directory of `log.dirs`: its lock and its clean-shutdown marker."""

    __slots__ = ("_broker_epoch", "_fs", "_lock", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path
        self._lock: File | None = None
        self._broker_epoch = NO_BROKER_EPOCH

    def lock(self) -> None:
        """Claim the directory. Raises DirectoryLocked when another broker has it, OSError."""
        if self._lock is None:
            self._lock = self._fs.lock(join(self.path, LOCK_FILE))
            if self._lock is None:
                raise DirectoryLocked(self.path)

    def unlock(self) -> None:
        """Give the directory up. The file stays, as unlinking a lock file is a race."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_in_use(self) -> bool:
        """Whether a broker has claimed the directory. Raises OSError where that cannot be known.

        No query works for every kind of lock, so it takes the lock and gives it up.
        """
        if not self._fs.exists(join(self.path, LOCK_FILE)):
            return False
        try:
            self.lock()
        except DirectoryLocked:
            return True
        self.unlock()
        return False

    def was_cleanly_shut_down(self) -> bool:
        """Whether the clean-shutdown marker exists."""
        return self._fs.exists(join(self.path, CLEAN_SHUTDOWN_FILE))

    def take_clean_shutdown_marker(self) -> bool:
        """Remove the clean-shutdown marker, durably; returns whether there was one.

        Call this before anything is loaded: a crash while loading must be followed by recovery
        (S-REC-1). Raises OSError.
        """
        clean = self.was_cleanly_shut_down()
        if clean:
            self._broker_epoch = self._read_broker_epoch()
            self._fs.unlink(join(self.path, CLEAN_SHUTDOWN_FILE), missing_ok=True)
            self._fs.fsync_dir(self.path)
        return clean

    def _read_broker_epoch(self) -> int:
        data = self._fs.read_bytes(join(self.path, CLEAN_SHUTDOWN_FILE))
        try:
            return _integer("brokerEpoch", str(json.loads(data)["brokerEpoch"]), bits=64)
        except (ValueError, KeyError, TypeError, RecursionError):
            return NO_BROKER_EPOCH  # Kafka up to 3.6 left the file empty.

    def clean_shutdown_marker(self, broker_epoch: int = NO_BROKER_EPOCH) -> bytes:
        """The content of the clean-shutdown marker.

        Without an epoch of its own the broker writes the one it found: a KRaft Kafka that gets the
        directory back takes any other for an unclean stop and distrusts the replicas (KIP-966).
        """
        if broker_epoch == NO_BROKER_EPOCH:
            broker_epoch = self._broker_epoch
        return json.dumps(
            {"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")
        ).encode()

    def write_clean_shutdown_marker(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Write the clean-shutdown marker, durably. Raises OSError."""
        content = self.clean_shutdown_marker(broker_epoch)
        self._fs.write_atomic(join(self.path, CLEAN_SHUTDOWN_FILE), (content,))


def read_partition_metadata(fs: FileSystem, directory: str) -> bytes | None:
    """The topic id (16 bytes) of a partition directory; None when it has none (before Kafka 2.8).

    Raises CheckpointError when the file is malformed, OSError.
    """
    path = join(directory, PARTITION_METADATA)
    try:
        lines = fs.read_bytes(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    version = _metadata_value(path, lines, 0, "version")
    if version != "0":
        raise CheckpointError(path, 1, f"unrecognised version {version!r}, expected 0")
    text = _metadata_value(path, lines, 1, "topic_id")
    try:
        topic_id = uuid_from_text(text)
    except ValueError as error:
        raise CheckpointError(path, 2, str(error)) from error
    if topic_id == ZERO_UUID:
        raise CheckpointError(path, 2, f"invalid topic id {text}")
    return topic_id


def _metadata_value(path: str, lines: list[str], index: int, key: str) -> str:
    words = lines[index].split() if index < len(lines) else []
    if len(words) != 2 or words[0] != key + ":":
        raise CheckpointError(path, index + 1, f"expected '{key}: ...'")
    return words[1]


def write_partition_metadata(
    fs: FileSystem, directory: str, topic_id: bytes, *, sync: bool = True
) -> None:
    """Record the topic id of a partition directory. Raises OSError.

    With `sync` the file is durable when this returns. Without, the system writes it later: enough
    for logs made by the dozen, whose topic id the metadata store knows as well.
    """
    path = join(directory, PARTITION_METADATA)
    data = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()
    if sync:
        fs.write_atomic(path, (data,))
        return
    file = fs.open(path, create=True)
    try:
        file.truncate(len(data))
        file.pwrite(data, 0)
    finally:
        file.close()
