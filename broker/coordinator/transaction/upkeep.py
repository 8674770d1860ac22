"""The transaction coordinator's work without a request: timeouts, expiry, and after loading.

In rounds, one partition after the other:

* Every `transaction.abort.timed.out.transaction.cleanup.interval.ms` it aborts open transactions
  that have outlived their timeout.
* Every `transaction.remove.expired.transaction.cleanup.interval.ms` it forgets ids that were at
  rest for `transactional.id.expiration.ms`.

When a partition was loaded, it completes the prepared transactions (S-TXN-6).

A partition may have a hundred thousand ids, and aborting one transaction takes three appends. So a
walk through a partition lets others run after each id, and looks up each id when its turn comes.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.completion import Completion
from broker.coordinator.transaction.producer_ids import ProducerIds
from broker.coordinator.transaction.settings import TransactionCounters, TransactionSettings
from broker.coordinator.transaction.shard import TransactionDecision, TransactionShard
from broker.coordinator.transaction.state import PREPARED, Transaction
from broker.deadlines import Deadlines, Handle
from broker.world.in_turn import begin
from protocol.errors import KafkaError
from storage.clock import Clock
from storage.waits import PAUSE

logger = logging.getLogger(__name__)

ROUND_PAUSE_S: Final = 0.02
"""Seconds between two partitions of a round."""
TOMBSTONES_PER_BATCH: Final = 100
"""Tombstones written at a time: about a millisecond."""


class _Duty(NamedTuple):
    """Work on those of a partition's ids that it concerns."""

    concerns: Callable[[Transaction], bool]
    act: Callable[[TransactionShard, Sequence[Transaction]], None]
    most: int
    """How many `act` gets at most in one call."""


class TransactionUpkeep:
    """Aborts transactions that time out, forgets expired ids, and completes the prepared
    transactions of a loaded partition."""

    def __init__(
        self,
        settings: TransactionSettings,
        runtime: CoordinatorRuntime[TransactionShard, TransactionDecision],
        completion: Completion,
        deadlines: Deadlines,
        clock: Clock,
        counters: TransactionCounters,
        producer_ids: ProducerIds,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._completion = completion
        self._deadlines = deadlines
        self._clock = clock
        self._counters = counters
        self._producer_ids = producer_ids
        self._takes_ids = False
        self._aborts = _Duty(self._is_timed_out, self._abort_timed_out, 1)
        self._expiry = _Duty(self._is_expired, self._remove_expired, TOMBSTONES_PER_BATCH)
        self._markers = _Duty(_is_prepared, self._write_markers, 1)
        self._rounds: dict[_Duty, Handle] = {}
        self._walks: set[tuple[TransactionShard, _Duty]] = set()
        """Under way."""

    def start(self) -> None:
        """Schedule the first rounds, one interval from now."""
        self._schedule(self._settings.abort_timed_out_interval_ms, self._aborts)
        self._schedule(self._settings.remove_expired_interval_ms, self._expiry)

    def stop(self) -> None:
        """Cancel the next rounds."""
        for handle in self._rounds.values():
            handle.cancel()

    def carry_out(self, shard: TransactionShard, prepared: Sequence[str]) -> None:
        """Write the markers of transactions found prepared in a partition that was loaded."""
        if prepared:
            self._runtime.tasks.begin(partial(self._walk, shard, self._markers, prepared))

    def _schedule(self, period_ms: int, duty: _Duty) -> None:
        self._rounds[duty] = self._deadlines.schedule(
            period_ms / 1000, partial(self._begin, period_ms, duty)
        )

    def _begin(self, period_ms: int, duty: _Duty) -> None:
        self._schedule(period_ms, duty)
        for turn, shard in enumerate(self._runtime.active()):
            self._deadlines.schedule(turn * ROUND_PAUSE_S, partial(self._walk_once, shard, duty))

    def _walk_once(self, shard: TransactionShard, duty: _Duty) -> None:
        """Walk through all ids of a partition, unless the walk of the last round is not over."""
        walk = shard, duty
        if walk not in self._walks:
            self._walks.add(walk)
            self._runtime.tasks.begin(partial(self._walk_all, shard, duty))

    async def _walk_all(self, shard: TransactionShard, duty: _Duty) -> None:
        try:
            await self._walk(shard, duty, list(shard.transactions))
        finally:
            self._walks.discard((shard, duty))

    async def _walk(self, shard: TransactionShard, duty: _Duty, ids: Sequence[str]) -> None:
        """Do the duty for those ids that it concerns; stop if the shard is no longer served."""
        due: list[str] = []
        for transactional_id in ids:
            if not self._runtime.is_current(shard):
                return
            if _concerned(shard, duty, [transactional_id]):
                due.append(transactional_id)
            if len(due) == duty.most:
                _act(shard, duty, due)
                due.clear()
            await PAUSE
        if self._runtime.is_current(shard):
            _act(shard, duty, due)

    def _is_timed_out(self, one: Transaction) -> bool:
        return decisions.is_timed_out(one, self._clock.wall_ms())

    def _is_expired(self, one: Transaction) -> bool:
        return decisions.is_expired(one, self._clock.wall_ms(), self._settings.id_expiration_ms)

    def _abort_timed_out(self, shard: TransactionShard, late: Sequence[Transaction]) -> None:
        for transaction in late:
            out = TransactionDecision()
            try:
                shard.fence(transaction, self._clock.wall_ms(), self._producer_ids.next_id, out)
            except KafkaError as refusal:
                logger.info("%r is aborted in the next round: %s", transaction, refusal)
                self._take_ids()
                continue
            logger.info("%r outlived its timeout and is aborted", transaction)
            self._counters.timed_out += 1
            self._runtime.carry_out(shard, out)

    def _take_ids(self) -> None:
        if not self._takes_ids:
            self._takes_ids = True
            self._runtime.tasks.begin(self._make_ready)

    async def _make_ready(self) -> None:
        try:
            await self._producer_ids.make_ready()
        except KafkaError as error:
            logger.warning("No producer ids for transactions that timed out: %s", error)
        finally:
            self._takes_ids = False

    def _remove_expired(self, shard: TransactionShard, expired: Sequence[Transaction]) -> None:
        out = TransactionDecision()
        shard.forget(expired, out)
        self._runtime.carry_out(shard, out)

    def _write_markers(self, shard: TransactionShard, prepared: Sequence[Transaction]) -> None:
        for transaction in prepared:
            begin(self._completion.complete(shard, transaction.transactional_id))


def _is_prepared(one: Transaction) -> bool:
    return one.state in PREPARED


def _concerned(shard: TransactionShard, duty: _Duty, ids: Sequence[str]) -> list[Transaction]:
    found = map(shard.transactions.get, ids)
    return [one for one in found if one is not None and duty.concerns(one)]


def _act(shard: TransactionShard, duty: _Duty, due: Sequence[str]) -> None:
    """Do the duty for the ids that it still concerns: some were found in an earlier turn."""
    found = _concerned(shard, duty, due)
    if found:
        duty.act(shard, found)
