"""The index of aborted transactions: S-TXN-3, torn tails (`test_kafka_scripts` searches it)."""

import errno

import pytest
from crc32c import crc32c

from storage.errors import CorruptIndex, InvalidIndexAppend
from storage.index.transaction_index import (
    ENTRY_SIZE,
    NO_ABORTED,
    AbortedTxn,
    TransactionIndex,
)
from tests.support.faulty_filesystem import FaultyFileSystem


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTxn:
    return AbortedTxn(
        producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
    )


A = aborted(1, 10, 20, 15)
B = aborted(2, 15, 30, 31)
C = aborted(1, 40, 50, 51)


@pytest.fixture
def index(fs: FaultyFileSystem) -> TransactionIndex:
    return TransactionIndex(fs, "/d/x", 5)


def test_s_txn_3_the_file_is_made_by_the_first_append(
    fs: FaultyFileSystem, index: TransactionIndex
) -> None:
    assert index.is_empty
    assert index.last_offset is None
    index.truncate_to(0)
    index.truncate()
    assert not fs.exists("/d/x")
    index.append(A)
    assert fs.size("/d/x") == ENTRY_SIZE == 34
    assert fs.read_bytes("/d/x")[:10] == b"\0\0" + (1).to_bytes(8, "big")
    assert not index.is_empty
    assert index.last_offset == 20


def test_markers_must_rise(index: TransactionIndex) -> None:
    index.append(B)
    with pytest.raises(InvalidIndexAppend, match="not larger than 30"):
        index.append(aborted(3, 1, 30, 1))


def test_s_txn_3_an_append_that_fails_adds_nothing(
    fs: FaultyFileSystem, index: TransactionIndex
) -> None:
    index.append(A)
    fs.fail("pwrite", errno=errno.ENOSPC, partial=20)
    with pytest.raises(OSError, match="No space"):
        index.append(B)
    assert index.all_aborted() == [A]
    index.append(C)
    assert TransactionIndex(fs, "/d/x", 5).all_aborted() == [A, C]


def test_s_rec_9_half_an_entry_at_the_end_is_not_there(
    fs: FaultyFileSystem, index: TransactionIndex
) -> None:
    index.append(A)
    whole = fs.read_bytes("/d/x")
    for cut in range(1, ENTRY_SIZE):
        fs.write_bytes("/d/x", whole + B.pack()[:cut])
        torn = TransactionIndex(fs, "/d/x", 5)
        assert torn.all_aborted() == [A]
        with pytest.raises(CorruptIndex, match=f"{cut} bytes"):
            torn.sanity_check()
        torn.append(C)
        torn.sanity_check()
        assert torn.all_aborted() == [A, C]
    fs.write_bytes("/d/x", whole + b"junk")
    torn = TransactionIndex(fs, "/d/x", 5)
    torn.truncate_to(1000)
    assert fs.read_bytes("/d/x") == whole


def test_s_idx_6_sanity(fs: FaultyFileSystem) -> None:
    for content in (
        aborted(1, 1, 4, 4).pack(),
        b"\0\1" + A.pack()[2:],
        B.pack() + A.pack(),
        aborted(1, 30, 20, 4).pack(),
    ):
        fs.write_bytes("/d/x", content)
        with pytest.raises(CorruptIndex, match="/d/x"):
            TransactionIndex(fs, "/d/x", 5).sanity_check()


def test_truncation_and_reopening(fs: FaultyFileSystem, index: TransactionIndex) -> None:
    for txn in (A, B, C):
        index.append(txn)
    index.truncate_to(30)
    assert index.all_aborted() == [A]
    assert TransactionIndex(fs, "/d/x", 5).all_aborted() == [A]
    index.truncate()
    assert index.is_empty
    assert fs.size("/d/x") == 0
    index.append(A)
    fs.unlink("/d/x")
    assert index.all_aborted() == [A]


def test_the_checksum_of_its_first_entries(fs: FaultyFileSystem, index: TransactionIndex) -> None:
    assert index.begins_with(NO_ABORTED)
    assert index.checksum_of(0) == index.checksum_below(100) == NO_ABORTED
    for txn in (A, B, C):
        index.append(txn)
    one, two, three = ((34 * n, crc32c(fs.read_bytes("/d/x")[: 34 * n])) for n in range(1, 4))
    assert (index.checksum_of(2), index.checksum) == (two, three)
    assert [index.checksum_below(offset) for offset in (20, 21, 30, 31, 51)] == [
        NO_ABORTED,
        one,
        one,
        two,
        three,
    ]
    assert all(index.begins_with(checksum) for checksum in (NO_ABORTED, one, two, three))
    assert not index.begins_with((34, two[1]))
    assert not index.begins_with((136, three[1])), "there are not that many"


def test_many_entries_are_written_as_one(fs: FaultyFileSystem) -> None:
    one, other = TransactionIndex(fs, "/d/one", 0), TransactionIndex(fs, "/d/other", 0)
    for number in range(5):
        one.append(aborted(number, 10 * number, 10 * number + 5, 0))
    other.extend(b"")
    assert not fs.exists("/d/other")
    other.extend(one.packed)
    assert other.checksum == one.checksum
    assert other.all_aborted() == one.all_aborted()
    assert fs.read_bytes("/d/other") == fs.read_bytes("/d/one")
