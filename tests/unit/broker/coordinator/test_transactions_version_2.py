"""Transactions of version 2, KIP-890, on virtual time (S-TXN-7)."""

from dataclasses import replace

import pytest

from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import (
    LAST_EPOCH,
    TransactionState,
)
from protocol.errors import ErrorCode
from tests.support.transaction_harness import T0, T1, TIMEOUT_MS, TransactionHarness

S = TransactionState


def test_s_txn_7_each_end_raises_the_epoch(broker: TransactionHarness) -> None:
    owner = broker.owner()
    for epoch in (1, 2):
        broker.add(owner, T0, version=2)
        reply = broker.end(owner, version=2)
        assert reply == (0, 1000, epoch)
        assert broker.markers.written[-1][1].producer_epoch == epoch
        assert broker.end(owner, version=2) == reply  # A retry.
        assert broker.end(owner, commit=False, version=2).code is ErrorCode.INVALID_TXN_STATE
        assert broker.add(owner, T0, version=2) is ErrorCode.PRODUCER_FENCED
        owner = reply.producer


def test_s_txn_7_a_retry_while_markers_are_written(broker: TransactionHarness) -> None:
    owner = broker.opened(T0, version=2)
    broker.markers.hold = True
    broker.end(owner, version=2)
    for commit in (True, False):
        code = broker.end(owner, commit=commit, version=2).code
        assert code is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.markers.release()
    assert broker.end(owner, commit=False, version=2).code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("epoch", [5, LAST_EPOCH - 1])
def test_s_txn_7_the_next_transaction_waits_until_markers_are_written(
    broker: TransactionHarness, epoch: int
) -> None:
    """The owner has its next epoch, or its next id, before the transaction is complete."""
    owner = Producer(broker.owner().producer_id, epoch)
    known = broker.shard().transactions["id"]
    known.value = replace(known.value, producer_epoch=epoch)
    broker.add(owner, T0, version=2)
    broker.markers.hold = True
    following = broker.end(owner, version=2).producer
    assert (following.producer_id == owner.producer_id) is (epoch == 5)
    codes = {
        broker.add(following, T1, version=2),
        broker.end(following, commit=False, version=2).code,
        broker.init(expected=following).code,
    }
    assert codes == {ErrorCode.CONCURRENT_TRANSACTIONS}
    broker.markers.release()
    assert broker.add(following, T0, version=2) is ErrorCode.NONE
    assert broker.end(owner, version=2).code in (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )


def test_s_txn_7_an_abort_without_partitions_raises_the_epoch(broker: TransactionHarness) -> None:
    owner = broker.owner()
    assert broker.end(owner, version=2).code is ErrorCode.INVALID_TXN_STATE
    reply = broker.end(owner, commit=False, version=2)
    assert reply == (0, 1000, 1)
    assert broker.state() is S.COMPLETE_ABORT
    assert broker.markers.written == []
    assert broker.end(owner, commit=False, version=2) == reply
    assert broker.end(reply.producer, commit=False, version=2) == (0, 1000, 2)


def test_s_txn_7_an_exhausted_epoch_moves_on_to_a_new_id(broker: TransactionHarness) -> None:
    owner = broker.owner_at(LAST_EPOCH - 1)
    broker.add(owner, T0, version=2)
    broker.markers.hold = True
    reply = broker.end(owner, version=2)
    assert reply == (0, 1000, 0)
    assert broker.value().next_producer_id == 1000
    after = broker.restarted()
    assert after.state() is S.PREPARE_COMMIT
    after.markers.release()
    assert {(m.producer_id, m.producer_epoch) for _, m in after.markers.written} == {
        (1, LAST_EPOCH)
    }
    assert after.end(owner, version=2) == reply  # A retry, after a restart.
    assert after.add(reply.producer, T0, version=2) is ErrorCode.NONE
    assert after.end(owner, version=2).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_s_txn_7_a_fenced_owner_is_no_retry(broker: TransactionHarness) -> None:
    zombie = broker.opened(T0, version=2)
    broker.init()
    assert broker.value().producer_epoch == 1  # Raised once, not twice.
    broker.init()
    for commit in (True, False):
        assert broker.end(zombie, commit=commit, version=2).code is ErrorCode.PRODUCER_FENCED


def test_s_txn_7_an_owner_of_the_last_epoch_but_one_goes_on_with_another_id_after_a_timeout(
    broker: TransactionHarness,
) -> None:
    """The last epoch is not for owners: their next end could not raise it again."""
    owner = broker.owner_at(LAST_EPOCH - 1)
    broker.add(owner, T0, version=2)
    broker.advance_ms(TIMEOUT_MS + 20_000)
    assert broker.state() is S.COMPLETE_ABORT
    _, marker = broker.markers.written[0]
    assert (marker.producer_id, marker.producer_epoch) == (owner.producer_id, LAST_EPOCH)
    assert broker.end(owner, commit=True, version=2).code is ErrorCode.INVALID_TXN_STATE
    reply = broker.end(owner, commit=False, version=2)
    assert reply == (ErrorCode.NONE, 1000, 0)
    assert broker.add(owner, T0, version=2) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.add(reply.producer, T0, version=2) is ErrorCode.NONE
    assert broker.end(reply.producer, version=2) == (ErrorCode.NONE, 1000, 1)


def test_s_txn_7_a_timeout_takes_a_block_of_producer_ids_if_it_needs_one(
    broker: TransactionHarness,
) -> None:
    broker.add(broker.owner_at(LAST_EPOCH - 1), T0, version=2)
    broker.ids.used_up = True
    assert broker.init().code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.advance_ms(TIMEOUT_MS + 9_900)
    assert broker.state() is S.ONGOING
    broker.advance_ms(200)
    assert broker.state() is S.ONGOING
    assert not broker.ids.used_up
    assert broker.statistics().counters.timed_out == 0
    broker.advance_ms(10_000)
    assert broker.state() is S.COMPLETE_ABORT
    assert broker.statistics().counters.timed_out == 1
    assert broker.init() == (ErrorCode.NONE, 1000, 1)


def test_s_txn_7_a_transaction_of_the_last_epoch_can_still_be_ended(
    broker: TransactionHarness,
) -> None:
    """Not by this broker's doing, but a log may hold one: it must not be stuck."""
    broker.add(broker.owner_at(LAST_EPOCH), T0, version=2)
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.state() is S.COMPLETE_ABORT
    assert broker.init() == (0, 1000, 1)
    owner = broker.owner_at(LAST_EPOCH)
    broker.add(owner, T0, version=2)
    assert broker.end(owner, version=2).code is ErrorCode.NONE


def test_s_txn_7_an_owner_whose_transaction_timed_out_may_abort_it_and_go_on(
    broker: TransactionHarness,
) -> None:
    owner = broker.opened(T0, version=2)
    broker.advance_ms(TIMEOUT_MS + 20_000)
    assert broker.state() is S.COMPLETE_ABORT
    assert broker.end(owner, commit=True, version=2).code is ErrorCode.INVALID_TXN_STATE
    reply = broker.end(owner, commit=False, version=2)
    assert reply == (ErrorCode.NONE, owner.producer_id, owner.producer_epoch + 1)
    assert broker.add(owner, T0, version=2) is ErrorCode.PRODUCER_FENCED
    assert broker.add(reply.producer, T0, version=2) is ErrorCode.NONE
    # The older protocol knows nothing of the kind.
    broker.advance_ms(TIMEOUT_MS + 20_000)
    assert broker.end(reply.producer, commit=False).code is ErrorCode.PRODUCER_FENCED
