"""Very many transactions that time out, expire or were prepared together: in turns."""

import pytest

from broker.coordinator.transaction import upkeep
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import TransactionState as S
from broker.world.turns import ITEMS
from protocol.errors import ErrorCode
from tests.support.transaction_harness import T0, TransactionHarness

MANY = 3 * ITEMS - 10


def opened(broker: TransactionHarness, count: int = MANY) -> list[Producer]:
    owners = [broker.owner(f"id-{number}") for number in range(count)]
    for number, owner in enumerate(owners):
        broker.add(owner, T0, transactional_id=f"id-{number}")
    return owners


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> TransactionHarness:
    made = TransactionHarness(
        partition_count=1,
        abort_timed_out_interval_ms=100_000,
        remove_expired_interval_ms=1_000_000,
        id_expiration_ms=500_000,
    )
    # With a thousand ids the invariants of all of them after each call would take minutes.
    monkeypatch.setattr(made, "check", lambda: None)
    return made


def passes(broker: TransactionHarness, count: int) -> list[int]:
    """How many aborts each pass over the timers has brought."""
    found = []
    before = broker.coordinator.statistics().timed_out
    for _ in range(count):
        broker.deadlines.run_due()
        now = broker.coordinator.statistics().timed_out
        found.append(now - before)
        before = now
    return found


def test_transactions_that_time_out_together_are_aborted_some_a_turn(
    broker: TransactionHarness,
) -> None:
    opened(broker)
    broker.clock.advance(101)
    assert passes(broker, 5) == [0, ITEMS, ITEMS, MANY - 2 * ITEMS, 0]
    assert all(broker.state(f"id-{number}") is S.COMPLETE_ABORT for number in range(MANY))


def test_a_transaction_that_ends_before_its_turn_is_left_alone(broker: TransactionHarness) -> None:
    owners = opened(broker)
    broker.clock.advance(101)
    passes(broker, 2)
    last = f"id-{MANY - 1}"
    assert broker.end(owners[-1], transactional_id=last).code is ErrorCode.NONE
    assert broker.end(owners[0], transactional_id="id-0").code is ErrorCode.PRODUCER_FENCED
    passes(broker, 4)
    assert broker.state(last) is S.COMPLETE_COMMIT
    assert broker.coordinator.statistics().timed_out == MANY - 1


def test_a_round_does_not_begin_while_the_one_before_is_at_it(broker: TransactionHarness) -> None:
    opened(broker)
    broker.clock.advance(101)
    assert passes(broker, 2) == [0, ITEMS]
    broker.clock.advance(101)
    # The next round comes due, and finds the first at work: it adds no second walk.
    assert passes(broker, 1) == [ITEMS]
    assert passes(broker, 1) == [MANY - 2 * ITEMS]


def test_a_partition_that_is_given_away_is_not_walked_any_more(broker: TransactionHarness) -> None:
    opened(broker)
    broker.clock.advance(101)
    passes(broker, 2)
    broker.coordinator.on_resigned(0)
    assert passes(broker, 3) == [0, 0, 0]


def test_tombstones_are_written_some_a_turn(broker: TransactionHarness) -> None:
    for number in range(MANY):
        broker.owner(f"id-{number}")
    broker.clock.advance(1_001)
    shard = broker.shard("id-0")
    left = []
    for _ in range(5):
        broker.deadlines.run_due()
        left.append(len(shard.transactions))
    assert left == [MANY, MANY - ITEMS, MANY - 2 * ITEMS, 0, 0]
    batches = broker.log.all_records()[-MANY:]
    assert all(record.value is None for record in batches)
    assert upkeep.TOMBSTONES_PER_BATCH < ITEMS


def test_s_txn_6_what_was_prepared_before_a_start_is_carried_out_some_a_turn(
    broker: TransactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = opened(broker)
    broker.markers.hold = True
    for number, owner in enumerate(owners):
        broker.end(owner, transactional_id=f"id-{number}")
    broker.markers.hold = False
    monkeypatch.setattr(TransactionHarness, "check", lambda self: None)
    broker.coordinator.shutdown()
    after = TransactionHarness(broker.log, broker.clock, broker.markers, 10**6, partition_count=1)
    after.load("id-0")
    assert len(after.markers.written) == ITEMS
    after.deadlines.run_due()
    assert len(after.markers.written) == 2 * ITEMS
    after.deadlines.run_due()
    assert len(after.markers.written) == MANY
    assert after.state("id-0") is S.COMPLETE_COMMIT


def test_s_txn_6_a_partition_that_is_loaded_again_at_once_is_carried_out_whole(
    broker: TransactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unfinished walk through the shard that was replaced must not stand for the new one's."""
    owners = opened(broker)
    broker.markers.hold = True
    for number, owner in enumerate(owners):
        broker.end(owner, transactional_id=f"id-{number}")
    broker.markers.hold = False
    monkeypatch.setattr(TransactionHarness, "check", lambda self: None)
    broker.coordinator.shutdown()
    after = TransactionHarness(broker.log, broker.clock, broker.markers, 10**6, partition_count=1)
    after.load("id-0")
    after.coordinator.on_elected(0, 1)
    after.load("id-0")
    for _ in range(4):
        after.deadlines.run_due()
    assert all(after.state(f"id-{number}") is S.COMPLETE_COMMIT for number in range(MANY))
