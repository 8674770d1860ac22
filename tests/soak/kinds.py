"""The kinds of clients. Each is a function that does one piece of what such a client does.

A piece takes a second or so on a busy machine. It raises whatever goes wrong, and OSError (a
timeout) if the broker does not answer.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import ProduceRequest
from tests.support.heavy_batches import of_each_kind
from tests.support.produce_requests import one_batch
from tests.support.socket_reset import reset_socket
from tests.support.wire_client import WireClient, read_response, request_frame

PATIENCE_S: Final = 120
TOPIC: Final = "soak"
ZSTD_TOPIC: Final = "soak-zstd"
"""The topic of zstd alone, because old versions of Fetch refuse that codec."""
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 9, 11, 5, 8
MANY_TOPICS: Final = 20_000
MOST_WAIT_MS: Final = 500
LATEST, EARLIEST = -1, -2

Step = Callable[[int], None]
"""Takes the broker's port."""


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass
class Batches:
    """One batch of each kind, dated when the soak began."""

    by_kind: dict[str, bytes]

    def produce(self, kind: str, acks: int = 1) -> ProduceRequest:
        return one_batch(TOPIC, self.by_kind[kind], acks=acks)


BATCHES: Final = Batches(of_each_kind(now_ms()))


def client(port: int) -> WireClient:
    return WireClient(port, timeout_s=PATIENCE_S)


def check_produced(answer: Any) -> None:
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.NONE, ErrorCode(code).name


def offset_of(port: int, timestamp: int) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=TOPIC, partitions=[partition])]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    with client(port) as asking:
        answer = asking.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS, request)
    found = answer.topics[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code).name
    offset: int = found.offset
    return offset


def produces(kind: str) -> Step:
    """Return a step that appends some batches of a kind, one after the other."""

    def step(port: int) -> None:
        with client(port) as one:
            for _ in range(5):
                check_produced(one.call(ApiKey.PRODUCE, PRODUCE, BATCHES.produce(kind)))

    return step


def frame(kind: str, acks: int) -> bytes:
    return request_frame(ApiKey.PRODUCE, PRODUCE, BATCHES.produce(kind, acks))


def reset(one: WireClient) -> None:
    reset_socket(one.socket)


def sends_and_goes(
    kind: str, acks: int, leave: Callable[[WireClient], None], every_s: float
) -> Step:
    """Return a step that sends a batch and leaves without having read a reply."""

    def step(port: int) -> None:
        one = client(port)
        with suppress(ConnectionError):  # muted for long, or closed by its own end
            one.send(frame(kind, acks))
        leave(one)
        time.sleep(every_s)

    return step


def sends_no_more(port: int) -> None:
    """Asks for one append after the other, closes its half, and gets every answer."""
    kinds = list(BATCHES.by_kind)
    with client(port) as one:
        for kind in kinds:
            one.send(frame(kind, 1))
        one.socket.shutdown(socket.SHUT_WR)
        for _ in kinds:
            check_produced(read_response(ApiKey.PRODUCE, PRODUCE, one.receive_frame())[1])
        assert one.closed_by_peer(PATIENCE_S)


def fetch_request(offset: int, min_bytes: int = 1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
    return FetchRequest(
        topics=topics, min_bytes=min_bytes, max_bytes=1 << 20, max_wait_ms=MOST_WAIT_MS
    )


def fetches(version: int) -> Step:
    """Return a step that reads near the end of the log, in this version of Fetch."""

    def step(port: int) -> None:
        with client(port) as one:
            for _ in range(3):
                answer = one.call(ApiKey.FETCH, version, near_the_end(port))
                code = answer.responses[0].partitions[0].error_code
                assert code == ErrorCode.NONE, ErrorCode(code).name

    return step


def parks(leave: Callable[[WireClient], None]) -> Step:
    """Return a step that waits for more bytes than come, and leaves meanwhile."""

    def step(port: int) -> None:
        one = client(port)
        one.send(
            request_frame(ApiKey.FETCH, FETCH, fetch_request(offset_of(port, LATEST), 1 << 30))
        )
        time.sleep(0.05)
        leave(one)

    return step


def asks_and_resets(key: ApiKey, version: int, request: Callable[[int], Any]) -> Step:
    """Return a step that resets the connection while the broker works on its request."""

    def step(port: int) -> None:
        asked = request_frame(key, version, request(port))
        for milliseconds in (0, 1, 5, 20):
            one = client(port)
            one.send(asked)
            time.sleep(milliseconds / 1000)
            reset(one)

    return step


def reads_nothing(port: int) -> None:
    """Asks for up to hundreds of fetches and an append behind them, and reads none for seconds.

    A child opens the appends. The counts differ, because replies fill the socket at one of them.
    """
    offset = offset_of(port, EARLIEST)
    request = request_frame(ApiKey.FETCH, FETCH, fetch_request(offset))
    ones = [client(port) for _ in range(20)]
    for at, one in enumerate(ones):
        one.socket.settimeout(0.1)
        with suppress(TimeoutError):
            one.send(request * 10 * (at + 1) + frame("opened in a child", 1))
    time.sleep(3)
    for one in ones:
        one.close()


def asks_for_a_time(port: int) -> None:
    """Asks for the offset of a time, which is searched in compressed batches."""
    offset_of(port, now_ms() - 1000)


def about_many_topics(port: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"none-{number}") for number in range(MANY_TOPICS)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def near_the_end(port: int) -> FetchRequest:
    return fetch_request(max(offset_of(port, LATEST) - 20_000, offset_of(port, EARLIEST)))


def asks_for_many_topics(port: int) -> None:
    """Sends a large request, which has a large reply."""
    request = about_many_topics(port)
    with client(port) as one:
        answer = one.call(ApiKey.METADATA, METADATA, request)
    assert len(answer.topics) == MANY_TOPICS


def makes_and_deletes_topics(port: int) -> None:
    """Creates twenty topics at once, and deletes them."""
    names = [f"passing-{uuid4()}" for _ in range(20)]
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    with client(port) as one:
        made = one.call(
            ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=60_000)
        )
        assert {topic.error_code for topic in made.topics} == {ErrorCode.NONE}
        gone = one.call(
            ApiKey.DELETE_TOPICS, 4, DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)
        )
        assert {topic.error_code for topic in gone.responses} == {ErrorCode.NONE}


def librdkafka(port: int, **settings: Any) -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, **settings}


def _raise(error: KafkaError | None, _: Any) -> None:
    if error is not None:
        raise KafkaException(error)


def librdkafka_produces(codec: str, topic: str = TOPIC) -> Step:
    """Return a step with a producer of default settings but for `linger.ms`."""

    def step(port: int) -> None:
        producer = Producer(librdkafka(port, **{"linger.ms": 200, "compression.type": codec}))
        for number in range(5_000):
            producer.produce(topic, b"%060d" % number, on_delivery=_raise)
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0

    return step


def transacts(port: int) -> None:
    """Commits one transaction and aborts another."""
    producer = Producer(librdkafka(port, **{"transactional.id": f"soak-{uuid4()}"}))
    producer.init_transactions(PATIENCE_S)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for number in range(100):
            producer.produce(TOPIC, b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        ends(PATIENCE_S)


def joins_a_group(port: int) -> None:
    """A consumer that joins others, reads, commits and leaves."""
    settings = {"group.id": "soak", "auto.offset.reset": "latest", "enable.auto.commit": False}
    consumer = Consumer(librdkafka(port, **settings))
    try:
        consumer.subscribe([TOPIC])
        until = time.monotonic() + PATIENCE_S
        while not consumer.assignment():
            assert time.monotonic() < until, "no assignment"
            consumer.poll(0.1)
        consumer.consume(100, 1)
        with suppress(KafkaException):  # nothing to commit, or others have joined
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()


KINDS: Final[dict[str, Step]] = {
    **{f"produce {kind}": produces(kind) for kind in BATCHES.by_kind},
    **{
        f"send {kind}, acks={acks}, {name}": sends_and_goes(kind, acks, leave, every_s)
        for kind, every_s in (("in a thread", 0.1), ("opened in a child", 3))
        for acks in (0, 1)
        for name, leave in (("close", WireClient.close), ("reset", reset))
    },
    "half-closed": sends_no_more,
    "fetch": fetches(FETCH),
    "fetch of format 1": fetches(2),
    "fetch of format 0": fetches(1),
    "parked, close": parks(WireClient.close),
    "parked, reset": parks(reset),
    "fetch of format 1, reset": asks_and_resets(ApiKey.FETCH, 2, near_the_end),
    "large metadata, reset": asks_and_resets(ApiKey.METADATA, METADATA, about_many_topics),
    "reads nothing": reads_nothing,
    "offset of a time": asks_for_a_time,
    "large metadata": asks_for_many_topics,
    "topics": makes_and_deletes_topics,
    "librdkafka": librdkafka_produces("none"),
    "librdkafka, gzip": librdkafka_produces("gzip"),
    "librdkafka, zstd": librdkafka_produces("zstd", ZSTD_TOPIC),
    "transactions": transacts,
    "group": joins_a_group,
}
