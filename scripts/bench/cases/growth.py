"""Cost against the size of the work: partitions per request, in a session, in Metadata; topics."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy
from frames import PRODUCE, batch_of, produce_frame
from load import check_reply
from sides import PATIENCE_S, Side, creation

from cases import Bench, Figures, Measure, case, per_request
from cases.requests import produce
from protocol.api_keys import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.wire_client import WireClient, request_frame

METADATA, FETCH = 12, 11
"""Versions."""
PER_TOPIC = 100
RECORD = 100
INDEXED = 5_000
"""Bytes of a record that has the next one in the index: more than index.interval.bytes."""


def asked_again(bench: Bench, side: Side, frames: Callable[[], bytes]) -> Figures:
    """Requests of one client at depth 1: a Python client's own cost is small beside these."""
    took: list[float] = []
    with WireClient(side.port, timeout_s=PATIENCE_S) as client:
        before, until = side.cpu_seconds(), time.perf_counter() + bench.seconds
        while time.perf_counter() < until or len(took) < 5:
            frame = frames()
            began = time.perf_counter()
            client.send(frame)
            client.receive_frame()
            took.append(time.perf_counter() - began)
        cpu = side.cpu_seconds() - before
    p50, p99 = numpy.percentile(took, [50, 99]) * 1000
    return {"p50 ms": p50, "p99 ms": p99, "CPU ms/request": cpu / len(took) * 1000}


def session(bench: Bench, side: Side, partitions: int) -> Iterator[Measure]:
    """An incremental fetch in a session of idle partitions."""
    with side.topics(1, partitions) as (topic,):

        def measure() -> Figures:
            ones = [
                FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                for index in range(partitions)
            ]
            first = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=0,
                topics=[FetchTopic(topic=topic, partitions=ones)],
            )
            answer = side.call(ApiKey.FETCH, FETCH, first)
            epochs = iter(range(1, 1 << 30))

            def following() -> bytes:
                request = FetchRequest(
                    max_wait_ms=0,
                    min_bytes=0,
                    session_id=answer.session_id,
                    session_epoch=next(epochs),
                    topics=[],
                )
                return request_frame(ApiKey.FETCH, FETCH, request)

            return asked_again(bench, side, following)

        yield measure


def metadata(bench: Bench, side: Side, partitions: int) -> Iterator[Measure]:
    """Metadata of all partitions by the names of their topics."""
    with side.topics(partitions // PER_TOPIC, PER_TOPIC) as names:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        frame = request_frame(ApiKey.METADATA, METADATA, request)
        answer = side.call(ApiKey.METADATA, METADATA, request)
        assert sum(len(topic.partitions) for topic in answer.topics) == partitions
        yield lambda: asked_again(bench, side, lambda: frame)


def topics_made(bench: Bench, side: Side, count: int) -> Iterator[Measure]:
    """Topics of two partitions, made in one request, written to, and deleted in another.

    Apache Kafka answers before the broker has logs for them, hence the second figure.
    """
    batch = batch_of(RECORD)

    def measure() -> Figures:
        names = [f"made-{time.time_ns()}-{number:04}" for number in range(count)]
        began = time.perf_counter()
        side.call(ApiKey.CREATE_TOPICS, 5, creation(names, 2))
        made = time.perf_counter()
        write_to_all(side, names, 2, batch)
        written = time.perf_counter()
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=PATIENCE_S * 1000)
        side.call(ApiKey.DELETE_TOPICS, 5, request)
        deleted = time.perf_counter()
        side.wait_for_partitions("made-", 0)
        return {
            "answered ms": (made - began) * 1000,
            "written ms": (written - began) * 1000,
            "deleted ms": (deleted - written) * 1000,
        }

    yield measure


def write_to_all(side: Side, names: Sequence[str], partitions: int, batch: bytes) -> None:
    """Write a record to each partition, again where it is refused as if there were none."""
    left = [(name, index) for name in names for index in range(partitions)]
    until = time.monotonic() + PATIENCE_S
    with WireClient(side.port, timeout_s=PATIENCE_S) as client:
        while left:
            by_topic: dict[str, list[PartitionProduceData]] = {}
            for name, index in left:
                data = PartitionProduceData(index=index, records=batch)
                by_topic.setdefault(name, []).append(data)
            request = ProduceRequest(
                acks=-1,
                timeout_ms=PATIENCE_S * 1000,
                topic_data=[
                    TopicProduceData(name=n, partition_data=d) for n, d in by_topic.items()
                ],
            )
            left = [
                (topic.name, partition.index)
                for topic in client.call(ApiKey.PRODUCE, PRODUCE, request).responses
                for partition in topic.partition_responses
                if partition.error_code
            ]
            if left and time.monotonic() > until:
                raise RuntimeError(f"{len(left)} partitions cannot be written to, {left[0]} first")


@contextmanager
def indexed_topic(side: Side, partitions: int) -> Iterator[str]:
    """A topic whose indexes have entries.

    The first entries in a thousand indexes take Kafka seconds, once in the life of a segment.
    """
    with side.topics(1, partitions) as (topic,):
        for _ in range(2):
            write_to_all(side, [topic], partitions, batch_of(INDEXED))
        yield topic


def produce_to_many(bench: Bench, side: Side, partitions: int) -> Iterator[Measure]:
    """Produce requests of one record for each of very many partitions, acks=all."""
    with indexed_topic(side, partitions) as topic:

        def measure() -> Figures:
            told = bench.load(side, [produce_frame(topic, range(partitions), batch_of(RECORD))], 1)
            check_reply(told, ApiKey.PRODUCE, PRODUCE)
            return per_request(told)

        yield measure


def many_partitions(bench: Bench, side: Side, partitions: int, producers: int) -> Iterator[Measure]:
    """Producers with a share of the partitions each: batches of 1 KB, two requests in flight."""
    share = partitions // producers
    with indexed_topic(side, partitions) as topic:
        batch = batch_of(1000)
        frames = [
            produce_frame(topic, range(number * share, (number + 1) * share), batch)
            for number in range(producers)
        ]

        def measure() -> Figures:
            told = bench.load(side, frames, producers, 2)
            check_reply(told, ApiKey.PRODUCE, PRODUCE)
            batches = told["requests"] * share
            return {
                "batches/s": batches / told["seconds"],
                "CPU us/batch": told["broker_cpu"] / batches * 1e6,
                "p99 ms": told["ms_p99"],
            }

        yield measure


CASES = {
    **{f"growth/produce to {n} partitions": case(produce, 1, 1, n, RECORD) for n in (10, 100)},
    "growth/produce to 1000 partitions": case(produce_to_many, 1000),
    "growth/1000 partitions, 10 producers": case(many_partitions, 1000, 10),
    "growth/session of 1000 idle partitions": case(session, 1000),
    **{
        f"growth/metadata of {n} partitions": case(metadata, n, quick=n == 2000)
        for n in (100, 2000, 10_000)
    },
    **{f"growth/{n} topics made": case(topics_made, n, quick=n == 10) for n in (10, 300)},
}
