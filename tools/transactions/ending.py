"""Ends transactions on an administrator's request.

A hanging transaction is ended by a marker written into its partition (WriteTxnMarkers), as
`kafka-transactions abort` does: nothing else can end it. A transaction that its coordinator knows
is ended by fencing its transactional id (InitProducerId), as `Admin.fenceProducers` does: the
coordinator then aborts it in all of its partitions. A marker would abort it in a single partition,
so that is refused without `--force` (decision 71).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tools.errors import CommandError
from tools.log_ends import Place, place_name
from tools.transactions.explanation import fence_command
from tools.transactions.hanging import Open
from tools.transactions.survey import Transaction
from tools.wire.brokers import PAUSE_S, TRIES, Brokers, Topics, leaders_of
from tools.wire.refusals import require_done


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """An abort marker for one partition."""

    place: Place
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def marker_for(opened: Sequence[Open], place: Place, start_offset: int, *, force: bool) -> Marker:
    """Return the abort marker of the transaction that begins at `start_offset`.

    If a producer's first transaction hangs, the partition has no coordinator epoch of it; the
    marker then has epoch 0, which is not above any coordinator's. Raises CommandError.
    """
    for each in opened:
        if each.producer.start_offset == start_offset:
            break
    else:
        starts = [str(each.producer.start_offset) for each in opened]
        raise CommandError(
            f"no open transaction begins at offset {start_offset} of {place_name(place)};"
            f" open ones begin at: {', '.join(starts) or 'none is open'}"
        )
    if each.hangs is None and not force:
        raise CommandError(
            f"the transaction at offset {start_offset} does not hang: its coordinator ends it. To"
            f" abort it everywhere: {fence_command(each)}; --force aborts it in {place_name(place)}"
            " alone"
        )
    producer = each.producer
    return Marker(
        place=place,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )


def write_abort(cluster: Brokers, topics: Topics, marker: Marker) -> None:
    """Send the marker to the partition's leader. Raises CommandError."""
    topic, partition = marker.place
    (leader,) = leaders_of(topics, [marker.place])
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=0,  # the marker has the epoch of the data, not one above it
            )
        ]
    )
    answer = cluster.broker(leader).call(request, WriteTxnMarkersResponse)
    for told in answer.markers:
        for of_topic in told.topics:
            for of_partition in of_topic.partitions:
                require_done(of_partition.error_code, what=place_name(marker.place))


def fence(cluster: Brokers, transaction: Transaction) -> tuple[int, int]:
    """Fence a transactional id; return its new producer id and epoch.

    The broker refuses producers with an older epoch from then on. Raises CommandError.
    """
    request = InitProducerIdRequest(
        transactional_id=transaction.transactional_id,
        transaction_timeout_ms=transaction.timeout_ms,
    )
    link = cluster.broker(transaction.coordinator)
    for _ in range(TRIES):
        answer = link.call(request, InitProducerIdResponse)
        # The answer while markers of the aborted transaction are being written.
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
        time.sleep(PAUSE_S)
    require_done(answer.error_code, what=transaction.transactional_id)
    return answer.producer_id, answer.producer_epoch
