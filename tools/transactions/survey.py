"""Asks brokers about transactions, by transactional id and by partition."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.types import TRANSACTION_TOPIC
from tools.errors import CommandError
from tools.log_ends import Place, place_name
from tools.wire.brokers import PAUSE_S, STARTING, TRIES, Brokers, Topics, leaders_of
from tools.wire.refusals import require_done

RUNNING: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States of an unfinished transaction, by Kafka's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A transactional id in a coordinator's list."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A coordinator's description of a transactional id."""

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    """None if no transaction was begun, or the last one has ended."""
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A partition's producer state of one producer."""

    place: Place
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """-1 if none of its transactions has ended here yet."""
    last_sequence: int
    last_timestamp: int
    start_offset: int | None
    """First offset of its open transaction; None if it has none here."""


def list_all(
    cluster: Brokers,
    *,
    states: Sequence[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
) -> list[Listed]:
    """Return the transactional ids of all coordinators, which filter them. Raises CommandError."""
    found = []
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
    )
    least = 0 if longer_than_ms < 0 else 1
    for broker, link in cluster.every():
        for _ in range(TRIES):
            answer = link.call(request, ListTransactionsResponse, least=least)
            if answer.error_code not in STARTING:
                break
            time.sleep(PAUSE_S)
        require_done(answer.error_code, what=f"broker {broker}")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise CommandError(
                f"there is no state {unknown}; known: Empty, {', '.join(RUNNING)}, CompleteCommit,"
                " CompleteAbort, Dead"
            )
        found += [
            Listed(
                transactional_id=each.transactional_id,
                state=each.transaction_state,
                producer_id=each.producer_id,
                coordinator=broker,
            )
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda each: each.transactional_id)


def describe(cluster: Brokers, owners: Mapping[str, int]) -> dict[str, Transaction]:
    """Describe transactional ids; `owners` has their coordinators. Unknown ids are left out."""
    found = {}
    by_broker = sorted(owners, key=lambda name: (owners[name], name))
    for broker, names in groupby(by_broker, key=lambda name: owners[name]):
        request = DescribeTransactionsRequest(transactional_ids=list(names))
        answer = cluster.broker(broker).call(request, DescribeTransactionsResponse)
        for each in answer.transaction_states:
            if each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue
            require_done(each.error_code, what=each.transactional_id)
            found[each.transactional_id] = _transaction(each, broker)
    return found


def require_transactions(cluster: Brokers, names: Sequence[str]) -> list[Transaction]:
    """Describe these ids. Raises CommandError for one that no coordinator knows."""
    owners = {}
    if TRANSACTION_TOPIC in cluster.topics():  # FindCoordinator would create it
        owners = {name: cluster.coordinator(name) for name in names}
    found = describe(cluster, owners)
    for name in names:
        if name not in found:
            raise CommandError(
                f"there is no transactional id {name}; `pykafkalog transactions` lists what there"
                " is (an id that is not used is forgotten after a week)"
            )
    return [found[name] for name in names]


def producers(cluster: Brokers, topics: Topics, places: Sequence[Place]) -> list[Producer]:
    """Return all producers in these partitions' producer state. Raises CommandError."""
    found = []
    for leader, led in leaders_of(topics, places).items():
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=name, partition_indexes=[number for _, number in of_topic])
                for name, of_topic in groupby(sorted(led), key=lambda place: place[0])
            ]
        )
        answer = cluster.broker(leader).call(request, DescribeProducersResponse)
        for topic in answer.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                require_done(partition.error_code, partition.error_message, what=place_name(place))
                found += [_producer(place, each) for each in partition.active_producers]
    return sorted(found, key=lambda each: (each.place, each.producer_id))


def _transaction(told: TransactionState, broker: int) -> Transaction:
    return Transaction(
        transactional_id=told.transactional_id,
        state=told.transaction_state,
        coordinator=broker,
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        timeout_ms=told.transaction_timeout_ms,
        start_ms=told.transaction_start_time_ms if told.transaction_start_time_ms >= 0 else None,
        places=tuple(
            sorted((topic.topic, number) for topic in told.topics for number in topic.partitions)
        ),
    )


def _producer(place: Place, told: ProducerState) -> Producer:
    return Producer(
        place=place,
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        coordinator_epoch=told.coordinator_epoch,
        last_sequence=told.last_sequence,
        last_timestamp=told.last_timestamp,
        start_offset=told.current_txn_start_offset if told.current_txn_start_offset >= 0 else None,
    )
