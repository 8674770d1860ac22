"""Records that were handed to the log and are neither durable nor refused yet.

One table per shard, changed by the runtime alone. A shard asks it for everything that depends on a
write under way: a transactional id is busy, an offset does not expire (KIP-211), a group is being
deleted. When a write fails its records are removed here, and nothing else has to be undone.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """A record, as the table sees it."""

    @property
    def key(self) -> Hashable:
        """The subject of the record; compaction keeps the last record of each key."""
        ...


R = TypeVar("R", bound=Keyed)


class InFlight(dict[Hashable, tuple[R, ...]], Generic[R]):
    """Records in flight by key, those of a key in the order of the log; empty most of the time.

    A subclass of dict, because the coordinators' busiest requests look into it.
    """

    __slots__ = ()

    def of(self, key: Hashable) -> tuple[R, ...]:
        """The records of one key that are in flight."""
        return self.get(key, ())

    def begin(self, records: Sequence[R]) -> None:
        """Add records that are about to be appended."""
        for record in records:
            key = record.key
            before = self.get(key)
            self[key] = (record,) if before is None else (*before, record)

    def end(self, records: Sequence[R]) -> None:
        """Remove records that are durable or have failed."""
        for record in records:
            key = record.key
            under_way = self[key]
            if len(under_way) == 1:
                del self[key]
            else:
                self[key] = tuple(one for one in under_way if one is not record)

    def _check(self) -> None:
        """Invariants, for tests."""
        for key, records in self.items():
            assert records
            assert all(record.key == key for record in records)
