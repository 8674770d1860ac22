"""Which records have been handed to the log and are neither durable nor refused yet.

One table per shard, kept by the runtime alone. Whatever depends on a write that is under way is a
question to it: a transactional id is busy, an offset does not expire (KIP-211), a group is being
deleted. A write that fails takes its marks away and leaves nothing else to undo.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)
K_co = TypeVar("K_co", bound=Hashable, covariant=True)


class Keyed(Protocol[K_co]):
    """A record, as the table sees it."""

    @property
    def key(self) -> K_co:
        """What the record speaks of; the log keeps the last record of each key."""
        ...


R = TypeVar("R", bound=Keyed[Hashable])


class InFlight(dict[Hashable, tuple[R, ...]], Generic[R]):
    """Records on their way by key, each key's in the order of the log; most of the time empty.

    A dict, for the coordinators' busiest requests ask it.
    """

    __slots__ = ()

    def of(self, key: Hashable) -> tuple[R, ...]:
        """The records of one key."""
        return self.get(key, ())

    def begin(self, records: Sequence[R]) -> None:
        """These are about to be appended."""
        for record in records:
            key = record.key
            before = self.get(key)
            self[key] = (record,) if before is None else (*before, record)

    def end(self, records: Sequence[R]) -> None:
        """These are durable, or have failed."""
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
