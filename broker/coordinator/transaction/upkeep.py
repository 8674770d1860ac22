"""The transaction coordinator's work without a request: timeouts, expiry, and after loading.

In rounds, one partition after the other:

* Every `transaction.abort.timed.out.transaction.cleanup.interval.ms` it aborts open transactions
  that have outlived their timeout.
* Every `transaction.remove.expired.transaction.cleanup.interval.ms` it forgets ids that were at
  rest for `transactional.id.expiration.ms`.

When a partition was loaded, it completes the prepared transactions (S-TXN-6).

A partition may have a hundred thousand ids, and aborting one transaction takes three appends. So a
walk through a partition goes in turns of two milliseconds (`broker.world.turns`), and looks up each
id when its turn comes.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.completion import Completion
from broker.coordinator.transaction.settings import Counters, TransactionSettings
from broker.coordinator.transaction.shard import TransactionDecision, TransactionShard
from broker.coordinator.transaction.state import PREPARED, Transaction
from broker.deadlines import Deadlines, Handle
from broker.world.turns import Turns
from storage.clock import Clock

logger = logging.getLogger(__name__)

ROUND_PAUSE_S: Final = 0.02
"""Seconds between two partitions of a round."""
TOMBSTONES_PER_BATCH: Final = 100
"""Tombstones written at a time: about a millisecond."""

_Concerns = Callable[[Transaction], bool]
_Act = Callable[[TransactionShard, Sequence[Transaction]], None]


class _Walk:
    """A walk through a partition's ids: calls `act` with those for which `concerns` is true."""

    def __init__(
        self,
        shard: TransactionShard,
        ids: Iterable[str],
        concerns: _Concerns,
        act: _Act,
        is_current: Callable[[], bool],
        deadlines: Deadlines,
        clock: Clock,
        *,
        at_once: int,
    ) -> None:
        """`at_once`: how many ids `act` gets at most in one call."""
        self.shard = shard
        self._concerns = concerns
        self._act = act
        self._is_current = is_current
        self._deadlines = deadlines
        self._turns = Turns(clock)
        self._at_once = at_once
        self._ids: Iterator[str] = iter(list(ids))
        self.is_over = False

    def go_on(self) -> None:
        """Do one turn, and schedule the next one if ids are left."""
        if not self._is_current():
            self.is_over = True
            return
        self._turns.begin()
        found: list[Transaction] = []
        for transactional_id in self._ids:
            transaction = self.shard.transactions.get(transactional_id)
            if transaction is not None and self._concerns(transaction):
                found.append(transaction)
                if len(found) == self._at_once:
                    self._act(self.shard, found)
                    found = []
            if self._turns.is_over():
                self._deadlines.soon(self.go_on)
                break
        else:
            self.is_over = True
        if found:
            self._act(self.shard, found)


class Upkeep:
    """Aborts transactions that time out, forgets expired ids, and completes the prepared
    transactions of a loaded partition."""

    def __init__(
        self,
        settings: TransactionSettings,
        runtime: CoordinatorRuntime[TransactionShard, TransactionDecision],
        completion: Completion,
        deadlines: Deadlines,
        clock: Clock,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._completion = completion
        self._deadlines = deadlines
        self._clock = clock
        self._counters = counters
        self._rounds: dict[_Act, Handle] = {}
        self._walks: dict[tuple[int, _Act], _Walk] = {}

    def start(self) -> None:
        """Schedule the first rounds, one interval from now."""
        settings = self._settings
        self._schedule(
            settings.abort_timed_out_interval_ms, self._is_timed_out, self._abort_timed_out, 1
        )
        self._schedule(
            settings.remove_expired_interval_ms,
            self._is_expired,
            self._remove_expired,
            TOMBSTONES_PER_BATCH,
        )

    def stop(self) -> None:
        """Cancel the next rounds."""
        for handle in self._rounds.values():
            handle.cancel()

    def carry_out(self, shard: TransactionShard, prepared: Iterable[str]) -> None:
        """Write the markers of transactions found prepared in a partition that was loaded."""
        self._walk(shard, lambda one: one.state in PREPARED, self._write_markers, 1, prepared)

    def _schedule(self, period_ms: int, concerns: _Concerns, act: _Act, at_once: int) -> None:
        self._rounds[act] = self._deadlines.schedule(
            period_ms / 1000, partial(self._begin, period_ms, concerns, act, at_once)
        )

    def _begin(self, period_ms: int, concerns: _Concerns, act: _Act, at_once: int) -> None:
        self._schedule(period_ms, concerns, act, at_once)
        for turn, shard in enumerate(self._runtime.active()):
            self._deadlines.schedule(
                turn * ROUND_PAUSE_S, partial(self._walk, shard, concerns, act, at_once)
            )

    def _walk(
        self,
        shard: TransactionShard,
        concerns: _Concerns,
        act: _Act,
        at_once: int,
        ids: Iterable[str] | None = None,
    ) -> None:
        """Begin a walk through all ids of the partition, or through `ids`."""
        before = self._walks.get((shard.partition, act))
        if before is not None and before.shard is shard and not before.is_over:
            return  # The walk of the last round is not over yet.
        walk = self._walks[shard.partition, act] = _Walk(
            shard,
            shard.transactions if ids is None else ids,
            concerns,
            act,
            lambda: self._runtime.is_current(shard),
            self._deadlines,
            self._clock,
            at_once=at_once,
        )
        walk.go_on()

    def _is_timed_out(self, one: Transaction) -> bool:
        return decisions.is_timed_out(one, self._clock.wall_ms())

    def _is_expired(self, one: Transaction) -> bool:
        return decisions.is_expired(one, self._clock.wall_ms(), self._settings.id_expiration_ms)

    def _abort_timed_out(self, shard: TransactionShard, late: Sequence[Transaction]) -> None:
        for transaction in late:
            logger.info("%r outlived its timeout and is aborted", transaction)
            self._counters.timed_out += 1
            out = TransactionDecision()
            shard.fence(transaction, self._clock.wall_ms(), None, out)
            self._runtime.carry_out(shard, out)

    def _remove_expired(self, shard: TransactionShard, expired: Sequence[Transaction]) -> None:
        out = TransactionDecision()
        shard.forget(expired, out)
        self._runtime.carry_out(shard, out)

    def _write_markers(self, shard: TransactionShard, prepared: Sequence[Transaction]) -> None:
        for transaction in prepared:
            self._completion.begin(shard, transaction.transactional_id)
