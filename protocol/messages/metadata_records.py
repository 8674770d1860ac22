"""Records of KRaft's metadata log: what `__cluster_metadata-0` says about topics.

A record's value is a frame: frame version, kind of record and version of its body as unsigned
varints, then the body (always flexible). Only the kinds that tell what a log directory cannot are
declared: names, partitions, configs, and how far producer ids were handed out. `decode_record`
answers None for every other kind.

    frame version  kind     version  body …
    uvarint (1)    uvarint  uvarint

Read by `broker.cluster.kraft_log`; this broker never writes such records.
"""

from typing import Final

from protocol.errors import ProtocolError
from protocol.schema import Api, Array, Int8, Int32, Int64, Message, Str, Uuid, V

FRAME_VERSION: Final = 1
_MAX_VARINT_BYTES = 5

# fmt: off

TopicRecord = Api(
    None, "TopicRecord", "0", "0+",
    "name"     / V("0+", Str),
    "topic_id" / V("0+", Uuid),
)

# v1 adds the log directory of each replica, v2 eligible leader replicas.
PartitionRecord = Api(
    None, "PartitionRecord", "0-2", "0+",
    "partition_id"             / V("0+", Int32, default=-1),
    "topic_id"                 / V("0+", Uuid),
    "replicas"                 / V("0+", Array(Int32)),
    "isr"                      / V("0+", Array(Int32)),
    "removing_replicas"        / V("0+", Array(Int32)),
    "adding_replicas"          / V("0+", Array(Int32)),
    "leader"                   / V("0+", Int32, default=-1),
    "leader_recovery_state"    / V("0+", Int8, tag=0),
    "leader_epoch"             / V("0+", Int32, default=-1),
    "partition_epoch"          / V("0+", Int32, default=-1),
    "directories"              / V("1+", Array(Uuid)),
    "eligible_leader_replicas" / V("2+", Array(Int32), nullable="2+", tag=1, default=None),
    "last_known_elr"           / V("2+", Array(Int32), nullable="2+", tag=2, default=None),
)

ConfigRecord = Api(
    None, "ConfigRecord", "0", "0+",
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "name"          / V("0+", Str),
    "value"         / V("0+", Str, nullable="0+"),
)

RemoveTopicRecord = Api(
    None, "RemoveTopicRecord", "0", "0+",
    "topic_id" / V("0+", Uuid),
)

ProducerIdsRecord = Api(
    None, "ProducerIdsRecord", "0", "0+",
    "broker_id"        / V("0+", Int32),
    "broker_epoch"     / V("0+", Int64, default=-1),
    "next_producer_id" / V("0+", Int64),
)

# Records between begin and end count together or, after an abort, not at all (KIP-868).

BeginTransactionRecord = Api(
    None, "BeginTransactionRecord", "0", "0+",
    "name" / V("0+", Str, nullable="0+", tag=0, default=None),
)

EndTransactionRecord = Api(None, "EndTransactionRecord", "0", "0+")

AbortTransactionRecord = Api(
    None, "AbortTransactionRecord", "0", "0+",
    "reason" / V("0+", Str, nullable="0+", tag=0, default=None),
)

# fmt: on

KINDS: Final = {
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    9: RemoveTopicRecord,
    15: ProducerIdsRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
}
"""Kind of record in the frame to its declaration."""


def decode_record(data: bytes) -> tuple[Api, Message] | None:
    """A record's declaration and value; None when it is of a kind that is not declared here.

    Raises ProtocolError for a frame, a version or a body that cannot be read.
    """
    frame, at = _unsigned(data, 0)
    if frame != FRAME_VERSION:
        raise ProtocolError(f"metadata record of frame version {frame}")
    kind, at = _unsigned(data, at)
    version, at = _unsigned(data, at)
    api = KINDS.get(kind)
    if api is None:
        return None
    if version not in api.versions:
        raise ProtocolError(f"{api.name} has no version {version}")
    return api, api.codec(version).parse(data[at:])


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ProtocolError("metadata record ends in its frame")
