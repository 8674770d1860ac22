"""The transaction coordinator against what a client may see, with crashes at any append.

S-TXN-4 (fencing, timeouts, expiry), S-TXN-5 (markers), S-TXN-6 (restarts), S-TXN-7 (version 2). The
model is in `tests.support.transaction_world`; a longer run is marked `slow`.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from broker.coordinator.transaction import decisions, records
from broker.coordinator.transaction.state import LAST_EPOCH, InvalidTransactionTransition
from broker.coordinator.transaction.upkeep import TransactionUpkeep
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import Signal
from tests.support.memory_partition_log import MemoryPartitionLog
from tests.support.transaction_world import EXPIRATION_MS, TIMEOUT_MS, Owner, TransactionWorld

IDS = ("a", "b")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
VERSIONS = {"a": 0, "b": 2}

ids = st.sampled_from(IDS)
partitions = st.sampled_from(PARTITIONS)
indexes = st.integers(min_value=0, max_value=7)


class Transactions(RuleBasedStateMachine):
    """Random requests and faults."""

    def __init__(self) -> None:
        super().__init__()
        self.world = TransactionWorld()

    @initialize(epochs=st.tuples(*[st.sampled_from((None, LAST_EPOCH - 4))] * len(IDS)))
    def some_ids_have_hardly_any_epochs_left(self, epochs: tuple[int | None, ...]) -> None:
        for name, epoch in zip(IDS, epochs, strict=True):
            if epoch is not None:
                self.world.age(name, epoch)

    def owner(self, index: int) -> Owner:
        """One of the latest few: zombies are among them."""
        owners = self.world.owners[-4:]
        return owners[index % len(owners)]

    @rule(name=ids)
    def a_client_begins(self, name: str) -> None:
        self.world.init(name, VERSIONS[name])

    @precondition(lambda self: self.world.owners)
    @rule(index=indexes)
    def a_client_goes_on(self, index: int) -> None:
        owner = self.owner(index)
        self.world.init(owner.transactional_id, owner.version, owner)

    @precondition(lambda self: self.world.owners)
    @rule(index=indexes, tp=partitions, add=st.sampled_from((True, True, True, False)))
    def a_client_writes(self, index: int, tp: TopicPartition, add: bool) -> None:
        self.world.write(self.owner(index), tp, add=add)

    @precondition(lambda self: self.world.owners)
    @rule(index=indexes)
    def a_client_writes_everywhere(self, index: int) -> None:
        owner = self.owner(index)
        for tp in PARTITIONS:
            self.world.write(owner, tp)

    @precondition(lambda self: self.world.owners)
    @rule(index=indexes, commit=st.booleans())
    def a_client_ends(self, index: int, commit: bool) -> None:
        self.world.end(self.owner(index), commit=commit)

    @rule(
        code=st.sampled_from(
            (
                ErrorCode.NONE,
                ErrorCode.NONE,
                ErrorCode.NOT_ENOUGH_REPLICAS,
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
        )
    )
    def appends_fail(self, code: ErrorCode) -> None:
        self.world.log.fail_with = code

    @rule()
    def appends_hang(self) -> None:
        self.world.log.hold = True

    @rule()
    def appends_go_on(self) -> None:
        self.world.log.hold = False
        self.world.log.release()
        self.world.check()

    @rule()
    def markers_hang(self) -> None:
        self.world.partitions.hold = True

    @rule()
    def markers_go_on(self) -> None:
        self.world.partitions.release()
        self.world.check()

    @rule(
        tp=partitions,
        code=st.sampled_from((ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)),
    )
    def a_partition_takes_no_markers(self, tp: TopicPartition, code: ErrorCode) -> None:
        self.world.partitions.refusals[tp] = code

    @rule(appends=st.integers(0, 3), markers=st.integers(0, 3))
    def kill_9(self, appends: int, markers: int) -> None:
        self.world.crash(appends=appends, markers=markers)

    @rule()
    def the_partition_is_given_away_and_comes_back(self) -> None:
        if not self.world.log.hold:
            self.world.resign_and_lead_again()

    @rule(milliseconds=st.sampled_from((10, 1_000, 11_000, TIMEOUT_MS + 11_000)))
    def time_passes(self, milliseconds: int) -> None:
        self.world.pass_ms(milliseconds)

    @rule()
    def long_time_passes(self) -> None:
        self.world.pass_ms(2 * EXPIRATION_MS)

    def teardown(self) -> None:
        self.world.heal()


def _settings(**options: Any) -> settings:
    return settings(
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )


def test_s_txn_6_what_clients_are_told_holds_over_faults_and_crashes() -> None:
    run_state_machine_as_test(Transactions, settings=_settings(max_examples=60, derandomize=True))


@pytest.mark.slow
def test_s_txn_6_what_clients_are_told_holds_in_many_more_histories() -> None:
    run_state_machine_as_test(Transactions, settings=_settings(max_examples=500))


# ---- the model is no yes-man: each of these bugs must be found


def _no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new owner does not raise the epoch."""
    monkeypatch.setattr(decisions, "_next_epoch", lambda value, expected: (0, -1))


def _anybody_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """EndTxn does not look at the epoch."""
    monkeypatch.setattr(decisions, "check_owner", lambda value, producer: None)


def _no_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are let in that do not belong to the transaction (KIP-890 without part 1)."""
    monkeypatch.setattr(decisions, "verify_partition", lambda *_: None)


def _answer_before_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """EndTxn is answered and carried out before the decision is durable."""
    append = MemoryPartitionLog.append

    def hasty(self: Any, tp: Any, batch: bytes) -> tuple[int, Signal[ErrorCode]]:
        durable: Signal[ErrorCode] = Signal()
        durable.fire(ErrorCode.NONE)
        with suppress(KafkaError):
            append(self, tp, batch)
        return 0, durable

    monkeypatch.setattr(MemoryPartitionLog, "append", hasty)


def _forgets_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision is not carried out after a restart."""
    monkeypatch.setattr(TransactionUpkeep, "carry_out", lambda *_: None)


def _no_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open transactions are never aborted."""
    monkeypatch.setattr(decisions, "is_timed_out", lambda *_: False)


def _one_partition_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record leaves a partition out."""
    by_topic = records._by_topic
    monkeypatch.setattr(
        records, "_by_topic", lambda partitions: by_topic(frozenset(sorted(partitions)[:1]))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        _no_fence,
        _anybody_ends,
        _no_verification,
        _answer_before_the_log,
        _forgets_after_a_restart,
        _no_timeouts,
        _one_partition_forgotten,
    ],
)
def test_the_model_finds(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    quickly = _settings(
        max_examples=2_000, derandomize=True, database=None, phases=[Phase.generate]
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        bug(monkeypatch)
        with pytest.raises((AssertionError, InvalidTransactionTransition)):
            run_state_machine_as_test(Transactions, settings=quickly)
