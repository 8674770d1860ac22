"""Consume-transform-produce: of each input exactly one committed transaction is the effect.

A transaction that names a `group` commits the offsets of its polls with its sends. Over all
committed transactions of a group, whoever ran them:

    duplicate effect   two of them consumed the same offset
    lost effect        a committed input below the highest consumed one was consumed by none
"""

from collections import defaultdict
from collections.abc import Iterator

from tests.anomalies.findings import Anomaly, Finding
from tests.anomalies.model import History, Outcome, Transaction


def check_effects(history: History) -> Iterator[Finding]:
    """All groups."""
    consumed: dict[tuple[str, str], dict[int, list[Transaction]]] = defaultdict(
        lambda: defaultdict(list)
    )
    undecided: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in history.transactions:
        if one.group is None or one.outcome is Outcome.ABORTED:
            continue
        for read in one.reads:
            place = one.group, read.key
            if one.is_committed:
                consumed[place][read.offset].append(one)
            elif history.final is None:
                undecided[place].add(read.offset)  # It may have committed unseen.
    for (group, key), by_offset in sorted(consumed.items()):
        for offset, several in sorted(by_offset.items()):
            if len(several) > 1:
                yield Finding(
                    anomaly=Anomaly.DUPLICATE_EFFECT,
                    what=f"group {group} consumed {key}@{offset} {len(several)} times",
                    evidence=tuple(one.describe() for one in several),
                )
        highest = max(by_offset)
        for offset, value, writer in history.committed_log.get(key, []):
            if offset < highest and not (offset in by_offset or offset in undecided[group, key]):
                yield Finding(
                    anomaly=Anomaly.LOST_EFFECT,
                    what=f"group {group} went on to {key}@{highest} without @{offset}={value}",
                    evidence=(writer.describe(), *(o.describe() for o in by_offset[highest][:1])),
                )
