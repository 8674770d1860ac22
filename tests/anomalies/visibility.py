"""Reads of transactions: nothing of the aborted, nothing early, all of the committed.

G1a aborted read   a value of an ABORTED transaction in any poll
uncommitted read   a value in a poll that was over before the client sent EndTxn to commit;
                   Jepsen's precommitted read (of one's own writes) is a case of it
lost write         a committed value that is not in the final read; without a final read: one
                   that nobody read although somebody read that key at a higher offset
torn transaction   the same, of a transaction whose commit is known only because another of its
                   values was seen: atomicity is broken, whoever is right
phantom            a value without a writer, or in another partition than it was sent to
hanging            the final LSO is below the log end when every transaction was ended
"""

from collections.abc import Iterator

from tests.anomalies.findings import Anomaly, Finding
from tests.anomalies.model import History, Outcome, Read, Transaction, Write, seconds


def premature_reads(history: History) -> Iterator[Finding]:
    """Aborted, uncommitted and phantom values, each value once."""
    told: set[tuple[Anomaly, str, str]] = set()
    for who, when, read in history.reads():
        writer = history.writer_of.get(Write(read.key, read.value))
        anomaly = _anomaly_of(writer, when)
        if anomaly is None or (anomaly, read.key, read.value) in told:
            continue
        told.add((anomaly, read.key, read.value))
        asked = ""
        if writer is not None and writer.committing is not None:
            asked = f", commit was asked for at {seconds(writer.committing)}"
        yield Finding(
            anomaly=anomaly,
            what=f"{who} read {_place(read)} at {seconds(when)}{asked}",
            evidence=() if writer is None else (writer.describe(),),
        )


def _anomaly_of(writer: Transaction | None, when: int) -> Anomaly | None:
    if writer is None:
        return Anomaly.PHANTOM
    if writer.outcome is Outcome.ABORTED:
        return Anomaly.ABORTED_READ
    if writer.committing is not None and when < writer.committing:
        return Anomaly.UNCOMMITTED_READ
    return None


def _place(read: Read) -> str:
    return f"{read.value} at {read.key}@{read.offset}"


def lost_writes(history: History) -> Iterator[Finding]:
    """Committed values that are lost."""
    highest = {
        key: max(offset for offsets in values.values() for offset in offsets)
        for key, values in history.read_offsets.items()
    }
    final = history.final
    finally_there = (
        {}
        if final is None
        else {key: {value for _, value in pairs} for key, pairs in final.values.items()}
    )
    for one in history.transactions:
        if not one.is_committed:
            continue
        for write in one.writes:
            if write.key in finally_there:
                if write.value in finally_there[write.key]:
                    continue
                why = f"it is not among the {len(finally_there[write.key])} values of {write.key}"
            else:
                if history.read_offsets[write.key].get(write.value):
                    continue
                offset = one.acks.get(write.value)
                if offset is None or offset > highest.get(write.key, -1):
                    continue  # Nobody came that far.
                why = f"{write.key} was read up to offset {highest[write.key]}"
            proven = one.outcome is Outcome.COMMITTED
            yield Finding(
                anomaly=Anomaly.LOST_WRITE if proven else Anomaly.TORN_TRANSACTION,
                what=f"{write.value} of {one} is lost: {why}",
                evidence=(one.describe(),),
            )


def hanging_transactions(history: History) -> Iterator[Finding]:
    """Partitions that stay closed for committed readers."""
    final = history.final
    if final is None:
        return
    for key, stable in sorted(final.stable.items()):
        if stable < final.ends[key]:
            yield Finding(
                anomaly=Anomaly.HANGING_TRANSACTION,
                what=f"{key}: last stable offset {stable}, log end {final.ends[key]}",
            )
