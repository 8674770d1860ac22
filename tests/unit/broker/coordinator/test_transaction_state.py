"""The state of a transactional id: valid transitions, labels, records."""

import pytest

from broker.coordinator.runtime.in_flight import InFlight
from broker.coordinator.transaction.records import decode_value, encode_value
from broker.coordinator.transaction.state import (
    VALID_NEXT,
    InvalidTransactionTransition,
    Transaction,
    TransactionRecord,
    TransactionState,
    TransactionValue,
    state_from_label,
)
from protocol.types import TopicPartition
from tests.support.transaction_harness import T0, T1

S = TransactionState
OFFSETS = TopicPartition("__consumer_offsets", 7)


def in_state(state: S) -> TransactionValue:
    return TransactionValue(producer_id=1, timeout_ms=1, updated_ms=1, state=state)


def test_only_valid_transitions_become_records() -> None:
    for state, following in VALID_NEXT.items():
        for after in S:
            transaction = Transaction("id", in_state(state), InFlight())
            value = None if after is S.DEAD else in_state(after)
            if after in following:
                assert transaction.becoming(value) == TransactionRecord("id", value)
                assert transaction.state is state, "nothing is durable yet"
            else:
                with pytest.raises(InvalidTransactionTransition):
                    transaction.becoming(value)


def test_nothing_begins_while_something_is_written() -> None:
    in_flight: InFlight[TransactionRecord] = InFlight()
    transaction = Transaction("id", in_state(S.EMPTY), in_flight)
    record = transaction.becoming(in_state(S.ONGOING))
    in_flight.begin([record])
    assert transaction.in_transition
    assert repr(transaction) == "Transaction('id', Empty -> Ongoing)"
    with pytest.raises(InvalidTransactionTransition):
        transaction.becoming(in_state(S.ONGOING))
    in_flight.end([record])
    assert not transaction.in_transition
    assert transaction.becoming(in_state(S.ONGOING)) == record


def test_labels_are_kafkas() -> None:
    assert S.PREPARE_EPOCH_FENCE.label == "PrepareEpochFence"
    assert state_from_label("CompleteCommit") is S.COMPLETE_COMMIT
    assert state_from_label("complete") is None


@pytest.mark.parametrize("state", [s for s in S if s not in (S.DEAD, S.PREPARE_EPOCH_FENCE)])
@pytest.mark.parametrize("version", [0, 2])
def test_records_round_trip(state: S, version: int) -> None:
    value = TransactionValue(
        producer_id=5,
        producer_epoch=3,
        previous_producer_id=4 if version else -1,
        next_producer_id=6 if version else -1,
        timeout_ms=7,
        state=state,
        partitions=frozenset() if state is S.EMPTY else frozenset((T0, T1, OFFSETS)),
        start_ms=8,
        updated_ms=9,
        client_version=version,
    )
    data = encode_value(value)
    assert data[:2] == b"\0\1"
    assert decode_value(data) == value
