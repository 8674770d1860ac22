"""Brokers that lack one guarantee, to prove that the checker would notice.

    python -m tests.anomalies.sabotage KIND server.properties …

replaces functions of the broker and starts it as `python -m broker` does. The product has no switch
for any of this. The kinds:

    fencing      any epoch of a producer is as good as the newest, at the coordinator and in the log
    lso          read_committed reads up to the high watermark, aborted or not
    aborted      read_committed ends at the last stable offset, but is not told what was aborted
    offsets      the group coordinator takes each end of a transaction for a commit
    duplicates   sequence numbers are not looked at: a repeated batch is appended again
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.anomalies.findings import Anomaly


def without_fencing() -> None:
    """Zombies are served."""
    from broker.api import transaction_gate
    from broker.coordinator.transaction import decisions
    from storage.producers import analysis

    def any_owner(value: Any, producer: Any) -> None:
        pass

    def is_open(entry: Any, epoch: int) -> bool:
        return bool(entry.current_txn_first_offset >= 0)

    def any_epoch(entry: Any, header: Any, is_client: bool) -> Any:
        return analysis.NEW_EPOCH

    decisions.check_owner = any_owner
    transaction_gate._is_open = is_open
    analysis._analyze_epoch = any_epoch


def without_lso() -> None:
    """Committed readers are served as all others are."""
    from broker.api import fetch

    fetch._TXN_COMMITTED = fetch._HIGH_WATERMARK


def without_aborted_ranges() -> None:
    """The list of aborted transactions is always empty."""
    from storage.log.reading import LogReader

    def nothing(self: Any, segment: Any, offset: int, upper: int) -> list[Any]:
        return []

    LogReader.aborted = nothing  # type: ignore[method-assign]


def without_aborted_offsets() -> None:
    """Offsets of aborted transactions are where the group goes on."""
    from broker.coordinator.group.shard import GroupShard

    load = GroupShard.load_marker

    def load_as_commit(self: Any, producer_id: int, *, commit: bool) -> None:
        load(self, producer_id, commit=True)

    GroupShard.load_marker = load_as_commit  # type: ignore[method-assign]


def without_duplicate_detection() -> None:
    """Whatever a producer sends in its epoch is new."""
    from storage.producers import analysis, state

    def analyze(entry: Any, header: Any, *, is_client: bool) -> Any:
        if header.producer_epoch != entry.producer_epoch:
            return analysis._analyze_epoch(entry, header, is_client)
        return analysis.IN_SEQUENCE

    state.analyze_data = analyze


SABOTAGES: Final[Mapping[str, Callable[[], None]]] = {
    "fencing": without_fencing,
    "lso": without_lso,
    "aborted": without_aborted_ranges,
    "offsets": without_aborted_offsets,
    "duplicates": without_duplicate_detection,
}


def command(kind: str) -> tuple[str, ...]:
    """For `BrokerProcess`."""
    return ("-m", "tests.anomalies.sabotage", kind)


WANTED: Final[Mapping[str, frozenset[Anomaly]]] = {
    "fencing": frozenset((Anomaly.ABORTED_READ, Anomaly.LOST_WRITE, Anomaly.UNCOMMITTED_READ)),
    "lso": frozenset((Anomaly.ABORTED_READ, Anomaly.UNCOMMITTED_READ)),
    "aborted": frozenset((Anomaly.ABORTED_READ,)),
    "offsets": frozenset((Anomaly.LOST_EFFECT,)),
    "duplicates": frozenset((Anomaly.DUPLICATE,)),
}
"""What a run on such a broker must show: one of these at least."""


if __name__ == "__main__":
    from broker.__main__ import main

    SABOTAGES[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
