"""Brokers that lack one guarantee, to prove that the checker would notice.

    python -m tests.anomalies.sabotage KIND server.properties …

replaces functions of the broker and starts it as `python -m broker` does. The product has no switch
for any of this. The kinds:

    fencing      any epoch of a producer is as good as the newest, at the coordinator and in the log
    lso          read_committed reads up to the high watermark, aborted or not
    takeover     a new owner of a transactional id gets the epoch of the last one
    aborted      read_committed ends at the last stable offset, but aborted ranges are not listed
    reaching-in  aborted ranges that begin before the fetched offset are not listed
    spanning     aborted ranges that end in a later segment are not listed
    offsets      the group coordinator takes each end of a transaction for a commit
    duplicates   sequence numbers are not looked at: a repeated batch is appended again
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.anomalies.findings import Anomaly

Put = Callable[[Any, str, Any], None]
"""`setattr`, or one that is taken back (pytest's `MonkeyPatch.setattr`)."""


def without_fencing(put: Put) -> None:
    """The broker serves zombies."""
    from broker.coordinator.transaction import decisions, gate
    from storage.producers import analysis

    def any_owner(value: Any, producer: Any) -> None:
        pass

    def is_open(entry: Any, epoch: int) -> bool:
        return bool(entry.current_txn_first_offset >= 0)

    def any_epoch(entry: Any, header: Any, is_client: bool) -> Any:
        return analysis.NEW_EPOCH

    put(decisions, "check_owner", any_owner)
    put(gate, "_is_open", is_open)
    put(analysis, "_analyze_epoch", any_epoch)


def without_raised_epochs(put: Put) -> None:
    """InitProducerId aborts what is open, but leaves the zombie its epoch."""
    from broker.coordinator.transaction import decisions

    raised = decisions._next_epoch

    def same_epoch(value: Any, expected: Any) -> tuple[int, int]:
        epoch, last = raised(value, expected)
        return (max(value.producer_epoch, 0) if expected is None else epoch), last

    put(decisions, "_next_epoch", same_epoch)


def without_lso(put: Put) -> None:
    """Committed readers are served as all others are."""
    from broker.api import fetch
    from broker.replication.isolation import READ_UNCOMMITTED, isolation_of

    def uncommitted(*, is_replica: bool, isolation_level: int) -> Any:
        return isolation_of(is_replica=is_replica, isolation_level=READ_UNCOMMITTED)

    put(fetch, "isolation_of", uncommitted)
    put(fetch, "_params", fetch._params.__wrapped__)  # not those of earlier requests


def without_aborted_ranges(put: Put) -> None:
    """The list of aborted transactions is always empty."""
    from storage.log.reading import LogReader

    def nothing(self: Any, segment: Any, offset: int, upper: int) -> list[Any]:
        return []

    put(LogReader, "aborted", nothing)


def without_ranges_that_reach_in(put: Put) -> None:
    """A reader that begins in the middle of an aborted transaction does not hear of it."""
    from storage.log.reading import LogReader

    all_of_them = LogReader.aborted

    def later(self: Any, segment: Any, offset: int, upper: int) -> list[Any]:
        found = all_of_them(self, segment, offset, upper)
        return [one for one in found if one.first_offset >= offset]

    put(LogReader, "aborted", later)


def without_ranges_that_span(put: Put) -> None:
    """Only the transaction index of the segment that is read is looked into."""
    from storage.log.reading import LogReader

    def here(self: Any, segment: Any, offset: int, upper: int) -> list[Any]:
        return list(segment.aborted.index.collect_aborted(offset, upper)[0])

    put(LogReader, "aborted", here)


def without_aborted_offsets(put: Put) -> None:
    """Offsets of aborted transactions are where the group goes on."""
    from broker.coordinator.group.shard import GroupShard

    load = GroupShard.load_marker

    def load_as_commit(self: Any, producer_id: int, *, commit: bool) -> None:
        load(self, producer_id, commit=True)

    put(GroupShard, "load_marker", load_as_commit)


def without_duplicate_detection(put: Put) -> None:
    """Whatever a producer sends in its epoch is new."""
    from storage.producers import analysis, state

    def analyze(entry: Any, header: Any, *, is_client: bool) -> Any:
        if header.producer_epoch != entry.producer_epoch:
            return analysis._analyze_epoch(entry, header, is_client)
        return analysis.IN_SEQUENCE

    put(state, "analyze_data", analyze)


SABOTAGES: Final[Mapping[str, Callable[[Put], None]]] = {
    "fencing": without_fencing,
    "takeover": without_raised_epochs,
    "lso": without_lso,
    "aborted": without_aborted_ranges,
    "reaching-in": without_ranges_that_reach_in,
    "spanning": without_ranges_that_span,
    "offsets": without_aborted_offsets,
    "duplicates": without_duplicate_detection,
}


def command(kind: str) -> tuple[str, ...]:
    """Return the command of a `BrokerProcess`: of this checkout, whose modules are replaced."""
    return ("-m", "tests.anomalies.sabotage", kind)


WANTED: Final[Mapping[str, frozenset[Anomaly]]] = {
    "fencing": frozenset((Anomaly.ABORTED_READ, Anomaly.LOST_WRITE, Anomaly.UNCOMMITTED_READ)),
    "takeover": frozenset(
        (
            Anomaly.ABORTED_READ,
            Anomaly.LOST_WRITE,
            Anomaly.UNCOMMITTED_READ,
            # The new owner's first sequence numbers are the zombie's: answered as its duplicates.
            Anomaly.INCONSISTENT_OFFSET,
        )
    ),
    "lso": frozenset((Anomaly.ABORTED_READ, Anomaly.UNCOMMITTED_READ)),
    "aborted": frozenset((Anomaly.ABORTED_READ,)),
    "reaching-in": frozenset((Anomaly.ABORTED_READ,)),
    "spanning": frozenset((Anomaly.ABORTED_READ,)),
    "offsets": frozenset((Anomaly.LOST_EFFECT,)),
    "duplicates": frozenset((Anomaly.DUPLICATE,)),
}
"""The anomalies of which a run on such a broker must show one at least."""


if __name__ == "__main__":
    from broker.__main__ import main

    SABOTAGES[sys.argv[1]](setattr)
    sys.exit(main(sys.argv[2:]))
