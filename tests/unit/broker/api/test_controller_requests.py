"""The requests of a controller, in every version: what it means, and what it is answered."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.api import leader_and_isr, stop_replica, update_metadata
from broker.api.leader_and_isr import LeaderAndIsrHandler
from broker.api.stop_replica import StopReplicaHandler
from broker.api.update_metadata import UpdateMetadataHandler
from broker.cluster.image import BrokerImage, PartitionImage
from broker.membership.leadership import Codes
from broker.membership.only_controller import OnlyController
from broker.membership.orders import MetadataUpdate, Sender, StopOrder, TopicOrders, TopicStates
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from protocol.types import ZERO_UUID, TopicPartition
from storage.waits import at_once
from tests.support.api_calls import call, context
from tests.support.membership_fakes import ID, FakeController
from tests.support.refusals import code_of


def versions(api: Any) -> list[int]:
    first, last = api.API.versions
    return list(range(first, last + 1))


class Obeying:
    """Remembers the order, and answers it."""

    def __init__(self, answer: Any = None) -> None:
        self.sender: Sender | None = None
        self.order: Any = None
        self.answer = answer

    async def obey(self, sender: Sender, order: Any) -> Any:
        self.sender, self.order = sender, order
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return self.answer


def leadership_request(version: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        topic_name="t",
        partition_index=3,
        controller_epoch=5,
        leader=1,
        leader_epoch=6,
        isr=[1, 2],
        partition_epoch=8,
        replicas=[1, 2, 4],
        adding_replicas=[4],
        removing_replicas=[2],
        is_new=True,
    )
    topic = LeaderAndIsrTopicState(topic_name="t", topic_id=ID, partition_states=[state])
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=5,
        broker_epoch=77,
        ungrouped_partition_states=[state] if version < 2 else [],
        topic_states=[] if version < 2 else [topic],
        live_leaders=[],
    )


@pytest.mark.parametrize("version", versions(leader_and_isr))
def test_leader_and_isr_names_partitions_by_topic_and_answers_by_its_id(version: int) -> None:
    codes: Codes = {"t": {3: ErrorCode.STALE_CONTROLLER_EPOCH}}
    obeying = Obeying(codes)
    answer = call(
        LeaderAndIsrHandler(obeying),  # type: ignore[arg-type]
        ApiKey.LEADER_AND_ISR,
        version,
        leadership_request(version),
    )
    assert obeying.sender == Sender(9, 5, 77 if version >= 2 else -1)
    assert obeying.order == {
        "t": TopicOrders(
            topic_id=ID if version >= 5 else ZERO_UUID,
            partitions={
                3: PartitionImage(
                    leader=1,
                    leader_epoch=6,
                    replicas=(1, 2, 4),
                    isr=(1, 2),
                    adding_replicas=(4,) if version >= 3 else (),
                    removing_replicas=(2,) if version >= 3 else (),
                    partition_epoch=8,
                )
            },
            new={3} if version >= 1 else set(),
        )
    }
    assert answer.error_code == ErrorCode.NONE
    if version >= 5:
        [topic] = answer.topics
        assert topic.topic_id == ID
        [error] = topic.partition_errors
    else:
        [error] = answer.partition_errors
        assert error.topic_name == "t"
    assert (error.partition_index, error.error_code) == (3, ErrorCode.STALE_CONTROLLER_EPOCH)


@pytest.mark.parametrize("version", versions(stop_replica))
def test_stop_replica_has_epochs_and_deletions_of_partitions_at_last(version: int) -> None:
    tp = TopicPartition("t", 3)
    obeying = Obeying({tp: ErrorCode.FENCED_LEADER_EPOCH})
    state = StopReplicaPartitionState(partition_index=3, leader_epoch=6, delete_partition=True)
    request = StopReplicaRequest(
        controller_id=9,
        controller_epoch=5,
        broker_epoch=77,
        delete_partitions=version < 3,
        ungrouped_partitions=[StopReplicaPartitionV0(topic_name="t", partition_index=3)]
        if version == 0
        else [],
        topics=[StopReplicaTopicV1(name="t", partition_indexes=[3])] if 1 <= version < 3 else [],
        topic_states=[StopReplicaTopicState(topic_name="t", partition_states=[state])]
        if version >= 3
        else [],
    )
    handler = StopReplicaHandler(obeying)  # type: ignore[arg-type]
    answer = call(handler, ApiKey.STOP_REPLICA, version, request)
    assert obeying.sender == Sender(9, 5, 77 if version >= 1 else -1)
    assert obeying.order == {tp: StopOrder(6 if version >= 3 else -1, True)}
    [error] = answer.partition_errors
    assert (error.topic_name, error.partition_index, error.error_code) == (
        "t",
        3,
        ErrorCode.FENCED_LEADER_EPOCH,
    )


def update_request(version: int) -> UpdateMetadataRequest:
    gone = UpdateMetadataPartitionState(topic_name="t", partition_index=0, leader=-2)
    state = UpdateMetadataPartitionState(
        topic_name="t",
        partition_index=3,
        controller_epoch=5,
        leader=1,
        leader_epoch=6,
        isr=[1, 2],
        zk_version=8,
        replicas=[1, 2, 4],
        offline_replicas=[4],
    )
    broker = UpdateMetadataBroker(
        id=1,
        v0_host="h",
        v0_port=9092,
        endpoints=[
            UpdateMetadataEndpoint(port=9092, host="h", listener="CLIENTS", security_protocol=1)
        ]
        if version
        else [],
        rack="r",
    )
    topic = UpdateMetadataTopicState(topic_name="t", topic_id=ID, partition_states=[gone, state])
    return UpdateMetadataRequest(
        controller_id=9,
        controller_epoch=5,
        broker_epoch=77,
        ungrouped_partition_states=[gone, state] if version < 5 else [],
        topic_states=[topic] if version >= 5 else [],
        live_brokers=[broker],
    )


@pytest.mark.parametrize("version", versions(update_metadata))
def test_update_metadata_has_brokers_with_listeners_and_partitions_with_topic_ids(
    version: int,
) -> None:
    obeying = Obeying()
    handler = UpdateMetadataHandler(obeying)  # type: ignore[arg-type]
    answer = call(handler, ApiKey.UPDATE_METADATA, version, update_request(version))
    assert answer.error_code == ErrorCode.NONE
    assert obeying.sender == Sender(9, 5, 77 if version >= 5 else -1)
    name = "PLAINTEXT" if version == 0 else "SSL" if version < 3 else "CLIENTS"
    protocol = "PLAINTEXT" if version == 0 else "SSL"
    assert obeying.order == MetadataUpdate(
        brokers={
            1: BrokerImage(
                broker_id=1,
                endpoints=(Listener(name=name, host="h", port=9092, protocol=protocol),),
                rack="r" if version >= 2 else None,
            )
        },
        topics={
            "t": TopicStates(
                topic_id=ID if version >= 7 else ZERO_UUID,
                partitions={
                    0: None,
                    3: PartitionImage(
                        leader=1,
                        leader_epoch=6,
                        replicas=(1, 2, 4),
                        isr=(1, 2),
                        offline_replicas=(4,) if version >= 4 else (),
                        partition_epoch=8,
                    ),
                },
            )
        },
    )


def test_a_security_protocol_that_is_none_is_refused() -> None:
    request = update_request(8)
    request.live_brokers[0].endpoints[0].security_protocol = 4
    handler = UpdateMetadataHandler(Obeying())  # type: ignore[arg-type]
    response = call(handler, ApiKey.UPDATE_METADATA, 8, request)
    assert response.error_code == ErrorCode.INVALID_REQUEST


class Answering:
    """Any handler."""

    async def __call__(self, ctx: Any, request: Any) -> str:
        return "done"

    def error_response(self, ctx: Any, request: Any, code: ErrorCode) -> Mapping[str, ErrorCode]:
        return {"code": code}


def test_what_only_the_controller_does_others_refuse() -> None:
    controller = FakeController(is_active=False)
    handler = OnlyController(Answering(), controller)  # type: ignore[arg-type]
    ctx = context(ApiKey.CREATE_TOPICS, 7)
    assert code_of(handler, ctx, None) is ErrorCode.NOT_CONTROLLER
    assert handler.error_response(ctx, None, ErrorCode.NOT_CONTROLLER) == {
        "code": ErrorCode.NOT_CONTROLLER
    }
    controller.is_active = True
    assert at_once(handler(ctx, None)) == "done"
