"""Reads topics and access of a Kafka in KRaft mode from the metadata log beside its logs.

    <log dir>/__cluster_metadata-0/<offset, 20 digits>-<epoch, 10 digits>.checkpoint   a snapshot
    <log dir>/__cluster_metadata-0/<20 digits>.log                                     what followed

Reading begins with the newest whole snapshot, and continues with every record of the log from the
snapshot's end offset on (the one in its name, exclusive). Records of a metadata transaction that
was aborted or never ended do not count. Reading stops at the first batch that is torn or whose CRC
is wrong, as kill -9 leaves it. The log is never written to.

Used by `broker.cluster.adoption` only.
"""

import logging
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from broker.cluster.kraft_access import KraftAccess
from protocol.errors import ProtocolError
from protocol.messages.metadata_frames import decode_record
from protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from protocol.records.batch import iter_batches, verify_crc
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from protocol.schema import Message
from storage.filesystem import FileSystem
from storage.paths import LOG_SUFFIX, join, parse_segment_file

log = logging.getLogger(__name__)

METADATA_DIRECTORY = "__cluster_metadata-0"
_TOPIC_RESOURCE = 2
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(slots=True)
class KraftTopic:
    """One topic."""

    name: str
    topic_id: bytes
    partitions: set[int] = field(default_factory=set)


@dataclass(slots=True)
class KraftMetadata:
    """The part of a KRaft cluster's metadata that adoption needs."""

    topics: dict[bytes, KraftTopic] = field(default_factory=dict)
    """By topic id."""
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Topic name to the topic's own configs."""
    next_producer_id: int = 0
    """The first producer id that no block covers yet."""
    access: KraftAccess = field(default_factory=KraftAccess)

    def topic(self, name: str) -> KraftTopic | None:
        """The topic of this name, or None."""
        return next((topic for topic in self.topics.values() if topic.name == name), None)

    def apply(self, value: Message) -> None:
        """Apply one record."""
        if isinstance(value, TopicRecord):
            self.topics[value.topic_id] = KraftTopic(value.name, value.topic_id)
        elif isinstance(value, PartitionRecord) and value.topic_id in self.topics:
            self.topics[value.topic_id].partitions.add(value.partition_id)
        elif isinstance(value, RemoveTopicRecord):
            topic = self.topics.pop(value.topic_id, None)
            if topic is not None:
                self.configs.pop(topic.name, None)
        elif isinstance(value, ProducerIdsRecord):
            self.next_producer_id = value.next_producer_id
        elif isinstance(value, ConfigRecord) and value.resource_type == _TOPIC_RESOURCE:
            own = self.configs.setdefault(value.resource_name, {})
            if value.value is None:
                own.pop(value.name, None)
            else:
                own[value.name] = value.value
        else:
            self.access.apply(value)


def read_kraft_metadata(fs: FileSystem, log_dir: str) -> KraftMetadata | None:
    """Read the metadata log in this log directory; return None when there is none.

    A log that cannot be read to its end is read up to the damage, with a warning. Raises OSError.
    """
    directory = join(log_dir, METADATA_DIRECTORY)
    if not fs.is_dir(directory):
        return None
    names = fs.list_dir(directory)
    metadata, start = KraftMetadata(), 0
    for name in sorted((n for n in names if _SNAPSHOT.fullmatch(n)), reverse=True):
        snapshot = KraftMetadata()
        if _Replay(snapshot).run(fs, join(directory, name), 0):
            metadata, start = snapshot, int(name[:20])
            break
        log.warning("Leaving aside the snapshot %s: it is damaged", name)
    segments = []
    for name in names:
        file = parse_segment_file(name)
        if file is not None and file.suffix == LOG_SUFFIX and file.state == "":
            segments.append((file.base_offset, name))
    replay = _Replay(metadata)
    for _, name in sorted(segments):
        if not replay.run(fs, join(directory, name), start):
            log.warning("The metadata log ends in a torn batch in %s", name)
            break
    return replay.committed


class _Replay:
    """Applies records in order; transactions count when they end."""

    __slots__ = ("_pending", "committed")

    def __init__(self, metadata: KraftMetadata) -> None:
        self.committed = metadata
        self._pending: KraftMetadata | None = None

    def run(self, fs: FileSystem, path: str, start: int) -> bool:
        """Apply the records of a file from offset `start` on; return whether all could be read."""
        data = fs.read_bytes(path)
        try:
            end = 0
            for after, value in _values(data, start):
                end = after
                if value is not None:
                    found = decode_record(value)
                    if found is not None:
                        self._apply(found)
        except (RecordsError, ProtocolError) as error:
            log.warning("%s cannot be read: %s", path, error)
            return False
        return end == len(data)

    def _apply(self, value: Message) -> None:
        if isinstance(value, BeginTransactionRecord):
            self._pending = deepcopy(self.committed)
        elif isinstance(value, AbortTransactionRecord):
            self._pending = None
        elif isinstance(value, EndTransactionRecord):
            if self._pending is not None:
                self.committed, self._pending = self._pending, None
        else:
            (self._pending or self.committed).apply(value)


def _values(data: bytes, start: int) -> Iterator[tuple[int, bytes | None]]:
    """(position after the batch, value) of each record; None as value once after each batch."""
    for position, header in iter_batches(data):
        if not verify_crc(data, position, header):
            return
        end = position + header.size
        if not header.is_control and header.last_offset >= start:
            for record in iter_records(data, position):
                if record.offset >= start and record.value is not None:
                    yield end, record.value
        yield end, None
