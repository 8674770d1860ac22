"""The comparison of replicas finds what differs, also where brokers have cleaned their logs."""

from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from protocol.records.control import ControlType, build_end_transaction_marker
from tests.support.cluster.replicas import differences

TOPIC = "__consumer_offsets"
Batches = dict[int, bytes]
"""Base offset to batch."""


def record(offset: int, key: str, value: str | None, epoch: int = 0, *, of: int = -1) -> Batches:
    """A record alone in its batch; `of`: the producer id of its transaction."""
    stored = None if value is None else value.encode()
    return {
        offset: build_batch(
            [(1, key.encode(), stored, ())],
            base_offset=offset,
            leader_epoch=epoch,
            producer_id=of,
            producer_epoch=0 if of >= 0 else -1,
            base_sequence=0 if of >= 0 else -1,
            transactional=of >= 0,
        )
    }


def end(offset: int, kind: ControlType, *, of: int) -> Batches:
    return {
        offset: build_end_transaction_marker(
            kind,
            producer_id=of,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=1,
            base_offset=offset,
            leader_epoch=0,
        )
    }


COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
LAST = record(9, "z", "9")
WHOLE = record(0, "a", "0") | record(1, "b", "1") | record(2, "a", "2") | LAST
OPEN = record(0, "a", "0") | record(1, "a", "1", of=7)


class Brokers:
    """A directory for each broker."""

    def __init__(self, directory: Path) -> None:
        self.dirs = {broker: [directory / str(broker)] for broker in (1, 2)}

    def differ(self, one: Batches, other: Batches, *, whole: bool = True) -> list[str]:
        for (log_dir,), batches in zip(self.dirs.values(), (one, other), strict=True):
            partition = log_dir / f"{TOPIC}-0"
            partition.mkdir(parents=True)
            content = b"".join(batches[offset] for offset in sorted(batches))
            (partition / f"{0:020d}.log").write_bytes(content)
        return differences(self.dirs, whole=whole, compacted=(TOPIC,))


@pytest.fixture
def brokers(tmp_path: Path) -> Brokers:
    return Brokers(tmp_path)


def without(batches: Batches, *offsets: int) -> Batches:
    return {offset: batch for offset, batch in batches.items() if offset not in offsets}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (WHOLE, WHOLE),
        (WHOLE, without(WHOLE, 0)),
        (without(WHOLE, 0), WHOLE),
        # tombstones
        (WHOLE | record(3, "a", None), without(WHOLE, 0, 2)),
        (WHOLE | record(3, "a", None), without(WHOLE, 0, 2) | record(3, "a", None)),
        # transactions
        (OPEN | end(2, ABORT, of=7) | LAST, without(OPEN, 1) | end(2, ABORT, of=7) | LAST),
        (OPEN | end(2, COMMIT, of=7) | LAST, without(OPEN, 0) | end(2, COMMIT, of=7) | LAST),
        (
            OPEN | record(2, "a", "2") | end(3, COMMIT, of=7) | LAST,
            record(2, "a", "2") | end(3, COMMIT, of=7) | LAST,
        ),
    ],
)
def test_replicas_may_lack_what_a_cleaner_drops(
    brokers: Brokers, one: Batches, other: Batches
) -> None:
    assert brokers.differ(one, other) == []


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (without(WHOLE, 2), "last value of b'a': broker 1 has (2, b'2'), broker 2 has (0, b'0')"),
        (without(WHOLE, 0, 2), "last value of b'a': broker 1 has (2, b'2'), broker 2 has None"),
        (without(WHOLE, 1), "last value of b'b': broker 1 has (1, b'1'), broker 2 has None"),
        (WHOLE | record(5, "c", "5"), "last value of b'c': broker 1 has None, broker 2 has (5,"),
        (WHOLE | record(0, "a", "x"), f"{TOPIC}-0 at 0: "),
        (WHOLE | record(1, "b", "1", epoch=3), f"{TOPIC}-0 at 1: "),
        (without(WHOLE, 9), f"{TOPIC}-0: ends {{1: 10, 2: 3}}"),
    ],
)
def test_what_no_cleaner_does_is_found(brokers: Brokers, other: Batches, found: str) -> None:
    (told,) = brokers.differ(WHOLE, other)
    assert found in told


@pytest.mark.parametrize("kind", [COMMIT, ABORT])
def test_a_transaction_that_ends_otherwise_is_found(brokers: Brokers, kind: ControlType) -> None:
    other = COMMIT if kind is ABORT else ABORT
    told = brokers.differ(OPEN | end(2, kind, of=7) | LAST, OPEN | end(2, other, of=7) | LAST)
    assert [f"{TOPIC}-0 at 2: " in told[0], "last value of b'a'" in told[1]] == [True, True]


def test_while_clients_write_only_records_that_both_have_are_compared(brokers: Brokers) -> None:
    """The one has cleaned by a record that the other does not have yet."""
    assert brokers.differ(without(WHOLE, 0), without(WHOLE, 2, 9), whole=False) == []


def test_a_log_ends_where_its_active_segment_begins(brokers: Brokers) -> None:
    told = brokers.differ(WHOLE, without(WHOLE, 9))
    assert len(told) == 1
    (second,) = brokers.dirs[2]
    (second / f"{TOPIC}-0" / f"{10:020d}.log").touch()
    (told_now,) = differences(brokers.dirs, whole=True, compacted=(TOPIC,))
    assert "last value of b'z'" in told_now
