"""Records that an idempotent producer without transactions sent again in another producer epoch.

A broker knows what it was sent before by producer id, epoch and sequence. When a leader changes
while several batches are under way, the new one may get the second before the first: it knows
nothing of the producer and accepts any sequence (S-IDEM-3), and then the first is out of order. The
producer takes a new epoch and sends both again: librdkafka (its issue 4953) and Apache Kafka's own
producer do, also to Apache Kafka. So such copies say nothing about a broker; two copies in one
epoch do, and so does any copy of a transaction's record.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from protocol.records.batch import iter_batches
from protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT
from protocol.records.record import iter_records
from tests.support.cluster.replicas import partitions_of

_NOT_PLAIN: Final = TRANSACTIONAL_BIT | CONTROL_BIT
Epoch = tuple[int, int]
"""Producer id and producer epoch."""


def resent(log_dirs: Iterable[Path]) -> dict[str, list[str]]:
    """Partition name to its values that lie there more than once, each time in another epoch.

    `log_dirs`: those of one broker.
    """
    return {
        name: sorted(values)
        for log_dir in log_dirs
        for name in partitions_of(log_dir)
        if not name.startswith("__") and (values := _resent(log_dir / name))
    }


def _resent(partition: Path) -> set[str]:
    epochs: dict[str, list[Epoch]] = defaultdict(list)
    for value, epoch in _plain_records(partition):
        epochs[value].append(epoch)
    return {value for value, found in epochs.items() if 1 < len(found) == len(set(found))}


def _plain_records(partition: Path) -> Iterator[tuple[str, Epoch]]:
    for path in sorted(partition.glob("*.log")):
        data = path.read_bytes()
        for at, header in iter_batches(data):
            if header.producer_id >= 0 and not header.attributes & _NOT_PLAIN:
                for record in iter_records(data, at):
                    value = bytes(record.value or b"").decode()
                    yield value, (header.producer_id, header.producer_epoch)
