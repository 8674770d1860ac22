"""Committed offsets as data: what is visible, what waits in a transaction."""

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.table.offset_store import OffsetStore

A, OTHER_PARTITION, OTHER_GROUP = ("a", "t", 0), ("a", "t", 1), ("b", "t", 0)


def committed(offset: int, *, record: int = -1) -> CommittedOffset:
    return CommittedOffset(offset=offset, commit_timestamp_ms=0, record_offset=record)


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


def test_the_later_record_wins_of_a_plain_and_a_transactional_commit() -> None:
    for plain, pending, wanted in ((3, 4, 40), (4, 3, 30), (3, 3, 30)):
        store = OffsetStore()
        store.put_pending(1, A, committed(40, record=pending))
        store.put(A, committed(30, record=plain))
        store.end_transaction(1, commit=True)
        store._check()
        found = store.get(A)
        assert found is not None
        assert found.offset == wanted


def test_a_tombstone_reaches_into_open_transactions() -> None:
    store = OffsetStore()
    store.put_pending(7, A, committed(5, record=10))
    store.remove(A)
    store.end_transaction(7, commit=True)
    assert store.get(A) is None
    store._check()


def test_a_store_forgets_empty_groups_and_topics() -> None:
    store = OffsetStore()
    store.put(A, committed(1))
    assert store.remove(A)
    assert not store.remove(A)
    assert list(store.group_ids()) == []
    assert len(store) == 0
    store._check()
