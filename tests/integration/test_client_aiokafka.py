"""aiokafka, unmodified and with its default settings."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

RECORDS = [(f"k{i}".encode(), f"value {i} ".encode() * 20) for i in range(200)]


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_produces_and_consumes_every_codec(
    bootstrap: str, topic: str, group: str, codec: str | None, idempotent: bool
) -> None:
    async def scenario() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=idempotent
        ) as producer:
            sent = [await producer.send(topic, key=k, value=v) for k, v in RECORDS]
            acks = await asyncio.gather(*sent)
            assert [a.offset for a in acks] == list(range(len(RECORDS)))
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        ) as consumer:
            got = [await asyncio.wait_for(consumer.getone(), 20) for _ in RECORDS]
            assert [(m.key, m.value) for m in got] == RECORDS

    asyncio.run(scenario())


def test_two_members_share_a_topic(bootstrap: str, topic: str, group: str) -> None:
    async def scenario() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 4, 1)])
        await admin.close()
        settings = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
        }
        async with (
            AIOKafkaConsumer(topic, **settings) as one,
            AIOKafkaConsumer(topic, **settings) as two,
        ):
            for _ in range(200):
                await asyncio.gather(one.getmany(timeout_ms=100), two.getmany(timeout_ms=100))
                if len(one.assignment()) == len(two.assignment()) == 2:
                    break
            assert {p.partition for p in one.assignment() | two.assignment()} == {0, 1, 2, 3}
            assert len(one.assignment()) == len(two.assignment()) == 2
            await one.commit(dict.fromkeys(one.assignment(), 0))

    asyncio.run(scenario())
