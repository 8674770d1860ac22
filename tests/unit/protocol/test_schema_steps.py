"""Messages of many elements: step by step, and never more than a few at a stretch."""

from itertools import pairwise
from typing import Any

import pytest

from protocol.errors import ProtocolError
from protocol.framing import parse_request_header
from protocol.schema import Api, Array, Bytes, Encoded, Group, Int32, Str, Uuid, V
from protocol.schema.lazy import Chained, Lazy
from protocol.schema.parse_code import MAX_ELEMENTS, SMALL_ELEMENTS, ManyElements
from protocol.schema.source import NUMBERS_PER_STEP
from protocol.schema.wire import MAX_TAGGED_FIELDS, uvarint

Topic = Group("Topic", "name" / V("0+", Str), "partitions" / V("0+", Array(Int32)))
Message = Api(
    1,
    "Message",
    "0-1",
    "1+",
    "topics" / V("0+", Array(Topic)),
    "ids" / V("0+", Array(Uuid)),
    "blob" / V("0+", Bytes),
)


def message(topics: int, partitions: int = 0, ids: int = 0) -> Any:
    return Message(
        topics=[Topic(name=f"t{n}", partitions=list(range(partitions))) for n in range(topics)],
        ids=[bytes((n % 256,)) * 16 for n in range(ids)],
        blob=b"abc",
    )


def steps_of(version: int, data: bytes, *most: int) -> list[Any]:
    return list(Message.codec(version).parse_steps(data, memoryview(data), 0, len(data), *most))


@pytest.mark.parametrize("version", [0, 1])
def test_few_elements_are_parsed_in_one_go_and_many_are_not(version: int) -> None:
    codec = Message.codec(version)
    for topics, partitions, ids in ((SMALL_ELEMENTS, 0, 0), (1, SMALL_ELEMENTS - 1, 0)):
        value = message(topics, partitions, ids)
        data = codec.build(value)
        assert codec.parse_small_at(data, memoryview(data), 0, len(data)) == (value, len(data))
    for topics, partitions, ids in ((SMALL_ELEMENTS + 1, 0, 0), (10, 100, 0), (0, 0, 1_001)):
        value = message(topics, partitions, ids)
        data = codec.build(value)
        with pytest.raises(ManyElements):
            codec.parse_small_at(data, memoryview(data), 0, len(data))
        *none, (parsed, end, elements) = steps_of(version, data)
        assert (parsed, end) == (value, len(data))
        assert elements == topics * (1 + partitions) + ids
        assert not any(none)


def test_a_step_is_an_element_or_few_thousand_numbers() -> None:
    data = Message.codec(1).build(message(3, NUMBERS_PER_STEP * 2 + 1))
    assert len(steps_of(1, data)) == 3 * (3 + 1) + 1
    pieces: list[Any] = []
    counts = [len(pieces) for _ in Message.codec(1).build_steps(message(300), pieces.append)]
    assert max(after - before for before, after in pairwise(counts)) <= 4


def test_elements_are_limited_by_who_asks_and_in_any_case() -> None:
    data = Message.codec(0).build(message(2_000))
    assert steps_of(0, data, 2_000)
    with pytest.raises(ProtocolError, match="more elements than a message may have"):
        steps_of(0, data, 1_999)
    many = (MAX_ELEMENTS + 1).to_bytes(4, "big") + bytes(6 * (MAX_ELEMENTS + 1))
    with pytest.raises(ProtocolError, match="more elements than a message may have"):
        steps_of(0, many)


def test_tagged_fields_are_elements_and_few() -> None:
    codec = Message.codec(1)
    plain = codec.build(message(0))
    assert plain.endswith(b"\0")
    allowed = plain[:-1] + uvarint(MAX_TAGGED_FIELDS) + b"\x09\0" * MAX_TAGGED_FIELDS
    assert codec.parse(allowed) == message(0)
    assert steps_of(1, allowed)[-1][2] == MAX_TAGGED_FIELDS
    refused = plain[:-1] + uvarint(MAX_TAGGED_FIELDS + 1) + b"\x09\0" * (MAX_TAGGED_FIELDS + 1)
    with pytest.raises(ProtocolError, match="more tagged fields"):
        codec.parse(refused)


def test_the_tagged_fields_of_a_header_are_few() -> None:
    tail = uvarint(MAX_TAGGED_FIELDS + 1) + b"\x09\0" * (MAX_TAGGED_FIELDS + 1)
    frame = b"\0\x03\0\x0c\0\0\0\x01\xff\xff" + tail
    with pytest.raises(ProtocolError, match="more tagged fields"):
        parse_request_header(frame, memoryview(frame), 0, len(frame))


def test_elements_may_be_made_while_they_are_written() -> None:
    made: list[int] = []

    def make(number: int) -> Any:
        made.append(number)
        return Topic(name=f"t{number}", partitions=[])

    steps = Message.codec(1).build_steps(Message(topics=Lazy(range(3), make)), bytearray().extend)
    seen = [list(made) for _ in steps]
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_lazy_and_plain_arrays_are_the_same_bytes() -> None:
    plain = message(5, 3, 2)
    lazy = Message(
        topics=Chained(Lazy(plain.topics[:2], lambda one: one), plain.topics[2:]),
        ids=Lazy(plain.ids, lambda one: one),
        blob=b"abc",
    )
    out = bytearray()
    for _ in Message.codec(1).build_steps(lazy, out.extend):
        pass
    assert out == Message.codec(1).build(plain) == Message.codec(1).build(lazy)


Parts = Api(
    2, "Parts", "0-1", "1+", "topics" / V("0+", Array(Topic, may_be_encoded=True), nullable="0+")
)


@pytest.mark.parametrize("version", [0, 1])
def test_encoded_elements_are_the_same_bytes(version: int) -> None:
    plain = message(3, 2).topics
    codec = Parts.element_codec("topics", version)
    mixed = Parts(topics=[Encoded(codec.build(plain[0])), plain[1], Encoded(codec.build(plain[2]))])
    wanted = Parts.codec(version).build(Parts(topics=plain))
    out = bytearray()
    for _ in Parts.codec(version).build_steps(mixed, out.extend):
        pass
    interpreted = Parts.at(version).build(mixed)
    assert wanted == Parts.codec(version).build(mixed) == out == interpreted
