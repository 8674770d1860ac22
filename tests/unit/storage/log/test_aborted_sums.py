"""The line with the checksums of a log's transaction indexes: its entries, and when it changes."""

import pytest

from protocol.records.control import ControlType
from protocol.types import ZERO_UUID, uuid_to_text
from storage.errors import IndexInDoubt, IndexKind
from storage.index.transaction_index import TransactionIndex
from storage.log.results import StartOffsetReason
from storage.log.segment import LogSegment
from storage.waits import at_once
from tests.support.cleaning import replace
from tests.support.log_builder import DIRECTORY, LogBuilder

NO_ID = uuid_to_text(ZERO_UUID)
_DELETED = StartOffsetReason.CLIENT_RECORD_DELETION


class Transactions(LogBuilder):
    """A log with transactions of one producer; each has two records: data and marker."""

    sequence = 0

    def end(self, kind: ControlType = ControlType.ABORT) -> None:
        self.write(7, self.sequence)
        self.sequence += 1
        self.end_transaction(7, kind)

    def said(self) -> str:
        """The line without the part that is always the same."""
        return self.log.aborted_sums.line(self.log.topic_id).removeprefix(f"t 0 {NO_ID} ")

    def word(self, base: int, entries: int) -> str:
        """The word for the index of a segment, if it has so many entries."""
        path = f"{DIRECTORY}/{base:020d}.txnindex"
        size, crc = TransactionIndex(self.fs, path, base).checksum_of(entries)
        return f"{base}:{size}:{crc}"

    def learn(self, base: int) -> None:
        """Hold the index of a segment against the log."""
        doubt = IndexInDoubt("", base, IndexKind.TRANSACTION, "")
        at_once(self.log.repair_index(doubt))


@pytest.fixture
def built() -> Transactions:
    return Transactions()


def test_a_line_names_what_lies_below_the_recovery_point(built: Transactions) -> None:
    assert built.said() == "0"
    built.end()
    assert built.said() == "0"
    at_once(built.log.flush())
    assert built.said() == f"2 {built.word(0, 1)}"
    built.end()
    built.log.roll()
    built.end(ControlType.COMMIT)
    built.log.roll()
    built.end()
    assert built.said() == f"2 {built.word(0, 1)}"
    at_once(built.log.flush(4))
    assert built.said() == f"4 {built.word(0, 2)}"
    at_once(built.log.flush(6))
    assert built.said() == f"6 {built.word(0, 2)} 4"
    at_once(built.log.flush())
    assert built.said() == f"8 {built.word(0, 2)} 4 {built.word(6, 1)}"


def test_markers_above_the_recovery_point_are_left_out(built: Transactions) -> None:
    built.end()
    at_once(built.log.flush())
    built.end()
    built.end()
    before = f"2 {built.word(0, 1)}"
    assert built.said() == before
    built.log.let_go_of_files()
    built.log.topic_id = bytes(range(16))  # so that it is not the line of before
    assert built.log.aborted_sums.line(built.log.topic_id).endswith(before)


def test_a_line_is_made_again_when_something_in_it_has_changed(built: Transactions) -> None:
    built.end()
    built.log.roll()
    built.end()
    at_once(built.log.flush(2))
    first = built.log.aborted_sums.line(built.log.topic_id)
    built.append()
    built.log.delete_old_segments()
    assert built.log.aborted_sums.line(built.log.topic_id) is first
    at_once(built.log.flush())
    second = built.log.aborted_sums.line(built.log.topic_id)
    assert second != first
    built.learn(0)
    assert built.log.aborted_sums.line(built.log.topic_id) == second
    assert built.log.aborted_sums.line(built.log.topic_id) is not second
    built.log.topic_id = bytes(range(16))
    assert built.said() != second


def test_segments_that_have_ended_are_not_gone_through_again(
    built: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        built.end()
        built.log.roll()
    at_once(built.log.flush())
    assert built.said().count(" ") == 50
    asked: list[int] = []
    bases = LogSegment.__dict__["base_offset"]

    def base_offset(self: LogSegment) -> int:
        base: int = bases.__get__(self)
        asked.append(base)
        return base

    monkeypatch.setattr(LogSegment, "base_offset", property(base_offset, bases.__set__))
    built.end()
    at_once(built.log.flush())
    asked.clear()
    line = built.log.aborted_sums.line(built.log.topic_id)
    assert line.endswith(built.word(100, 1))
    assert len(asked) < 10


def test_what_retention_took_is_not_named_any_more(built: Transactions) -> None:
    for _ in range(3):
        built.end()
        built.log.roll()
    at_once(built.log.flush())
    built.log.maybe_increment_log_start_offset(4, _DELETED)
    built.log.delete_old_segments()
    built.append()
    at_once(built.log.flush())
    assert built.said() == f"7 {built.word(4, 1)} 6"


def test_what_is_not_known_is_said_to_be_so_until_it_is(built: Transactions) -> None:
    built.end()
    built.log.roll()
    built.end()
    built.stopped()
    assert built.said() == "4 0:? 2:?"
    before = built.log.aborted_sums.written_down
    built.learn(0)
    assert built.log.aborted_sums.written_down != before
    assert built.said() == f"4 {built.word(0, 1)} 2:?"
    built.learn(2)
    built.end()
    assert built.said() == f"4 {built.word(0, 1)} {built.word(2, 1)}"


@pytest.mark.parametrize("damage", ["other", "unreadable"])
def test_an_index_that_is_not_what_it_has_to_be_is_not_known(
    built: Transactions, damage: str
) -> None:
    built.end()
    at_once(built.log.flush())
    built.end()
    built.log.let_go_of_files()
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    if damage == "other":
        built.fs.write_bytes(path, built.fs.read_bytes(path)[:34] + bytes(34))
    else:
        built.fs.fail("read_bytes", path)
    assert built.said() == "2 0:?"


def test_what_a_power_loss_may_undo_is_not_known(built: Transactions) -> None:
    """A repaired index of a segment whose name is not synced: the old segment may come back."""
    for _ in range(3):
        built.end()
        built.log.roll()
    built.append()
    at_once(built.log.flush())
    old = list(built.log.segments)[1:2]
    replace(built.log, old, lambda base: False)
    assert built.said().split()[2] == "2:?"
    built.learn(2)
    assert built.log.segments[2].aborted.sum == (0, 0)
    assert built.said().split()[2] == "2:?"
    at_once(built.log.flush())
    assert built.said().split()[2] == "2"


def test_nothing_is_known_of_segments_that_were_replaced(built: Transactions) -> None:
    for _ in range(3):
        built.end()
        built.log.roll()
    built.append()
    old = list(built.log.segments)[:2]
    replace(built.log, old)
    at_once(built.log.flush())
    assert built.said() == f"7 0:? {built.word(4, 1)} 6"


@pytest.mark.parametrize("at_first", [7, 5])
def test_before_a_truncation_the_line_is_that_of_the_lowered_point(
    built: Transactions, at_first: int
) -> None:
    for _ in range(3):
        built.end()
        built.log.roll()
    built.end()
    at_once(built.log.flush())
    whole = built.said()
    lowered: list[str] = []
    built.log.connect(
        failed=lambda *_: None,
        rolled=lambda *_: None,
        lowered=lambda _: lowered.append(built.said()),
    )
    before = f"{at_first} {built.word(0, 1)} {built.word(2, 1)}"
    expected = [f"{before} {built.word(4, 1)} 6" if at_first == 7 else f"{before} 4"]
    built.log.truncate_to(at_first)
    at_once(built.log.flush())
    expected.append(f"3 {built.word(0, 1)} 2")
    built.log.truncate_to(3)
    assert lowered == expected
    assert whole.startswith("8 ")
    built.append()
    at_once(built.log.flush())
    assert built.said() == f"4 {built.word(0, 1)} 2"
