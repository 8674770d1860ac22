"""This broker as a client of Apache Kafka 3.9: what brokers ask each other, answered by Kafka."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from broker.deadlines import Deadlines
from broker.peers.broker_peer import BrokerPeer
from broker.peers.peers import Peers
from broker.peers.surroundings import PeerSurroundings
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from broker.world.sockets import SocketTransport
from config.broker_config import BrokerConfig
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import ProduceRequest
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tests.support.apache_kafka import ApacheKafka
from tests.support.produce_requests import one_batch
from tests.support.read_requests import one_lookup
from tests.support.topic_requests import creation

pytestmark = pytest.mark.conformance

TOPIC = "peers"
BATCHES = 6
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
CONFIG = BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0"})


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    directory: Path = tmp_path_factory.mktemp("kafka")
    broker = ApacheKafka(directory, version="3.9.0", heap="256m").start()
    yield broker
    broker.kill()


class Client:
    def __init__(self, kafka: ApacheKafka) -> None:
        clock, workers = SystemClock(), MachineWorkers()
        self.driver = Driver(workers, clock)
        self.deadlines = Deadlines(clock)
        self.peers = Peers(
            CONFIG,
            PeerSurroundings(
                transport=SocketTransport(),
                workers=workers,
                clock=clock,
                deadlines=self.deadlines,
                driver=self.driver,
                random=Random(1),
            ),
        )
        endpoint = Listener(
            name="PLAINTEXT", host="127.0.0.1", port=kafka.port, protocol="PLAINTEXT"
        )
        self.peer: BrokerPeer = self.peers.to(1, endpoint, "a-broker")

    async def ask(self, key: ApiKey, request: Any) -> Any:
        return await self.driver.run(self.peer.ask(key, request, timeout_s=20))


def test_kafka_answers_what_brokers_ask_each_other(kafka: ApacheKafka) -> None:
    batch = build_batch([(1_700_000_000_000, None, bytes(500_000), ())])

    async def main() -> None:
        client = Client(kafka)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.driver.run, client.deadlines.run())
            nursery.start_soon(client.peers.run)
            await client.driver.run(client.peer.ready(timeout_s=20))
            assert client.peer.version_of(ApiKey.FETCH) == 17
            await _create(client)
            for _ in range(BATCHES):
                await _produce(client, batch)
            topic_id = await _check_metadata(client)
            await _check_offsets(client)
            await _check_fetch(client, topic_id, batch)
            nursery.cancel_scope.cancel()

    trio.run(main)


async def _create(client: Client) -> None:
    created = await client.ask(ApiKey.CREATE_TOPICS, creation(TOPIC))
    assert created.topics[0].error_code == ErrorCode.NONE


async def _produce(client: Client, batch: bytes) -> None:
    """Append a batch. Kafka answers CreateTopics before the broker leads the new partition."""
    request = one_batch(TOPIC, batch)
    with trio.fail_after(60):
        while (code := await _append(client, request)) in NOT_YET:
            await trio.sleep(0.1)
    assert code == ErrorCode.NONE


async def _append(client: Client, request: ProduceRequest) -> int:
    answer = await client.ask(ApiKey.PRODUCE, request)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


async def _check_metadata(client: Client) -> bytes:
    """Return the id of the topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    metadata = await client.ask(ApiKey.METADATA, request)
    assert [broker.node_id for broker in metadata.brokers] == [1]
    [topic] = metadata.topics
    assert topic.partitions[0].leader_id == 1
    topic_id: bytes = topic.topic_id
    return topic_id


async def _check_offsets(client: Client) -> None:
    for timestamp, offset in ((EARLIEST_TIMESTAMP, 0), (LATEST_TIMESTAMP, BATCHES)):
        answer = await client.ask(ApiKey.LIST_OFFSETS, one_lookup(TOPIC, timestamp))
        assert answer.topics[0].partitions[0].offset == offset
    epoch = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    ends = await client.ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[epoch])]
        ),
    )
    assert ends.topics[0].partitions[0].end_offset == BATCHES


async def _check_fetch(client: Client, topic_id: bytes, batch: bytes) -> None:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=20 << 20)
    topic = FetchTopic(topic_id=topic_id, partitions=[asked])
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=20 << 20, session_epoch=-1, topics=[topic]
    )
    for _ in range(3):
        fetched = await client.ask(ApiKey.FETCH, request)
        records = fetched.responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        assert len(records) == BATCHES * len(batch)
        offsets = [header.base_offset for _, header in iter_batches(bytes(records))]
        assert offsets == list(range(BATCHES))
