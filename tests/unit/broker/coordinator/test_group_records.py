"""The bytes of `__consumer_offsets`, against Kafka's layout written out by hand."""

import struct
from dataclasses import replace

import pytest

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    OffsetRecord,
    StoredGroup,
    StoredMember,
)
from broker.coordinator.group.data.serde import decode_record, encode_record
from protocol.errors import ProtocolError
from tests.support.group_harness import GroupHarness

EMPTY = StoredGroup(
    protocol_type="consumer",
    generation=4,
    protocol_name="range",
    leader_id="m",
    state_timestamp_ms=99,
    members=(),
)


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


OFFSET_KEY = struct.pack(">h", 1) + text("g") + text("t") + struct.pack(">i", 3)
GROUP_KEY = struct.pack(">h", 2) + text("g")
MEMBER = StoredMember(
    member_id="m",
    instance_id="i",
    client_id="c",
    client_host="/1.2.3.4",
    rebalance_timeout_ms=60_000,
    session_timeout_ms=10_000,
    subscription=b"sub",
    assignment=b"asg",
)


def group_value(version: int) -> bytes:
    """A group's value in version 0 to 3."""
    member = text("m")
    if version >= 3:
        member += text("i")
    member += text("c") + text("/1.2.3.4")
    if version >= 1:
        member += struct.pack(">i", 60_000)
    member += struct.pack(">i", 10_000) + blob(b"sub") + blob(b"asg")
    value = struct.pack(">h", version) + text("consumer") + struct.pack(">i", 4)
    value += text("range") + text("m")
    if version >= 2:
        value += struct.pack(">q", 99)
    return value + struct.pack(">i", 1) + member


def test_an_offset_is_written_as_kafka_4_does() -> None:
    topic_id = bytes(range(16))
    committed = CommittedOffset(
        offset=5, leader_epoch=2, metadata="md", commit_timestamp_ms=77, topic_id=topic_id
    )
    key, value = encode_record(OffsetRecord(("g", "t", 3), committed))
    assert key == OFFSET_KEY
    version_4 = struct.pack(">hqi", 4, 5, 2) + b"\x03md" + struct.pack(">q", 77)
    assert value == version_4 + b"\x01\x00\x10" + topic_id
    assert decode_record(OFFSET_KEY, value) == OffsetRecord(("g", "t", 3), committed)
    committed.topic_id = None
    assert encode_record(OffsetRecord(("g", "t", 3), committed))[1] == version_4 + b"\x00"


def test_an_offset_with_its_own_retention_is_written_in_version_1() -> None:
    committed = CommittedOffset(
        offset=5, metadata="md", commit_timestamp_ms=77, expire_timestamp_ms=99
    )
    _, value = encode_record(OffsetRecord(("g", "t", 3), committed))
    assert value == struct.pack(">hq", 1, 5) + text("md") + struct.pack(">qq", 77, 99)


def test_tombstones() -> None:
    assert encode_record(OffsetRecord(("g", "t", 3), None)) == (OFFSET_KEY, None)
    assert encode_record(GroupMetadataRecord("g", None)) == (GROUP_KEY, None)
    assert decode_record(OFFSET_KEY, None) == OffsetRecord(("g", "t", 3), None)
    assert decode_record(GROUP_KEY, None) == GroupMetadataRecord("g", None)


def test_a_group_is_written_in_version_3() -> None:
    stored = replace(EMPTY, members=(MEMBER,))
    assert encode_record(GroupMetadataRecord("g", stored)) == (GROUP_KEY, group_value(3))
    assert decode_record(GROUP_KEY, group_value(3)) == GroupMetadataRecord("g", stored)


def test_a_new_group_is_written_as_kafka_4_does() -> None:
    groups = GroupHarness()
    groups.join(require_id=True)
    (record,) = groups.log.all_records()
    assert record.key == GROUP_KEY
    timestamp = groups.clock.wall_ms()
    assert record.value == struct.pack(">h", 3) + text("") + struct.pack(">i", 0) + text(
        None
    ) + text(None) + struct.pack(">qi", timestamp, 0)
    assert record.timestamp == timestamp


@pytest.mark.parametrize("key_version", [0, 1])
@pytest.mark.parametrize(
    ("value", "leader_epoch", "expires"),
    [
        (struct.pack(">hq", 0, 5) + text("md") + struct.pack(">q", 77), -1, None),
        (struct.pack(">hq", 1, 5) + text("md") + struct.pack(">qq", 77, 99), -1, 99),
        (struct.pack(">hq", 1, 5) + text("md") + struct.pack(">qq", 77, -1), -1, None),
        (struct.pack(">hq", 2, 5) + text("md") + struct.pack(">q", 77), -1, None),
        (struct.pack(">hqi", 3, 5, 2) + text("md") + struct.pack(">q", 77), 2, None),
    ],
)
def test_every_older_offset_is_read(
    key_version: int, value: bytes, leader_epoch: int, expires: int | None
) -> None:
    key = struct.pack(">h", key_version) + OFFSET_KEY[2:]
    assert decode_record(key, value) == OffsetRecord(
        ("g", "t", 3),
        CommittedOffset(
            offset=5,
            leader_epoch=leader_epoch,
            metadata="md",
            commit_timestamp_ms=77,
            expire_timestamp_ms=expires,
        ),
    )


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_older_group_is_read(version: int) -> None:
    decoded = decode_record(GROUP_KEY, group_value(version))
    assert isinstance(decoded, GroupMetadataRecord)
    stored = decoded.value
    assert stored is not None
    assert stored.state_timestamp_ms == (99 if version >= 2 else None)
    (member,) = stored.members
    assert member.instance_id == ("i" if version >= 3 else None)
    assert member.rebalance_timeout_ms == (60_000 if version >= 1 else -1)
    assert (member.subscription, member.assignment) == (b"sub", b"asg")


def test_a_group_without_rebalance_timeout_uses_its_session_timeout() -> None:
    from broker.coordinator.group.classic.stored import restored_group

    decoded = decode_record(GROUP_KEY, group_value(0))
    assert isinstance(decoded, GroupMetadataRecord)
    assert decoded.value is not None
    group = restored_group("g", decoded.value)
    assert group.rebalance_timeout_ms == 10_000
    group._check()


@pytest.mark.parametrize("version", range(3, 20))
def test_keys_of_newer_group_types_are_left_alone(version: int) -> None:
    assert decode_record(struct.pack(">h", version) + b"anything", b"\x00\x00") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
        (OFFSET_KEY[:-1], None),
        (OFFSET_KEY + b"x", None),
        (OFFSET_KEY, b"\x00\x05"),
        (OFFSET_KEY, group_value(3)),
        (GROUP_KEY, group_value(3)[:-1]),
    ],
)
def test_what_cannot_be_read_is_said(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_record(key, value)


@pytest.mark.parametrize(
    "members",
    [
        (MEMBER, MEMBER),
        (MEMBER._replace(instance_id="i"), MEMBER._replace(member_id="n", instance_id="i")),
    ],
)
def test_a_group_that_has_a_member_twice_cannot_be_read(members: tuple[StoredMember, ...]) -> None:
    """A client may have written it; it must not end the broker that loads it."""
    stored = replace(EMPTY, members=members)
    with pytest.raises(ProtocolError):
        decode_record(*encode_record(GroupMetadataRecord("g", stored)))


def test_a_group_without_a_next_generation_cannot_be_read() -> None:
    last = 2**31 - 1
    stored = replace(EMPTY, generation=last - 1)
    assert decode_record(*encode_record(GroupMetadataRecord("g", stored))) is not None
    with pytest.raises(ProtocolError):
        decode_record(*encode_record(GroupMetadataRecord("g", replace(stored, generation=last))))
