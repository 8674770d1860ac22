"""Records with a version of their own."""

import pytest

from protocol.errors import ProtocolError
from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
    ConsumerProtocolTopicPartition,
    EndTxnMarker,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from protocol.messages.versioned import decode_versioned, encode_versioned, peek_version


def test_an_offset_commit_as_kafka_writes_it() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    assert encode_versioned(OffsetCommitKey, 1, key).hex() == "0001000167000174" + "00000003"
    value = OffsetCommitValue(offset=42, leader_epoch=7, metadata="", commit_timestamp=1000)
    data = encode_versioned(OffsetCommitValue, 3, value)
    assert data.hex() == "0003000000000000002a000000070000" + "00000000000003e8"
    assert peek_version(data) == 3
    assert decode_versioned(OffsetCommitValue, data) == (3, value)


def test_the_kind_of_a_key_is_its_version() -> None:
    key = encode_versioned(GroupMetadataKey, 2, GroupMetadataKey(group="g"))
    assert key.hex() == "0002000167"
    assert decode_versioned(GroupMetadataKey, key)[1].group == "g"
    with pytest.raises(ProtocolError, match="no version 2"):
        decode_versioned(OffsetCommitKey, key)


def test_a_group_with_a_static_member_in_every_version() -> None:
    member = MemberMetadata(member_id="m", client_id="c", client_host="/h", session_timeout=5)
    value = GroupMetadataValue(protocol_type="consumer", generation=1, leader="m", members=[member])
    for version in GroupMetadataValue.versions:
        data = encode_versioned(GroupMetadataValue, version, value)
        assert decode_versioned(GroupMetadataValue, memoryview(data)) == (version, value)


def test_subscriptions_of_newer_versions_are_read_as_the_latest() -> None:
    value = ConsumerProtocolSubscription(
        topics=["t"],
        owned_partitions=[ConsumerProtocolTopicPartition(topic="t", partitions=[0, 1])],
        generation_id=4,
        rack_id="r",
    )
    data = encode_versioned(ConsumerProtocolSubscription, 3, value)
    newer = b"\0\x09" + data[2:] + b"and more"
    assert decode_versioned(ConsumerProtocolSubscription, newer, newer_as_latest=True) == (9, value)
    for bad in (newer, b"\0\x03" + data[2:] + b"!", b"\xff\xff" + data[2:], b"\0", b""):
        with pytest.raises(ProtocolError):
            decode_versioned(ConsumerProtocolSubscription, bad)


def test_a_transaction_and_its_end() -> None:
    key = encode_versioned(TransactionLogKey, 0, TransactionLogKey(transactional_id="x"))
    assert key.hex() == "0000000178"
    value = TransactionLogValue(producer_id=9, transaction_partitions=None, next_producer_epoch=2)
    data = encode_versioned(TransactionLogValue, 1, value)
    assert decode_versioned(TransactionLogValue, data) == (1, value)
    marker = encode_versioned(EndTxnMarker, 0, EndTxnMarker(coordinator_epoch=5))
    assert marker.hex() == "000000000005"
