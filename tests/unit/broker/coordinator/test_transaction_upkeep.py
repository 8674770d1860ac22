"""Very many transactions that time out, expire or were prepared together: others run between."""

from contextlib import suppress

import pytest

from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import TransactionState as S
from broker.coordinator.transaction.upkeep import TOMBSTONES_PER_BATCH
from protocol.errors import ErrorCode
from storage.waits import PAUSE, Work, at_once
from tests.support.transaction_harness import T0, TransactionHarness

MANY = 750
SOME = 256


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


def begun(broker: TransactionHarness) -> Work[None]:
    """The oldest work that the coordinator has begun."""
    return broker.coordinator._runtime.tasks.waiting.popleft()()


def round_begins(broker: TransactionHarness) -> None:
    """Fire the timer of the round, and that of its only partition."""
    broker.deadlines.run_due()
    broker.deadlines.run_due()


def go_on(work: Work[None], pauses: int) -> None:
    """Let the work go on to its `pauses`th pause from here."""
    for _ in range(pauses):
        assert work.send(None) is PAUSE


def aborting(broker: TransactionHarness, pauses: int) -> Work[None]:
    """The aborts of very many transactions that have timed out, after so many of them."""
    broker.clock.advance(101)
    round_begins(broker)
    walk = begun(broker)
    go_on(walk, pauses)
    return walk


def timed_out(broker: TransactionHarness) -> int:
    return broker.statistics().counters.timed_out


def test_others_run_between_the_aborts_of_transactions_that_time_out_together(
    broker: TransactionHarness,
) -> None:
    opened(broker)
    broker.clock.advance(101)
    round_begins(broker)
    assert timed_out(broker) == 0
    walk = begun(broker)
    for number in range(1, 4):
        go_on(walk, 1)
        assert timed_out(broker) == number
    go_on(walk, MANY - 3)
    assert timed_out(broker) == MANY
    assert all(broker.state(f"id-{number}") is S.COMPLETE_ABORT for number in range(MANY))
    with pytest.raises(StopIteration):
        walk.send(None)


def test_a_transaction_that_ends_before_its_turn_is_left_alone(broker: TransactionHarness) -> None:
    owners = opened(broker)
    walk = aborting(broker, SOME)
    last = f"id-{MANY - 1}"
    assert broker.end(owners[-1], transactional_id=last).code is ErrorCode.NONE
    assert broker.end(owners[0], transactional_id="id-0").code is ErrorCode.PRODUCER_FENCED
    at_once(walk)
    assert broker.state(last) is S.COMPLETE_COMMIT
    assert timed_out(broker) == MANY - 1


def test_a_round_does_not_begin_while_the_one_before_is_at_it(broker: TransactionHarness) -> None:
    opened(broker)
    walk = aborting(broker, SOME)
    broker.clock.advance(101)
    # The next round comes due, and finds the first at work: it adds no second walk.
    round_begins(broker)
    assert not broker.coordinator._runtime.tasks.waiting
    at_once(walk)
    assert timed_out(broker) == MANY
    broker.clock.advance(101)
    round_begins(broker)
    at_once(begun(broker))


def test_a_partition_that_is_given_away_is_not_walked_any_more(broker: TransactionHarness) -> None:
    opened(broker)
    walk = aborting(broker, SOME)
    broker.coordinator.on_resigned(0)
    at_once(walk)
    assert timed_out(broker) == SOME


def test_tombstones_are_written_some_at_a_time(broker: TransactionHarness) -> None:
    for number in range(MANY):
        broker.owner(f"id-{number}")
    shard = broker.shard("id-0")
    (batches,) = broker.log.batches.values()
    before = len(batches)
    broker.clock.advance(1_001)
    broker.deadlines.run_due()
    broker.deadlines.run_due()
    walks = [begun(broker), begun(broker)]  # nothing times out
    left = [len(shard.transactions)]
    for walk in walks:
        with suppress(StopIteration):
            while True:
                walk.send(None)
                left.append(len(shard.transactions))
        left.append(len(shard.transactions))
    assert list(dict.fromkeys(left)) == [*range(MANY, 0, -TOMBSTONES_PER_BATCH), 0]
    assert len(batches) - before == -(-MANY // TOMBSTONES_PER_BATCH)
    assert all(record.value is None for record in broker.log.all_records()[-MANY:])


def test_an_id_that_is_used_again_before_its_tombstone_is_written_stays(
    broker: TransactionHarness,
) -> None:
    for number in range(TOMBSTONES_PER_BATCH):
        broker.owner(f"id-{number}")
    broker.clock.advance(1_001)
    round_begins(broker)
    walks = [begun(broker), begun(broker)]
    for walk in walks:
        go_on(walk, TOMBSTONES_PER_BATCH - 1)
    broker.owner("id-0")
    for walk in walks:
        at_once(walk)
    assert list(broker.shard("id-0").transactions) == ["id-0"]


def all_prepared(broker: TransactionHarness, monkeypatch: pytest.MonkeyPatch) -> TransactionHarness:
    """A new broker over a log with very many prepared transactions, of which none is loaded."""
    owners = opened(broker)
    broker.markers.hold = True
    for number, owner in enumerate(owners):
        broker.end(owner, transactional_id=f"id-{number}")
    broker.markers.hold = False
    monkeypatch.setattr(TransactionHarness, "check", lambda self: None)
    broker.coordinator.shutdown()
    after = TransactionHarness(broker.log, broker.clock, broker.markers, 10**6, partition_count=1)
    after.coordinator.on_elected(0, 0)
    return after


def test_s_txn_6_others_run_while_what_was_prepared_before_a_start_is_carried_out(
    broker: TransactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = all_prepared(broker, monkeypatch)
    at_once(begun(after))  # the load
    assert after.markers.written == []
    walk = begun(after)
    go_on(walk, SOME)
    assert len(after.markers.written) == SOME
    at_once(walk)
    assert len(after.markers.written) == MANY
    assert after.state("id-0") is S.COMPLETE_COMMIT


def test_s_txn_6_a_partition_that_is_loaded_again_at_once_is_carried_out_whole(
    broker: TransactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unfinished walk through the shard that was replaced must not stand for the new one's."""
    after = all_prepared(broker, monkeypatch)
    at_once(begun(after))
    walk = begun(after)
    go_on(walk, SOME)
    after.coordinator.on_resigned(0)
    after.coordinator.on_elected(0, 1)
    at_once(begun(after))
    at_once(walk)
    assert len(after.markers.written) == SOME
    after.work()
    assert all(after.state(f"id-{number}") is S.COMPLETE_COMMIT for number in range(MANY))
