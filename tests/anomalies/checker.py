"""The checker: a history in, a report out. `python -m tests.anomalies.checker FILE-OR-DIRECTORY`.

The exit code says whether the history is clean (0) or not (1).
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.anomalies.cycles import information_cycles, overlapping_write_cycles
from tests.anomalies.effects import check_effects
from tests.anomalies.findings import Report, merged
from tests.anomalies.history import Event, read_history
from tests.anomalies.log_order import (
    internal_sends,
    offset_conflicts,
    plain_sends,
    sends_against_time,
)
from tests.anomalies.model import History, Outcome, assemble
from tests.anomalies.streams import check_streams
from tests.anomalies.visibility import hanging_transactions, lost_writes, premature_reads

CHECKS = (
    premature_reads,
    lost_writes,
    hanging_transactions,
    offset_conflicts,
    internal_sends,
    sends_against_time,
    plain_sends,
    check_streams,
    information_cycles,
    check_effects,
)


def check(events: Sequence[Event]) -> Report:
    """All checks over the events of a history, in the order of their time."""
    history = assemble(events)
    notes = []
    knots = overlapping_write_cycles(history)
    if knots:
        notes.append(
            f"{knots} knots of transactions that overlap interleave their writes; Kafka allows it"
        )
    if history.final is not None and history.final.resent:
        notes.append(f"{len(history.final.resent)} records were sent again by their own producers")
    return Report(
        findings=merged(one(history) for one in CHECKS),
        counts={
            "processes": history.processes,
            "crashes in commits": sum(event.f == "crash" for event in events),
            **_counts(history),
        },
        notes=tuple(notes),
    )


def _counts(history: History) -> dict[str, int]:
    outcomes = Counter(one.outcome for one in history.transactions)
    undecided = [o for o in history.transactions if o.outcome is Outcome.INDETERMINATE]
    return {
        "transactions": len(history.transactions),
        "committed": outcomes[Outcome.COMMITTED],
        "with offsets": sum(o.is_committed for o in history.transactions if o.group is not None),
        "aborted": outcomes[Outcome.ABORTED],
        "indeterminate": len(undecided),
        "of these seen": sum(one.is_seen for one in undecided),
        "values": sum(len(one.writes) for one in history.transactions),
        "polls": len(history.polls),
        "values polled": sum(
            len(pairs) for poll in history.polls for pairs in poll.values.values()
        ),
    }


def main(arguments: Sequence[str]) -> int:
    """The command; its exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    report = check(read_history(Path(arguments[0])))
    print(report.text())
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
