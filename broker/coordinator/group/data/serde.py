"""The records of `__consumer_offsets`, in Kafka's own format.

    key    int16 version, body          version 0, 1: offset commit   2: group metadata
                                        3 and up: KIP-848, share and streams groups
    value  int16 version, body          null: tombstone

This writes what Kafka 4.3 writes (a conformance test compares the bytes): offset values in version
4 with the topic's id, or in version 1 if the client asked for its own retention, because only that
version has the expire time; group metadata in version 3. In a cluster it writes what Kafka 3.9
does: version 3 in place of 4, without the id. It reads every version that any Kafka wrote. Records
of the newer group types decode to `None` and stay in the log, so that a Kafka that gets the
directory back finds them (S-FMT-2).
"""

from functools import lru_cache

from broker.coordinator.group.data.offsets import CommittedOffset, OffsetKey
from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
    StoredMember,
)
from protocol.errors import ProtocolError
from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.messages.versioned import decode_versioned, encode_versioned, peek_version
from protocol.types import NO_TIMESTAMP, ZERO_UUID

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
WRITTEN_OFFSET_KEY = 1
WRITTEN_OFFSET_VALUE = 4
OFFSET_VALUE_OF_3_9 = 3
WRITTEN_OFFSET_VALUE_WITH_EXPIRY = 1
WRITTEN_GROUP_VALUE = 3

_LAST_GENERATION = 2**31 - 1
_VERSION_BYTES = 2
_KEYS_AT_HAND = 1024
"""Keys that are kept encoded, as groups commit the same partitions again and again; names of
greatest length would take 70 MB."""


def encode_record(
    record: GroupRecord, offset_version: int = WRITTEN_OFFSET_VALUE
) -> tuple[bytes, bytes | None]:
    """Return key and value as they are appended; `offset_version` is that of offset values."""
    if not isinstance(record, GroupMetadataRecord):
        return _encode_offset(record.key, record.committed, offset_version)
    key = encode_versioned(
        GroupMetadataKey, GROUP_KEY_VERSION, GroupMetadataKey(group=record.group_id)
    )
    return key, None if record.value is None else _encode_group(record.value)


def _encode_offset(
    offset_key: OffsetKey, committed: CommittedOffset | None, offset_version: int
) -> tuple[bytes, bytes | None]:
    key = _encode_offset_key(offset_key)
    if committed is None:
        return key, None
    expires = committed.expire_timestamp_ms
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=NO_TIMESTAMP if expires is None else expires,
        topic_id=committed.topic_id or ZERO_UUID,
    )
    version = offset_version if expires is None else WRITTEN_OFFSET_VALUE_WITH_EXPIRY
    return key, encode_versioned(OffsetCommitValue, version, value)


@lru_cache(_KEYS_AT_HAND)
def _encode_offset_key(offset_key: OffsetKey) -> bytes:
    group_id, topic, partition = offset_key
    return encode_versioned(
        OffsetCommitKey,
        WRITTEN_OFFSET_KEY,
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
    )


def _encode_group(stored: StoredGroup) -> bytes:
    timestamp = stored.state_timestamp_ms
    return encode_versioned(
        GroupMetadataValue,
        WRITTEN_GROUP_VALUE,
        GroupMetadataValue(
            protocol_type=stored.protocol_type or "",
            generation=stored.generation,
            protocol=stored.protocol_name,
            leader=stored.leader_id,
            current_state_timestamp=NO_TIMESTAMP if timestamp is None else timestamp,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.subscription,
                    assignment=member.assignment,
                )
                for member in stored.members
            ],
        ),
    )


def decode_record(key: bytes, value: bytes | None) -> OffsetRecord | GroupMetadataRecord | None:
    """Decode a record; None for the newer group types.

    Raises ProtocolError when it is damaged, or has a version of a later Kafka.
    """
    version = peek_version(key)
    if version in OFFSET_KEY_VERSIONS:
        _, offset_key = decode_versioned(OffsetCommitKey, key)
        return OffsetRecord(
            (offset_key.group, offset_key.topic, offset_key.partition),
            None if value is None else _decode_offset(value),
        )
    if version == GROUP_KEY_VERSION:
        _, group_key = decode_versioned(GroupMetadataKey, key)
        return GroupMetadataRecord(group_key.group, None if value is None else _decode_group(value))
    return None


def _decode_offset(data: bytes) -> CommittedOffset:
    _, value = decode_versioned(OffsetCommitValue, data)
    expires = value.expire_timestamp
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if expires == NO_TIMESTAMP else expires,
        topic_id=None if value.topic_id == ZERO_UUID else value.topic_id,
    )


def _decode_group(data: bytes) -> StoredGroup:
    _, value = decode_versioned(GroupMetadataValue, data)
    timestamp = value.current_state_timestamp
    # Clients with rights on the topic may write records that no coordinator would.
    ids = [member.member_id for member in value.members]
    instances = [one.group_instance_id for one in value.members if one.group_instance_id]
    if len(set(ids)) < len(ids) or len(set(instances)) < len(instances):
        raise ProtocolError("a group has one member twice")
    if value.generation == _LAST_GENERATION:
        raise ProtocolError("a group has no next generation")
    return StoredGroup(
        protocol_type=value.protocol_type or None,
        generation=value.generation,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_timestamp_ms=None if timestamp == NO_TIMESTAMP else timestamp,
        members=tuple(
            StoredMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                subscription=bytes(member.subscription),
                assignment=bytes(member.assignment),
            )
            for member in value.members
        ),
    )


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a consumer's subscription; None when the bytes are no subscription.

    Only the fields of version 0 are read, because all later versions, future ones too, begin with
    them (Kafka's `ClassicGroup.computeSubscribedTopics`).
    """
    try:
        peek_version(metadata)
        data = bytes(metadata)
        subscription, _ = ConsumerProtocolSubscription.codec(0).parse_at(
            data, memoryview(data), _VERSION_BYTES, len(data)
        )
    except ProtocolError:
        return None
    return frozenset(subscription.topics)
