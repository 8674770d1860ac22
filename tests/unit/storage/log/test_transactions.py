"""Open, committed and aborted transactions of one log: S-TXN-1, S-TXN-3, S-TXN-6, S-READ-5."""

import errno

import pytest

from protocol.records.batch import iter_batches
from protocol.records.control import ControlType
from storage.errors import StorageError
from storage.index.transaction_index import AbortedTxn
from storage.log import reading
from storage.log.results import FetchIsolation
from tests.support.log_builder import DIRECTORY, LogBuilder

A, B = 7, 8


class Transactions(LogBuilder):
    """Two producers, each in its own epoch 0."""

    def end(self, producer_id: int, *, commit: bool, replicated: bool = True) -> int:
        """A marker; its offset."""
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        return self.end_transaction(producer_id, kind, replicated=replicated).first_offset


@pytest.fixture
def log() -> Transactions:
    return Transactions()


def test_s_txn_1_the_oldest_open_transaction_holds_back_what_follows(log: Transactions) -> None:
    log.append()
    assert [log.write(one).first_offset for one in (A, B)] == [1, 2]
    log.append()
    assert log.log.last_stable_offset == 1
    log.end(B, commit=True)
    assert log.log.last_stable_offset == 1
    log.end(A, commit=True)
    assert log.log.last_stable_offset == log.log.log_end_offset == 6


def test_s_txn_1_a_truncation_to_the_high_watermark_leaves_what_is_decided(
    log: Transactions,
) -> None:
    log.write(A)
    log.end(A, commit=True)
    log.write(B)
    log.log.append_as_leader(log.batch(), leader_epoch=0)
    for cut in (3, 2):
        log.log.truncate_to(cut)
        # Read back from the log, the transaction of A seems to wait for the high watermark.
        assert (log.log.high_watermark, log.log.last_stable_offset) == (cut, 2)


def test_s_txn_1_a_decision_counts_when_its_marker_is_replicated(log: Transactions) -> None:
    log.write(A)
    marker = log.end(A, commit=True, replicated=False)
    assert log.log.last_stable_offset == 0
    log.log.update_high_watermark(marker)
    assert log.log.last_stable_offset == 0
    log.log.update_high_watermark(marker + 1)
    assert log.log.last_stable_offset == marker + 1


def read_on(log: Transactions, max_bytes: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """All reads of a committed reader: (first offset, bytes, aborted transactions)."""
    found, offset = [], 0
    while True:
        info = log.log.read(offset, max_bytes, FetchIsolation.TXN_COMMITTED)
        data = bytes(info.records.read()) if info.records else b""
        if not data:
            return found
        told = [(one.producer_id, one.first_offset) for one in info.aborted or ()]
        found.append((offset, len(data), told))
        for _, header in iter_batches(data):
            offset = header.last_offset + 1


@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_s_read_5_a_read_ends_before_its_aborted_transactions_are_too_many(
    log: Transactions, max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        if number == 5:
            log.write(99)  # spans the next four, so reads within them get it, too
        log.write(10 + number)
        log.end(10 + number, commit=number % 4 == 3)
        if number == 8:
            log.end(99, commit=False)
    log.append()
    whole = read_on(log, max_bytes)
    monkeypatch.setattr(reading, "MOST_ABORTED", 3)
    cut = read_on(log, max_bytes)
    assert sum(size for _, size, _ in cut) == sum(size for _, size, _ in whole)
    assert {one for _, _, told in cut for one in told} == {
        one for _, _, told in whole for one in told
    }
    # Three with their markers, one whose marker comes next, and the one that spans them.
    assert max(len(told) for _, _, told in cut) <= 5
    if max_bytes > 400:
        assert (len(whole), len(cut)) == (1, 4)
    for offset, _, told in cut:
        following = min((at for at, _, _ in cut if at > offset), default=1 << 60)
        if offset <= 19 and following > 10:
            assert (99, 10) in told, (offset, told)


def test_s_read_5_a_small_answer_is_told_of_the_aborted_transactions_in_it() -> None:
    log = Transactions(index_interval_bytes=0)
    for sequence in range(3):
        log.write(A, sequence)
        log.end(A, commit=False)
    found = log.log.read(0, 1, FetchIsolation.TXN_COMMITTED).aborted or ()
    assert [one.first_offset for one in found] == [0]


def test_s_txn_3_an_abort_is_noted_with_the_stable_offset_of_that_moment(
    log: Transactions,
) -> None:
    log.write(A)
    log.write(B)
    log.end(B, commit=False)
    log.end(A, commit=False)
    found = log.log.segments.active.aborted.index.all_aborted()
    assert found == [
        AbortedTxn(producer_id=B, first_offset=1, last_offset=2, last_stable_offset=0),
        AbortedTxn(producer_id=A, first_offset=0, last_offset=3, last_stable_offset=4),
    ]
    assert log.aborted() == [(B, 1, 2), (A, 0, 3)]


def test_s_read_5_a_commit_is_not_in_the_list_of_aborted(log: Transactions) -> None:
    log.write(A)
    log.end(A, commit=True)
    log.write(B)
    log.end(B, commit=False)
    assert log.aborted() == [(B, 2, 3)]


def test_s_txn_3_when_the_abort_cannot_be_noted_offsets_grow_and_the_stable_one_stays(
    log: Transactions,
) -> None:
    log.write(A)
    log.fs.fail("pwrite", "*.txnindex", errno=errno.EIO)
    with pytest.raises(StorageError):
        log.end(A, commit=False)
    assert log.log.log_end_offset == 2
    assert log.log.last_stable_offset == 0
    # The marker is in the log: what it says is found again at the next start.
    log.killed()
    log.log.update_high_watermark(log.log.log_end_offset)
    assert log.log.last_stable_offset == 2
    assert log.aborted() == [(A, 0, 1)]


@pytest.mark.parametrize("clean", [True, False])
def test_s_txn_6_the_stable_offset_is_that_from_before_the_restart(
    log: Transactions, clean: bool
) -> None:
    log.append()
    log.write(A)
    log.write(B)
    log.end(B, commit=False)
    log.stopped() if clean else log.killed()
    log.log.update_high_watermark(log.log.log_end_offset)
    assert log.log.last_stable_offset == 1
    log.write(A, sequence=1)
    log.end(A, commit=True)
    assert log.log.last_stable_offset == log.log.log_end_offset == 6
    assert log.aborted() == [(B, 2, 3)]
    assert log.fs.exists(f"{DIRECTORY}/00000000000000000000.txnindex")
