"""Which records are on their way, by key."""

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.data.records import GroupMetadataRecord, GroupRecord, OffsetRecord
from broker.coordinator.runtime.in_flight import InFlight

A, B = ("a", "t", 0), ("b", "t", 0)


def commit(key: tuple[str, str, int], offset: int) -> OffsetRecord:
    return OffsetRecord(key, CommittedOffset(offset=offset, commit_timestamp_ms=0))


def test_a_key_is_in_flight_until_its_last_record_has_ended() -> None:
    table: InFlight[GroupRecord] = InFlight()
    first, second, other = commit(A, 1), commit(A, 2), commit(B, 3)
    table.begin([first, other])
    table.begin([second])
    assert table.of(A) == (first, second)
    table.end([first, other])
    assert table.of(A) == (second,)
    assert B not in table
    table._check()
    table.end([second])
    assert not table
    assert table.of(A) == ()


def test_the_record_that_ended_goes_among_equal_ones() -> None:
    table: InFlight[GroupRecord] = InFlight()
    one, same = commit(A, 1), commit(A, 1)
    table.begin([one, same])
    table.end([same])
    (left,) = table.of(A)
    assert left is one


def test_a_group_and_its_offsets_have_keys_of_their_own() -> None:
    table: InFlight[GroupRecord] = InFlight()
    tombstone = GroupMetadataRecord("a", None)
    table.begin([commit(A, 1), tombstone])
    assert table.of("a") == (tombstone,)
    assert len(table) == 2
