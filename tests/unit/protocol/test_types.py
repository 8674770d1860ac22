"""Names and ids that every room shares."""

from random import Random

import pytest

from protocol.api_keys import ApiKey
from protocol.types import ZERO_UUID, TopicPartition, uuid_from_text, uuid_to_text


def test_a_partition_prints_as_kafka_does() -> None:
    assert str(TopicPartition("a-b", 3)) == "a-b-3"


def test_ids_as_text() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_from_text("dGVzdC10b3BpYy1pZC0wMQ") == b"test-topic-id-01"
    rng = Random(7)
    for _ in range(50):
        value = rng.randbytes(16)
        assert len(uuid_to_text(value)) == 22
        assert uuid_from_text(uuid_to_text(value)) == value


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 44, "ä" * 22, "!" + "A" * 22]
)
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(ValueError):
        uuid_from_text(text)


def test_api_keys_are_kafkas() -> None:
    assert (ApiKey.PRODUCE, ApiKey.API_VERSIONS, ApiKey.OFFSET_DELETE) == (0, 18, 47)
    assert (ApiKey.DESCRIBE_CLUSTER, ApiKey.LIST_TRANSACTIONS) == (60, 66)
