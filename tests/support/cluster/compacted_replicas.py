"""Do the replicas of a compacted partition say the same, although each has lost other records?

* A record that two of them have, by its offset, is the same in both.
* If both logs end at the same offset, each key has the same last value. Records of aborted
  transactions do not count, and a key whose last record is a tombstone counts as none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from protocol.records.batch import read_header
from protocol.records.control import ControlType, parse_control_type
from protocol.records.record import iter_records
from protocol.records.value import Record


@dataclass(frozen=True, slots=True)
class _Content:
    records: dict[int, tuple[object, ...]] = field(default_factory=dict)
    """Offset to what must not differ."""
    last: dict[bytes, tuple[int, bytes | None]] = field(default_factory=dict)
    """Key to the offset and value of its last committed record."""

    @property
    def values(self) -> dict[bytes, tuple[int, bytes | None]]:
        """The same, without keys whose last record is a tombstone."""
        return {key: found for key, found in self.last.items() if found[1] is not None}

    def write(self, records: Iterable[Record]) -> None:
        """Note committed records; one of a transaction may be older than what is known."""
        for record in records:
            key = bytes(record.key or b"")
            value = None if record.value is None else bytes(record.value)
            known = self.last.get(key)
            if known is None or record.offset > known[0]:
                self.last[key] = record.offset, value


def compacted_differences(
    name: str, replicas: Mapping[int, Iterable[bytes]], *, whole: bool
) -> Iterator[str]:
    """Yield a sentence about each replica that differs from the first; at most two.

    `replicas`: the batches by broker id, in their order. `whole`: their logs end at one offset.
    """
    (broker, oracle), *others = ((broker, _content(found)) for broker, found in replicas.items())
    for other, content in others:
        for offset in sorted(oracle.records.keys() & content.records.keys()):
            one, its = oracle.records[offset], content.records[offset]
            if one != its:
                yield f"{name} at {offset}: broker {broker} has {one}, broker {other} has {its}"
                break
        if not whole:
            continue
        mine, theirs = oracle.values, content.values
        for key in sorted(mine.keys() | theirs.keys()):
            if mine.get(key) != theirs.get(key):
                yield (
                    f"{name}, last value of {key!r}: broker {broker} has {mine.get(key)}, "
                    f"broker {other} has {theirs.get(key)}"
                )
                break


def _content(batches: Iterable[bytes]) -> _Content:
    content = _Content()
    open_ones: dict[int, list[Record]] = {}
    """Records of transactions that are not over, by producer id."""
    for batch in batches:
        header = read_header(batch)
        producer = header.producer_id
        facts = (header.partition_leader_epoch, producer, header.producer_epoch, header.is_control)
        records = list(iter_records(batch))
        for record in records:
            content.records[record.offset] = (*facts, record.key, record.value)
        if header.is_control:
            ended = open_ones.pop(producer, [])
            if parse_control_type(records[0].key) is ControlType.COMMIT:
                content.write(ended)
        elif header.is_transactional:
            open_ones.setdefault(producer, []).extend(records)
        else:
            content.write(records)
    return content
