"""The memory of the gate before transactional appends."""

import pytest

from broker.coordinator.transaction import gate
from broker.coordinator.transaction.decisions import Producer
from protocol.errors import KafkaError
from protocol.types import TopicPartition


def test_what_many_refused_producers_leave_behind_is_bounded(monkeypatch):
    monkeypatch.setattr(gate, "MOST_REFUSED", 2)
    refused = gate._RefusedBatches()
    tp = TopicPartition("t", 0)
    for producer_id in (1, 2, 1, 3):
        refused.note(tp, Producer(producer_id, 0), 5)
    refused.check(tp, Producer(2, 0), 6)
    for producer_id in (1, 3):
        with pytest.raises(KafkaError, match="Sequence 6 came before 5"):
            refused.check(tp, Producer(producer_id, 0), 6)
