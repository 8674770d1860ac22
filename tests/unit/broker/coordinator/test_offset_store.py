"""Committed offsets as data: what is visible, what is on its way, what waits in a transaction."""

from broker.coordinator.group.offsets import CommittedOffset, OffsetStore

A, OTHER_PARTITION, OTHER_GROUP = ("a", "t", 0), ("a", "t", 1), ("b", "t", 0)


def committed(offset: int, *, record: int = -1) -> CommittedOffset:
    return CommittedOffset(offset=offset, commit_timestamp_ms=0, record_offset=record)


def test_a_partition_is_in_flight_until_its_last_write_has_ended() -> None:
    store = OffsetStore()
    store.begin_write([A, OTHER_PARTITION, OTHER_GROUP])
    store.begin_write([A])
    store.end_write([A, OTHER_GROUP])
    assert store.in_flight_keys("a") == [A, OTHER_PARTITION]
    assert store.in_flight_keys("b") == []
    store._check()
    store.end_write([A])
    assert not store.is_in_flight(A)
    store.end_write([OTHER_PARTITION])
    assert store.in_flight_keys("a") == []


def test_offsets_in_transactions_are_those_of_their_group() -> None:
    store = OffsetStore()
    store.put_pending(1, A, committed(5))
    store.put_pending(2, OTHER_GROUP, committed(6))
    assert store.pending_keys("a") == [A]
    assert store.pending_keys("b") == [OTHER_GROUP]
    assert (store.is_pending(A), store.is_pending(OTHER_PARTITION)) == (True, False)
    store.end_transaction(1, commit=False)
    assert store.pending_keys("a") == []
    assert not store.has_open_transaction("a")
    assert store.has_open_transaction("b")
    assert store.get(A) is None


def test_of_a_plain_and_a_transactional_commit_the_later_record_wins() -> None:
    for plain, pending, wanted in ((3, 4, 40), (4, 3, 30), (3, 3, 30)):
        store = OffsetStore()
        store.put_pending(1, A, committed(40, record=pending))
        store.put(A, committed(30, record=plain))
        store.end_transaction(1, commit=True)
        found = store.get(A)
        assert found is not None
        assert found.offset == wanted


def test_a_pending_offset_that_was_not_written_goes_alone() -> None:
    store = OffsetStore()
    first, second = committed(1), committed(2)
    store.put_pending(1, A, first)
    store.put_pending(1, OTHER_PARTITION, second)
    store.drop_pending(1, A, second)  # replaced meanwhile: not this one
    assert store.is_pending(A)
    store.drop_pending(1, A, first)
    assert store.pending_keys("a") == [OTHER_PARTITION]
    store.drop_pending(1, OTHER_PARTITION, second)
    assert not store.has_transactions
