"""Every client library feeds one broker: each codec, idempotent or not, committed and aborted.

    fed = feed(broker.bootstrap)
    fed.records["confluent-0"]       # (offset, key, value) as acknowledged, in order of offsets

Each client has a topic, with segments so small that many roll. The Java console producer does not
report offsets: its records are all those of its topic, in order.
"""

import asyncio
import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from tests.support.kafka_jars import java

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CLIENTS = ("kafka-python", "confluent", "aiokafka", "java")
GROUP = "readers"
LETTERS = string.ascii_letters + string.digits
BATCH = 40
"""Records of each kind."""
TOPIC_CONFIG = {"segment.bytes": "16384", "index.interval.bytes": "500", "retention.ms": "-1"}
PATIENCE_S = 30

Acked = tuple[int, bytes, bytes]


@dataclass
class Fed:
    """The acknowledgements of the broker to the clients."""

    records: dict[str, list[Acked]] = field(default_factory=dict)
    """(offset, key, value) by partition, including aborted records, which are in the log too."""
    aborted: dict[str, int] = field(default_factory=dict)
    """Number of aborted transactions by partition."""
    committed: dict[str, int] = field(default_factory=dict)
    """The group's committed offset by partition."""
    transactional_ids: set[str] = field(default_factory=set)


def feed(bootstrap: str) -> Fed:
    """Run all clients, one after the other."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wishes = [NewTopic(name, 1, 1, config=TOPIC_CONFIG) for name in CLIENTS]
    for future in admin.create_topics(wishes).values():
        future.result(PATIENCE_S)
    fed = Fed()
    by_client: dict[str, Callable[[str], list[Acked]]] = {
        "kafka-python": _kafka_python,
        "confluent": _confluent,
        "aiokafka": lambda server: asyncio.run(_aiokafka(server)),
        "java": _java,
    }
    for name, send in by_client.items():
        fed.records[f"{name}-0"] = sorted(send(bootstrap))
        fed.aborted[f"{name}-0"] = 0 if name == "java" else len(CODECS)
        if name != "java":
            fed.transactional_ids.add(f"id-{name}")
    fed.committed = _commit(bootstrap, fed)
    return fed


def _rows(mark: str) -> list[tuple[bytes, bytes]]:
    """Return keys and values that hardly compress, the same at each call."""
    chance = random.Random(mark)
    return [
        (f"{mark}-{index}".encode(), "".join(chance.choices(LETTERS, k=20 + index * 12)).encode())
        for index in range(BATCH)
    ]


def _kafka_python(bootstrap: str) -> list[Acked]:
    acked: list[Acked] = []

    def send(producer: KafkaProducer, mark: str) -> None:
        rows = _rows(mark)
        sent = [producer.send("kafka-python", key=key, value=value) for key, value in rows]
        producer.flush(PATIENCE_S)
        offsets = [future.get(PATIENCE_S).offset for future in sent]
        acked.extend((at, key, value) for at, (key, value) in zip(offsets, rows, strict=True))

    for codec in CODECS:
        own = {"compression_type": None if codec == "none" else codec, "batch_size": 2000}
        for idempotent in (False, True):
            producer = KafkaProducer(
                bootstrap_servers=bootstrap, enable_idempotence=idempotent, **own
            )
            send(producer, f"{codec}-{idempotent}")
            producer.close()
        producer = KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id="id-kafka-python", **own
        )
        producer.init_transactions()
        for outcome in ("commit", "abort"):
            producer.begin_transaction()
            send(producer, f"{codec}-{outcome}")
            getattr(producer, f"{outcome}_transaction")()
        producer.close()
    return acked


def _confluent(bootstrap: str) -> list[Acked]:
    acked: list[Acked] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acked.append((message.offset(), message.key(), message.value()))

    def send(producer: Producer, mark: str) -> None:
        for key, value in _rows(mark):
            producer.produce("confluent", key=key, value=value, on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0

    for codec in CODECS:
        own = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "batch.num.messages": 9,
            "linger.ms": 5,
            "log_level": 0,
        }
        for idempotent in (False, True):
            send(Producer({**own, "enable.idempotence": idempotent}), f"{codec}-{idempotent}")
        producer = Producer({**own, "transactional.id": "id-confluent"})
        producer.init_transactions(PATIENCE_S)
        for outcome in ("commit", "abort"):
            producer.begin_transaction()
            send(producer, f"{codec}-{outcome}")
            getattr(producer, f"{outcome}_transaction")(PATIENCE_S)
    return acked


async def _aiokafka(bootstrap: str) -> list[Acked]:
    acked: list[Acked] = []

    async def send(producer: AIOKafkaProducer, mark: str) -> None:
        rows = _rows(mark)
        sent = [await producer.send("aiokafka", key=key, value=value) for key, value in rows]
        told = await asyncio.wait_for(asyncio.gather(*sent), PATIENCE_S)
        pairs = zip(told, rows, strict=True)
        acked.extend((one.offset, key, value) for one, (key, value) in pairs)

    for codec in CODECS:
        own = {
            "bootstrap_servers": bootstrap,
            "compression_type": None if codec == "none" else codec,
            "max_batch_size": 2000,
        }
        for idempotent in (False, True):
            async with AIOKafkaProducer(enable_idempotence=idempotent, **own) as producer:
                await send(producer, f"{codec}-{idempotent}")
        async with AIOKafkaProducer(transactional_id="id-aiokafka", **own) as producer:
            for outcome in ("commit", "abort"):
                await producer.begin_transaction()
                await send(producer, f"{codec}-{outcome}")
                await getattr(producer, f"{outcome}_transaction")()
    return acked


def _java(bootstrap: str) -> list[Acked]:
    rows: list[tuple[bytes, bytes]] = []
    for codec in CODECS:
        for idempotent in ("false", "true"):
            own = _rows(f"{codec}-{idempotent}")
            java(
                "org.apache.kafka.tools.ConsoleProducer",
                *("--bootstrap-server", bootstrap, "--topic", "java"),
                *("--compression-codec", codec, "--max-partition-memory-bytes", "2000"),
                *("--command-property", f"enable.idempotence={idempotent}"),
                *("--reader-property", "parse.key=true"),
                stdin="".join(f"{key.decode()}\t{value.decode()}\n" for key, value in own),
            )
            rows += own
    return [(at, key, value) for at, (key, value) in enumerate(rows)]


def _commit(bootstrap: str, fed: Fed) -> dict[str, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    offsets = {name: rows[len(rows) // 2][0] for name, rows in fed.records.items()}
    wanted = [TopicPartition(name.removesuffix("-0"), 0, at) for name, at in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()
    return offsets
