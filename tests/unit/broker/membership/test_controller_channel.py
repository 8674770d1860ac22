"""The controller is found again when it has moved, and asked until there is no time left."""

from dataclasses import dataclass, field

import pytest

from broker.cluster.image import BrokerImage, MetadataImage
from broker.membership.controlled_shutdown import hand_over
from broker.membership.controller_channel import ControllerChannel
from broker.peers.peer import PeerError
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from protocol.messages.controlled_shutdown import ControlledShutdownResponse, RemainingPartition
from protocol.schema import Message
from storage.waits import at_once
from tests.support.fake_peers import FakePeer
from tests.support.manual_clock import PassingClock

NOT_CONTROLLER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
BLOCK = AllocateProducerIdsResponse(
    error_code=ErrorCode.NONE, producer_id_start=4000, producer_id_len=1000
)
REQUEST = AllocateProducerIdsRequest(broker_id=1, broker_epoch=7)


def endpoint(port: int, name: str = "INTERNAL") -> Listener:
    return Listener(name=name, host="h", port=port, protocol="PLAINTEXT")


@dataclass
class Cluster:
    """All brokers give the next of `answers`; `asked` has broker and port of each question."""

    answers: list[Message | PeerError] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    peers: dict[tuple[int, int], FakePeer] = field(default_factory=dict)
    image: MetadataImage = field(default_factory=MetadataImage)

    def __post_init__(self) -> None:
        for broker_id in (1, 2):
            self.image.set_broker(
                BrokerImage(
                    broker_id=broker_id,
                    endpoints=(endpoint(9, "CLIENTS"), endpoint(broker_id * 10)),
                )
            )
        self.image.controller_id = 2
        self.channel = ControllerChannel(
            image=self.image,
            peers=self,
            listener_name="INTERNAL",
            client_id="c",
            clock=PassingClock(),
            longest_s=5,
        )

    def to(self, broker_id: int, endpoint: Listener, client_id: str) -> FakePeer:
        def answer(key: ApiKey, request: Message) -> Message | PeerError:
            self.asked.append(at)
            return self.answers.pop(0)

        at = broker_id, endpoint.port
        self.peers[at] = FakePeer(answer)
        return self.peers[at]

    @property
    def closed(self) -> list[tuple[int, int]]:
        return [at for at, peer in self.peers.items() if peer.closed]


def ask(cluster: Cluster, timeout_s: float = 60) -> Message:
    work = cluster.channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, REQUEST, timeout_s=timeout_s)
    answer: Message = at_once(work)
    return answer


def test_the_controller_is_asked_where_brokers_talk() -> None:
    cluster = Cluster([BLOCK])
    assert ask(cluster) is BLOCK
    assert cluster.asked == [(2, 20)]


def test_a_broker_that_is_no_controller_or_does_not_answer_is_not_the_end() -> None:
    cluster = Cluster([PeerError("gone"), NOT_CONTROLLER, BLOCK])
    assert ask(cluster) is BLOCK
    assert cluster.asked == [(2, 20)] * 3
    assert not cluster.closed


def test_another_controller_or_another_address_is_another_connection() -> None:
    cluster = Cluster([BLOCK, BLOCK, BLOCK])
    ask(cluster)
    cluster.image.controller_id = 1
    ask(cluster)
    cluster.image.set_broker(BrokerImage(broker_id=1, endpoints=(endpoint(11),)))
    ask(cluster)
    assert cluster.asked == [(2, 20), (1, 10), (1, 11)]
    assert cluster.closed == [(2, 20), (1, 10)]


def test_a_request_to_a_former_controller_waits_no_longer() -> None:
    """It may stand still, and would keep who asks it waiting for half a minute."""
    cluster = Cluster([BLOCK])
    cluster.channel.drop_former()
    ask(cluster)
    cluster.channel.drop_former()
    assert not cluster.closed
    cluster.image.controller_id = 1
    cluster.channel.drop_former()
    cluster.channel.drop_former()
    assert cluster.closed == [(2, 20)]


@pytest.mark.parametrize("controller", [-1, 3])
def test_without_a_controller_the_time_runs_out(controller: int) -> None:
    cluster = Cluster()
    cluster.image.controller_id = controller
    with pytest.raises(PeerError, match="there is no controller"):
        ask(cluster)
    assert not cluster.asked


def test_asked_once_the_answer_is_the_callers() -> None:
    cluster = Cluster([NOT_CONTROLLER])
    work = cluster.channel.ask_once(ApiKey.ALLOCATE_PRODUCER_IDS, REQUEST)
    assert at_once(work) is NOT_CONTROLLER


def left(*partitions: int) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(
        error_code=ErrorCode.NONE,
        remaining_partitions=[
            RemainingPartition(topic_name="t", partition_index=one) for one in partitions
        ],
    )


@pytest.mark.parametrize(
    ("answers", "consents", "asked"),
    [
        ([left()], True, 1),
        ([left(3), left()], True, 2),
        ([left(3), left(3), left(3), left()], False, 3),
        (
            [
                ControlledShutdownResponse(
                    error_code=ErrorCode.BROKER_NOT_AVAILABLE, remaining_partitions=[]
                ),
                left(),
            ],
            True,
            2,
        ),
    ],
)
def test_leadership_is_handed_over_in_some_attempts(
    answers: list[Message | PeerError], consents: bool, asked: int
) -> None:
    cluster = Cluster(answers)
    work = hand_over(
        cluster.channel,
        attempts=3,
        backoff_s=5,
        longest_s=30,
        broker_id=1,
        broker_epoch=lambda: 7,
    )
    assert at_once(work) is consents
    assert len(cluster.asked) == asked
