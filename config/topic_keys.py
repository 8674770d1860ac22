"""Topic configs, and for each the broker keys that give its default (most specific first).

The order of synonyms is the precedence among the broker's keys: milliseconds before minutes
before hours (S-RET-9). DescribeConfigs shows them in this order (S-CFG-2).
"""
# ruff: noqa: E501 - one key, one line: a table is read across

import re

from config.definition import ConfigTable
from config.key_building import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    MEDIUM,
    MOST_DECOMPRESSED,
    STRING,
    inert,
    key,
)
from config.log_keys import COMPRESSION_TYPES
from config.validators import Validator, at_least, between, gzip_level, list_of, one_of

_REPLICA = re.compile(r"[0-9]+:[0-9]+\Z")


def _throttled_replicas(value: tuple[str, ...]) -> str | None:
    if value in ((), ("*",)) or all(_REPLICA.match(item) for item in value):
        return None
    return "must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."


REPLICA_LIST = Validator(
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...", _throttled_replicas, keeps_list=True
)

TOPIC_KEYS = ConfigTable((
    key("cleanup.policy", LIST, ("delete",), MEDIUM, "The cleanup of old segments: delete, compact, or both.", list_of("compact", "delete"), synonyms=("log.cleanup.policy",)),
    key("compression.type", STRING, "producer", MEDIUM, "How batches are stored; producer keeps what the producer sent.", one_of(*COMPRESSION_TYPES), synonyms=("compression.type",)),
    key("compression.gzip.level", INT, -1, MEDIUM, "Level of gzip when the broker compresses; -1 for the library's own.", gzip_level(), synonyms=("compression.gzip.level",)),
    key("compression.lz4.level", INT, 9, MEDIUM, "Level of lz4 when the broker compresses.", between(1, 17), synonyms=("compression.lz4.level",)),
    key("compression.zstd.level", INT, 3, MEDIUM, "Level of zstd when the broker compresses.", between(-131072, 22), synonyms=("compression.zstd.level",)),
    key("delete.retention.ms", LONG, 86400000, MEDIUM, "How long tombstones are kept in a compacted topic.", at_least(0), synonyms=("log.cleaner.delete.retention.ms",)),
    inert("errors.deadletterqueue.group.enable", BOOLEAN, False, MEDIUM, "Share groups: the topic may be a dead-letter queue."),
    key("file.delete.delay.ms", LONG, 60000, MEDIUM, "How long a deleted file waits, renamed, before it is removed.", at_least(0), synonyms=("log.segment.delete.delay.ms",)),
    key("flush.messages", LONG, LONG_MAX, MEDIUM, "Records that a log takes before it is synced to the disk.", at_least(1), synonyms=("log.flush.interval.messages",)),
    key("flush.ms", LONG, LONG_MAX, MEDIUM, "The longest time that a record stays unsynced.", at_least(0), synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
    key("follower.replication.throttled.replicas", LIST, (), MEDIUM, "Replicas whose fetching is throttled on the follower.", REPLICA_LIST),
    key("index.interval.bytes", INT, 4096, MEDIUM, "Bytes of log between two index entries.", at_least(0), synonyms=("log.index.interval.bytes",)),
    key("leader.replication.throttled.replicas", LIST, (), MEDIUM, "Replicas whose fetching is throttled on the leader.", REPLICA_LIST),
    inert("local.retention.bytes", LONG, -2, MEDIUM, "Tiered storage: how many bytes stay on this disk.", at_least(-2), synonyms=("log.local.retention.bytes",)),
    inert("local.retention.ms", LONG, -2, MEDIUM, "Tiered storage: how long segments stay on this disk.", at_least(-2), synonyms=("log.local.retention.ms",)),
    key("max.compaction.lag.ms", LONG, LONG_MAX, MEDIUM, "The age from which a record makes its log due for compaction.", at_least(1), synonyms=("log.cleaner.max.compaction.lag.ms",)),
    key("max.decompressed.message.bytes", INT, MOST_DECOMPRESSED, MEDIUM, "The largest decompressed size of one record that is accepted in a compressed batch.", between(1, MOST_DECOMPRESSED), synonyms=("max.decompressed.message.bytes",)),
    key("max.message.bytes", INT, 1048588, MEDIUM, "The largest record batch, in bytes as sent, that is accepted.", at_least(0), synonyms=("message.max.bytes",)),
    key("message.downconversion.enable", BOOLEAN, True, MEDIUM, "Convert batches for consumers that ask with Fetch versions below 4.", synonyms=("log.message.downconversion.enable",)),
    inert("message.format.version", STRING, "3.0-IV1", MEDIUM, "The message format of Kafka before 3.0. Batches are always stored in format 2.", synonyms=("log.message.format.version",)),
    key("message.timestamp.after.max.ms", LONG, 3600000, MEDIUM, "How far after the broker's time a record's may be.", at_least(0), synonyms=("log.message.timestamp.after.max.ms",)),
    key("message.timestamp.before.max.ms", LONG, LONG_MAX, MEDIUM, "How far before the broker's time a record's may be.", at_least(0), synonyms=("log.message.timestamp.before.max.ms",)),
    key("message.timestamp.difference.max.ms", LONG, LONG_MAX, MEDIUM, "Kafka before 3.6: how far from the broker's time a record's may be, either way. Used for before and after where those are not set.", at_least(0), synonyms=("log.message.timestamp.difference.max.ms",)),
    key("message.timestamp.type", STRING, "CreateTime", MEDIUM, "The time that a record carries: CreateTime (the producer's) or LogAppendTime (the broker's).", one_of("CreateTime", "LogAppendTime"), synonyms=("log.message.timestamp.type",)),
    key("min.cleanable.dirty.ratio", DOUBLE, 0.5, MEDIUM, "The dirty share from which the log is cleaned.", between(0, 1), synonyms=("log.cleaner.min.cleanable.ratio",)),
    key("min.compaction.lag.ms", LONG, 0, MEDIUM, "The age before which a record is not compacted.", at_least(0), synonyms=("log.cleaner.min.compaction.lag.ms",)),
    key("min.insync.replicas", INT, 1, MEDIUM, "In-sync replicas that a write with acks=all needs.", at_least(1), synonyms=("min.insync.replicas",)),
    key("preallocate", BOOLEAN, False, MEDIUM, "Reserve the whole segment file when it is made.", synonyms=("log.preallocate",)),
    inert("remote.copy.lag.bytes", LONG, -1, MEDIUM, "Tiered storage: bytes by which copying may lag.", at_least(-1), synonyms=("log.remote.copy.lag.bytes",)),
    inert("remote.copy.lag.ms", LONG, 0, MEDIUM, "Tiered storage: time by which copying may lag.", at_least(-1), synonyms=("log.remote.copy.lag.ms",)),
    inert("remote.log.copy.disable", BOOLEAN, False, MEDIUM, "Tiered storage: stop copying."),
    inert("remote.log.delete.on.disable", BOOLEAN, False, MEDIUM, "Tiered storage: delete remote data when it is switched off."),
    inert("remote.storage.enable", BOOLEAN, False, MEDIUM, "Tiered storage. true is refused: there is none."),
    key("retention.bytes", LONG, -1, MEDIUM, "The size to which a partition's log may grow before old segments go; -1 for any size.", synonyms=("log.retention.bytes",)),
    key("retention.ms", LONG, 604800000, MEDIUM, "How long a segment is kept; -1 for ever.", at_least(-1), synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
    key("segment.bytes", INT, 1073741824, MEDIUM, "The largest size of one segment file.", at_least(14), synonyms=("log.segment.bytes",)),
    key("segment.index.bytes", INT, 10485760, MEDIUM, "The largest size of an offset index.", at_least(4), synonyms=("log.index.size.max.bytes",)),
    key("segment.jitter.ms", LONG, 0, MEDIUM, "The largest random time taken off segment.ms.", at_least(0), synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours")),
    key("segment.ms", LONG, 604800000, MEDIUM, "A new segment starts when the active one is this old.", at_least(1), synonyms=("log.roll.ms", "log.roll.hours")),
    key("unclean.leader.election.enable", BOOLEAN, False, MEDIUM, "Let a replica that is not in sync become leader, losing records.", synonyms=("unclean.leader.election.enable",)),
))  # fmt: skip
"""Every topic config. A name outside this table is refused (S-CFG-4)."""
