"""Markers for partitions that other brokers lead: grouped, sent, answered, tried again."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import trio
import trio.testing

from broker.coordinator import cluster_markers
from broker.coordinator.cluster_markers import ClusterMarkerWriter
from broker.coordinator.marker_writer import Marker
from broker.peers.peer import PeerError
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition
from tests.support.driving import driver
from tests.support.fake_peers import FakePeer, image_of, set_leaders

ONE = Marker(producer_id=1, producer_epoch=0, coordinator_epoch=4, commit=True)
TWO = Marker(producer_id=2, producer_epoch=7, coordinator_epoch=4, commit=False)
HERE = 1


def answer(
    code: Callable[[TopicPartition], ErrorCode] = lambda tp: ErrorCode.NONE,
) -> Callable[[ApiKey, Any], Any]:
    def answered(key: ApiKey, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        assert key is ApiKey.WRITE_TXN_MARKERS
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=code(TopicPartition(topic.name, index)),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    return answered


class Local:
    """The writer over this broker's replicas."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.code = ErrorCode.NONE

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        self.written.append((tp, marker))
        return self.code


class Lab:
    def __init__(self, leaders: list[int]) -> None:
        self.image = image_of({"t": leaders, "u": leaders})
        self.local = Local()
        self.peers = {2: FakePeer(answer()), 3: FakePeer(answer())}
        self.connected: list[int] = []
        self.writer = ClusterMarkerWriter(
            self.local, self.image, HERE, self._connect, timeout_ms=1000
        )
        self.codes: dict[tuple[TopicPartition, int], ErrorCode] = {}

    def _connect(self, broker_id: int) -> FakePeer | None:
        self.connected.append(broker_id)
        return self.peers.get(broker_id)

    def write(self, index: int, marker: Marker = ONE, topic: str = "t") -> None:
        tp = TopicPartition(topic, index)

        async def write() -> None:
            code = await self.writer.write(tp, marker)
            assert (tp, marker.producer_id) not in self.codes
            self.codes[tp, marker.producer_id] = code

        begin(write())

    def write_all(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            self.write(index)

    def code(self, index: int, marker: Marker = ONE, topic: str = "t") -> ErrorCode | None:
        return self.codes.get((TopicPartition(topic, index), marker.producer_id))

    def run(self, *steps: Callable[[], None]) -> None:
        """Take steps while the writer runs; in between everything settles."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.writer.run, driver())
                for step in steps:
                    step()
                    await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()

        trio.run(main)


def sent(peer: FakePeer) -> list[list[tuple[int, bool, dict[str, list[int]]]]]:
    """(producer id, commit, partitions by topic) of each marker, by request."""
    return [
        [
            (
                one.producer_id,
                one.transaction_result,
                {topic.name: list(topic.partition_indexes) for topic in one.topics},
            )
            for one in request.markers
        ]
        for _, request in peer.asked
    ]


def test_what_queues_for_a_broker_goes_in_one_request() -> None:
    lab = Lab([1, 2, 3, 2])

    def write() -> None:
        for index in range(4):
            lab.write(index)
        lab.write(3, TWO)
        lab.write(1, ONE, "u")

    lab.run(write)
    assert sent(lab.peers[2]) == [
        [(1, True, {"t": [1, 3], "u": [1]}), (2, False, {"t": [3]})],
    ]
    assert sent(lab.peers[3]) == [[(1, True, {"t": [2]})]]
    assert lab.local.written == [(TopicPartition("t", 0), ONE)]
    assert set(lab.codes.values()) == {ErrorCode.NONE}
    assert len(lab.codes) == 6
    marker = lab.peers[2].asked[0][1].markers[0]
    assert (marker.producer_epoch, marker.coordinator_epoch) == (0, 4)


def test_each_partition_gets_its_own_code() -> None:
    lab = Lab([2, 2, 2])
    codes = {0: ErrorCode.NONE, 1: ErrorCode.NOT_ENOUGH_REPLICAS, 2: ErrorCode.INVALID_REQUEST}
    lab.peers[2].answer = answer(lambda tp: codes[tp.partition])
    lab.run(lambda: lab.write_all(range(3)))
    assert {index: lab.code(index) for index in range(3)} == codes


@pytest.mark.parametrize("leader", [HERE, 2])
def test_a_broker_that_does_not_know_a_partition_yet_is_asked_again(leader: int) -> None:
    lab = Lab([leader])
    lab.local.code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    lab.peers[2].answer = answer(lambda tp: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    lab.run(lambda: lab.write(0))
    assert lab.code(0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_the_image_does_not_have_needs_no_marker() -> None:
    lab = Lab([2])
    lab.run(lambda: lab.write(9))
    assert lab.code(9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert lab.peers[2].asked == []


def test_without_a_leader_or_its_address_it_is_tried_again() -> None:
    lab = Lab([-1, 4])
    lab.run(lambda: lab.write_all(range(2)))
    assert lab.code(0) is lab.code(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lab.connected == [4]


def test_no_answer_is_tried_again_and_then_goes_to_the_leader_of_that_time() -> None:
    lab = Lab([2])
    lab.peers[2].answer = lambda key, request: PeerError("gone")

    def again() -> None:
        assert lab.codes.pop((TopicPartition("t", 0), 1)) is ErrorCode.NETWORK_EXCEPTION
        set_leaders(lab.image, "t", [3])
        lab.write(0)

    lab.run(lambda: lab.write(0), again)
    assert lab.code(0) is ErrorCode.NONE
    assert (len(lab.peers[2].asked), len(lab.peers[3].asked)) == (1, 1)


def test_an_answer_that_lacks_a_partition_is_none_for_it() -> None:
    lab = Lab([2])
    lab.peers[2].answer = lambda key, request: WriteTxnMarkersResponse()
    lab.run(lambda: lab.write(0))
    assert lab.code(0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_requests_that_are_under_way_are_bounded_and_the_rest_goes_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_markers, "MOST_UNDER_WAY", 2)
    lab = Lab([2] * 6)
    peer = lab.peers[2]
    peer.held = []

    def release() -> None:
        assert peer.held is not None
        assert len(peer.asked) == 2
        held, peer.held = peer.held, None
        for signal in held:
            signal.fire()

    lab.run(*[lambda index=index: lab.write(index) for index in range(6)], release)  # type: ignore[misc]
    assert [request[0][2]["t"] for request in sent(peer)] == [[0], [1], [2, 3, 4, 5]]
    assert len(lab.codes) == 6


def test_a_request_has_at_most_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_markers, "MARKERS_PER_REQUEST", 2)
    lab = Lab([2] * 5)
    lab.run(lambda: lab.write_all(range(5)))
    assert [request[0][2]["t"] for request in sent(lab.peers[2])] == [[0, 1], [2, 3], [4]]


def test_a_broker_that_stops_sends_nothing() -> None:
    lab = Lab([2])
    lab.write(0)
    assert lab.code(0) is ErrorCode.COORDINATOR_NOT_AVAILABLE
