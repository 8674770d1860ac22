"""The replication room and its handlers over real logs on an in-memory disk."""

from random import Random

from broker.api.list_offsets import ListOffsetsHandler
from broker.api.produce import ProduceHandler
from broker.coordinator.transaction.gate import TransactionGate
from broker.replication.fetch_session import FetchSessionCache
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.batch import iter_batches
from protocol.records.record import iter_records
from storage.log.looking import look_here
from storage.waits import at_once
from tests.support.begun import begin, slept
from tests.support.broker_bench import Bench, context, fetch_handler, with_bytes
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock
from tests.support.produce_requests import one_batch
from tests.support.transaction_harness import TransactionHarness


class RealBench(Bench):
    """Sends requests of plain values; every message passes the codec of its version."""

    def __init__(self, log_dirs="/a", fs=None):
        self.fs = fs or FaultyFileSystem()
        clock = ManualClock()
        config = BrokerConfig.parse({"log.dirs": log_dirs, "broker.id": "1"})
        logs = log_manager(
            config,
            clock,
            self.fs,
            on_offline=lambda path: self.replicas.directory_offline(path),
        )
        logs.startup(lambda _: TopicConfig())
        super().__init__(logs, clock)
        self.produce_handler = ProduceHandler(
            self.replicas, TransactionGate(TransactionHarness().coordinator)
        )
        self.sessions = FetchSessionCache(self.clock, 1000, random=Random(1))
        self.fetch_handler = fetch_handler(self.replicas, self.sessions, self.clock)
        self.list_handler = ListOffsetsHandler(self.replicas, look_here)

    def produce(self, records, version=9, **how):
        """Return the partition's response, made without threads; the work if it waits."""
        begun = begin(self._produce(records, version, **how))
        return produced(begun.reply, version) if begun.done else begun

    async def wait_produced(self, records, version=9, **how):
        """Return the partition's response; big batches are written in a thread."""
        driver = Driver(MachineWorkers(), self.clock)
        return produced(await driver.run(self._produce(records, version, **how)), version)

    def _produce(self, records, version, *, topic="t", index=0, acks=-1):
        message = one_batch(topic, records, partition=index, acks=acks, timeout_ms=1000)
        codec = ProduceRequest.codec(version)
        request = codec.parse(bytearray(codec.build(message)))
        return self.produce_handler(context(version), request)

    def fetch(
        self,
        offset,
        version=12,
        *,
        topic="t",
        index=0,
        max_bytes=1 << 20,
        last_fetched_epoch=-1,
        **fields,
    ):
        """Return the partition's response with `records` as bytes; a `Begun` if it waits."""
        asked = FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            last_fetched_epoch=last_fetched_epoch,
        )
        message = FetchRequest(
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields},
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        codec = FetchRequest.codec(version)
        work = self.fetch_handler(context(version), codec.parse(codec.build(message)))
        begun = slept(begin(work), self.advance)
        return fetched(begun.reply, version) if begun.done else begun

    def values(self, offset, *args, **kwargs):
        """Return (offset, value) of the records that a consumer gets after a seek to `offset`."""
        data = self.fetch(offset, *args, **kwargs).records
        return [
            (record.offset, bytes(record.value))
            for record in records_of(data)
            if record.offset >= offset
        ]

    def offset_for(self, timestamp, version=7, *, topic="t", **fields):
        """Return ListOffsets' (error, timestamp, offset)."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        message = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])], **fields
        )
        response = at_once(self.list_handler(context(version), message))
        told = response.topics[0].partitions[0]
        return told.error_code, told.timestamp, told.offset


def produced(reply, version=9):
    """Return the one partition of a produce response, through the codec."""
    codec = ProduceResponse.codec(version)
    return codec.parse(codec.build(reply)).responses[0].partition_responses[0]


def fetched(reply, version=12):
    """Return the one partition of a fetch response, through the codec, with file slices read."""
    codec = FetchResponse.codec(version)
    return codec.parse(codec.build(with_bytes(reply))).responses[0].partitions[0]


def records_of(data):
    """Return all records of all whole batches."""
    return [record for at, _ in iter_batches(data) for record in iter_records(data, at)]
