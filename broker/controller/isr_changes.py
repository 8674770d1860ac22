"""The verdict on a leader's request for another ISR (AlterPartition).

The checks of a partition, in this order:

(a) UNKNOWN_TOPIC_OR_PARTITION: the partition is not known.
(b) NOT_CONTROLLER: the leader knows a later leader epoch or partition epoch. So this broker is
    probably the controller no more, and the leader shall look for the one that is.
(c) FENCED_LEADER_EPOCH: there was an election since.
(d) The partition is as wished already: the answer has its state, so that a repeated request
    succeeds. This check comes before (e), because the first request has made a new partition epoch.
(e) INVALID_UPDATE_VERSION: the state has changed since the leader got it.
(f) INVALID_REQUEST: a leader that is recovering has nobody in sync but itself.
(g) INVALID_REQUEST: a leader that has recovered does not begin to recover again.
(h) INELIGIBLE_REPLICA (OPERATION_NOT_ATTEMPTED before version 2): a replica of the new ISR is not
    live; it could be elected without being there (KIP-841).

An ISR that passes is written if the state node still has the partition epoch as its version.

Pure. Source: `KafkaController.tryProcessAlterPartition` (3.9).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from broker.cluster.leader_and_isr import LeaderAndIsr
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import AlteredPartition

FIRST_VERSION_WITH_IDS: Final = 2
"""From this version of AlterPartition on, topics are named by id and replicas may be ineligible."""
FIRST_VERSION_WITH_EPOCHS: Final = 3
"""From this version on, the ISR comes with the brokers' epochs."""
_RECOVERING: Final = 1


@dataclass(frozen=True, slots=True)
class IsrVerdict:
    """The verdict on one partition's wish: one of the three fields is set."""

    error: ErrorCode | None = None
    unchanged: LeaderAndIsr | None = None
    """The state, which is as wished already."""
    wanted: LeaderAndIsr | None = None
    """The state to write, over the version that is its partition epoch."""


def wish_of(broker_id: int, partition: AlteredPartition, version: int) -> LeaderAndIsr:
    """The state that the leader wants for its partition."""
    if version >= FIRST_VERSION_WITH_EPOCHS:
        isr = tuple(broker.broker_id for broker in partition.new_isr_with_epochs)
    else:
        isr = tuple(partition.new_isr)
    return LeaderAndIsr(
        leader=broker_id,
        isr=isr,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        recovering=partition.leader_recovery_state == _RECOVERING,
    )


def judged(
    wish: LeaderAndIsr, current: LeaderAndIsr | None, live: Collection[int], version: int
) -> IsrVerdict:
    """See the module. `live`: ids of brokers that are not shutting down."""
    if current is None:
        return IsrVerdict(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)  # (a)
    if (
        wish.partition_epoch > current.partition_epoch or wish.leader_epoch > current.leader_epoch
    ):  # (b)
        return IsrVerdict(ErrorCode.NOT_CONTROLLER)
    if wish.leader_epoch < current.leader_epoch:
        return IsrVerdict(ErrorCode.FENCED_LEADER_EPOCH)  # (c)
    if wish == current._replace(
        partition_epoch=wish.partition_epoch, controller_epoch=wish.controller_epoch
    ):
        return IsrVerdict(unchanged=current)  # (d)
    if wish.partition_epoch < current.partition_epoch:
        return IsrVerdict(ErrorCode.INVALID_UPDATE_VERSION)  # (e)
    if wish.recovering and len(wish.isr) > 1:
        return IsrVerdict(ErrorCode.INVALID_REQUEST)  # (f)
    if wish.recovering and not current.recovering:
        return IsrVerdict(ErrorCode.INVALID_REQUEST)  # (g)
    if not all(broker_id in live for broker_id in wish.isr):
        if version >= FIRST_VERSION_WITH_IDS:
            return IsrVerdict(ErrorCode.INELIGIBLE_REPLICA)  # (h)
        return IsrVerdict(ErrorCode.OPERATION_NOT_ATTEMPTED)
    return IsrVerdict(wanted=wish)
