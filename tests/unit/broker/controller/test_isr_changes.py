"""The cases of Kafka's ControllerIntegrationTest.testAlterPartition*."""

import pytest

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.isr_changes import IsrVerdict, judged, wish_of
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import AlteredPartition, BrokerState

NOW = LeaderAndIsr(1, (1, 2), leader_epoch=5, partition_epoch=9, controller_epoch=3)
LIVE = {1, 2, 3}


def wish(
    *isr: int, leader: int = 1, epoch: int = 5, version: int = 9, recovering: bool = False
) -> LeaderAndIsr:
    return LeaderAndIsr(leader, isr, epoch, version, 0, recovering)


@pytest.mark.parametrize(
    ("wanted", "now", "outcome"),
    [
        (wish(1), None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wish(1, version=10), NOW, ErrorCode.NOT_CONTROLLER),
        (wish(1, epoch=6), NOW, ErrorCode.NOT_CONTROLLER),
        (wish(1, epoch=6, version=8), NOW, ErrorCode.NOT_CONTROLLER),
        (wish(1, epoch=4), NOW, ErrorCode.FENCED_LEADER_EPOCH),
        (wish(1, 2, epoch=4, version=8), NOW, ErrorCode.FENCED_LEADER_EPOCH),
        (wish(1, version=8), NOW, ErrorCode.INVALID_UPDATE_VERSION),
        (wish(2, 1, version=8), NOW, ErrorCode.INVALID_UPDATE_VERSION),  # another order
        (wish(1, 2, recovering=True), NOW, ErrorCode.INVALID_REQUEST),
        (wish(1, recovering=True), NOW, ErrorCode.INVALID_REQUEST),
        (wish(1, 2, 4), NOW, ErrorCode.INELIGIBLE_REPLICA),
        (wish(1, 2), NOW, NOW),
        (wish(1, 2, version=8), NOW, NOW),  # a request that is sent again
        (wish(1, 2, 3), NOW, None),
        (wish(1), NOW, None),
        (wish(1), NOW._replace(isr=(1,), recovering=True), None),  # it has recovered
        (wish(1, recovering=True), NOW._replace(isr=(1,), recovering=True), NOW),
    ],
)
def test_a_wish_is_judged(
    wanted: LeaderAndIsr, now: LeaderAndIsr | None, outcome: ErrorCode | LeaderAndIsr | None
) -> None:
    found = judged(wanted, now, LIVE, 3)
    if isinstance(outcome, ErrorCode):
        assert found == IsrVerdict(outcome)
    elif outcome is None:
        assert found == IsrVerdict(wanted=wanted)
    else:
        assert found == IsrVerdict(unchanged=now)


def test_before_version_2_an_ineligible_replica_has_another_code() -> None:
    assert judged(wish(1, 4), NOW, LIVE, 1).error is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert judged(wish(1, 4), NOW, LIVE, 2).error is ErrorCode.INELIGIBLE_REPLICA


def test_a_wish_is_read_from_every_version() -> None:
    epochs = [BrokerState(broker_id=1, broker_epoch=7), BrokerState(broker_id=2, broker_epoch=8)]
    newest = AlteredPartition(
        leader_epoch=5, new_isr_with_epochs=epochs, leader_recovery_state=1, partition_epoch=9
    )
    assert wish_of(1, newest, 3) == wish(1, 2, recovering=True)
    older = AlteredPartition(leader_epoch=5, new_isr=[1, 2], partition_epoch=9)
    assert wish_of(1, older, 2) == wish(1, 2)
