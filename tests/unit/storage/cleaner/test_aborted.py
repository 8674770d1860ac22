"""Aborted transactions as the bytes of their index entries."""

from storage.cleaner.aborted import packed, table_of, with_markers_in
from storage.index.transaction_index import AbortedTxn


def aborted(producer_id: int, first: int, last: int) -> AbortedTxn:
    return AbortedTxn(
        producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=first
    )


def test_entries_are_rows() -> None:
    table = table_of(packed([aborted(7, 3, 9), aborted(8, 4, 2**40)]))
    assert table["producer_id"].tolist() == [7, 8]
    assert table["first_offset"].tolist() == [3, 4]
    assert table["last_offset"].tolist() == [9, 2**40]
    assert not len(table_of(b""))


def test_those_with_their_marker_in_a_range_come_in_the_order_of_the_markers() -> None:
    one, other, before, behind = (
        aborted(1, 0, 20),
        aborted(2, 5, 10),
        aborted(3, 0, 9),
        aborted(4, 11, 21),
    )
    entries = packed([one, other, before, behind])
    assert with_markers_in(entries, 10, 20) == packed([other, one])
    assert with_markers_in(b"", 0, 100) == b""
