"""Brokers that lack one guarantee, to prove that the simulation would notice.

The first eight are those of `tests.anomalies.sabotage`, which real brokers and clients find by
chance; the others are of storage and of the coordinators. The product has no switch for any.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.anomalies import sabotage as of_real_brokers
from tests.anomalies.sabotage import Put


def without_checksums_at_recovery(put: Put) -> None:
    """Recovery accepts a batch that a crash has torn, as long as its frame is whole."""
    from storage import segment_recovery

    def none_at_all(*_: Any, **__: Any) -> None:
        pass

    put(segment_recovery, "flaw_of", none_at_all)


def without_replayed_producers(put: Put) -> None:
    """After a start the log knows no producers, so a repeated batch is new."""
    from storage.log import replay

    def nothing(producers: Any, segments: Any, start: int, end: int, *_: Any, **__: Any) -> None:
        producers.map_end_offset = end

    put(replay, "rebuild", nothing)


def with_a_sloppy_index(put: Put) -> None:
    """A lookup returns the entry behind the one it should."""
    from storage.index.offset_index import OffsetIndex

    lookup = OffsetIndex.lookup

    def later(self: Any, offset: int) -> Any:
        return lookup(self, offset + 2)

    put(OffsetIndex, "lookup", later)


def without_syncs(put: Put) -> None:
    """The recovery point moves without a sync, so a power loss takes acknowledged records."""
    from storage.log import durability

    def no_sync(fs: Any, paths: Any) -> None:
        pass

    put(durability, "sync_files", no_sync)


def without_generations(put: Put) -> None:
    """A former member may commit offsets for the group."""
    from broker.coordinator.group.classic.group import ClassicGroup

    def anybody(self: Any, request: Any, out: Any) -> None:
        pass

    put(ClassicGroup, "check_commit", anybody)


def without_resumed_transactions(put: Put) -> None:
    """Transactions that were decided before a crash are not carried out after it."""
    from broker.coordinator.transaction.upkeep import TransactionUpkeep

    def forget(self: Any, shard: Any, prepared: Any) -> None:
        pass

    put(TransactionUpkeep, "carry_out", forget)


def with_half_loaded_offsets(put: Put) -> None:
    """A start leaves out every second of the offsets that it reads back."""
    from broker.coordinator.group.shard import GroupShard

    settle = GroupShard.settle

    def less(self: Any) -> Iterator[None]:
        for key in list(self._noted)[1::2]:
            del self._noted[key]
        return settle(self)

    put(GroupShard, "settle", less)


def with_a_greedy_cleaner(put: Put) -> None:
    """The cleaner believes that each key has a later value."""
    from storage.cleaner.offset_map import OffsetMap

    latest_of = OffsetMap.latest_of

    def later(self: Any, *values: Any) -> Any:
        return latest_of(self, *values) + 1

    put(OffsetMap, "latest_of", later)


def with_a_cleaner_that_knows_no_aborts(put: Put) -> None:
    """The cleaner knows no aborted transactions: their records stay, their markers go."""
    from storage.log.reading import LogReader

    def none_at_all(self: Any, upper: int) -> bytes:
        return b""

    put(LogReader, "packed_aborted", none_at_all)


ALL_SABOTAGES: Final[dict[str, Callable[[Put], None]]] = {
    **of_real_brokers.SABOTAGES,
    "torn tails": without_checksums_at_recovery,
    "unknown producers": without_replayed_producers,
    "sloppy index": with_a_sloppy_index,
    "no syncs": without_syncs,
    "old generations": without_generations,
    "unresumed transactions": without_resumed_transactions,
    "half loaded offsets": with_half_loaded_offsets,
    "greedy cleaner": with_a_greedy_cleaner,
    "no aborts in the cleaner": with_a_cleaner_that_knows_no_aborts,
}
