"""Offsets: each has one value, each value has one, in the order in which values were sent.

    inconsistent offset     two values at one offset, by reads or by what producers were answered
    duplicate               one value at two offsets, likewise, unless its producer sent it again
                            (`resent`)
    internal non-monotonic  a transaction's sends to a key lie in another order than they were sent
    non-monotonic send      of two transactions of one transactional id the later lies first; of two
                            records of an idempotent producer the later lies first
    G0 write cycle          the same of any two: T2 began when T1 had been committed, and yet T2's
                            write lies before T1's. With real time that is a cycle of two

Kafka does not isolate writes: transactions that overlap in time may interleave in any way, and
Jepsen allows every G0 for that. Here transactions that do not overlap are held to their order; a
cycle of transactions none of which overlap always has such a pair. Cycles that need an overlap are
counted (`cycles.overlapping_write_cycles`) and no anomaly.
"""

from collections import defaultdict
from collections.abc import Iterator

from tests.anomalies.findings import Anomaly, Finding
from tests.anomalies.model import NEVER, History, Transaction, Write, seconds


def offset_conflicts(history: History) -> Iterator[Finding]:
    """Duplicates and inconsistent offsets."""
    for key, values in sorted(history.known_offsets.items()):
        at: dict[int, list[str]] = defaultdict(list)
        for value, offsets in values.items():
            for offset in offsets:
                at[offset].append(value)
            if len(offsets) > 1 and not history.is_resent(key, value):
                yield Finding(
                    anomaly=Anomaly.DUPLICATE,
                    what=f"{value} lies at offsets {sorted(offsets)} of {key}",
                    evidence=_writers(history, key, [value]),
                )
        for offset, several in sorted(at.items()):
            if len(several) > 1:
                yield Finding(
                    anomaly=Anomaly.INCONSISTENT_OFFSET,
                    what=f"{key}@{offset} is {' and '.join(sorted(several))}",
                    evidence=_writers(history, key, sorted(several)),
                )


def _writers(history: History, key: str, values: list[str]) -> tuple[str, ...]:
    found = (history.writer_of.get(Write(key, value)) for value in values)
    return tuple(writer.describe() for writer in found if writer is not None)


def internal_sends(history: History) -> Iterator[Finding]:
    """Sends of one transaction that lie in another order, also if it did not commit."""
    for one in history.transactions:
        last: dict[str, tuple[int, str]] = {}
        for write in one.writes:
            offsets = history.known_offsets[write.key].get(write.value)
            if not offsets:
                continue
            before = last.get(write.key)
            place = min(offsets)
            if before is not None and place <= before[0]:
                yield Finding(
                    anomaly=Anomaly.INTERNAL_NONMONOTONIC_SEND,
                    what=f"{one} sent {before[1]} before {write.value}, which lies before it",
                    evidence=(one.describe(),),
                )
            last[write.key] = (place, write.value)


def plain_sends(history: History) -> Iterator[Finding]:
    """Records without transactions that lie in another order, also if they overlap in time."""
    last: dict[tuple[str, str], tuple[int, str, Transaction]] = {}
    for one in history.transactions:  # In the order in which each process sent them.
        if not one.plain:
            continue
        for write in one.writes:
            offsets = history.known_offsets[write.key].get(write.value)
            if not offsets or history.is_resent(write.key, write.value):
                continue
            place = min(offsets)
            before = last.get((one.process, write.key))
            if before is not None and place <= before[0]:
                yield Finding(
                    anomaly=Anomaly.NONMONOTONIC_SEND,
                    what=f"{before[1]} was sent to {write.key} before {write.value}, lies after",
                    evidence=(before[2].describe(), one.describe()),
                )
            last[one.process, write.key] = (place, write.value, one)


def sends_against_time(history: History) -> Iterator[Finding]:
    """Committed writes that lie before what had been committed when they began."""
    for key, log in sorted(history.committed_log.items()):
        earliest: Transaction | None = None  # The one that was over first, of those further on.
        for offset, value, writer in reversed(log):
            if earliest is not None and earliest.over_at < writer.invoked:
                same = earliest.transactional_id == writer.transactional_id
                yield Finding(
                    anomaly=Anomaly.NONMONOTONIC_SEND if same else Anomaly.WRITE_CYCLE,
                    what=(
                        f"{value} at {key}@{offset} lies before writes of {earliest}, which was "
                        f"over at {seconds(earliest.over_at)}, before {writer} began"
                    ),
                    evidence=(earliest.describe(), writer.describe()),
                )
            if writer.over_at < (NEVER if earliest is None else earliest.over_at):
                earliest = writer
