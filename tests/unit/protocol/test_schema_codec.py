"""The promises of `protocol.schema`, on small declarations."""

import copy
import io
import struct
import tracemalloc
from typing import Any

import pytest
from construct import StreamError

from protocol.errors import ProtocolError
from protocol.schema import (
    Api,
    Array,
    Bool,
    Bytes,
    Float64,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Str,
    UInt16,
    UInt32,
    Uuid,
    V,
)
from protocol.schema.parse_code import MAX_ELEMENTS
from protocol.schema.wire import read_uvarint, uvarint

Leader = Group(
    "Leader",
    "leader_id" / V("0+", Int32, default=-1),
    "epoch" / V("0+", Int32, default=-1),
)
Everything = Api(
    None,
    "Everything",
    "0-3",
    "2+",
    "flag" / V("0+", Bool),
    "small" / V("0+", Int8),
    "port" / V("0+", UInt16),
    "count" / V("0+", UInt32),
    "ratio" / V("0+", Float64),
    "topic_id" / V("0+", Uuid),
    "name" / V("0+", Str, nullable="1+"),
    "blob" / V("0+", Bytes),
    "records" / V("0+", Records, nullable="0+"),
    "ids" / V("0+", Array(Uuid)),
    "flags" / V("0+", Array(Bool)),
    "numbers" / V("0+", Array(Int64), nullable="1+"),
    "leaders" / V("0+", Array(Leader)),
    "maybe" / V("1+", Leader, nullable="1+"),
    "old" / V("0-1", Int16, default=7),
    "text" / V("2+", Str, nullable="2+", default="x", tag=0),
    "leader" / V("2+", Leader, tag=1),
    "list" / V("2+", Array(Int32), nullable="2+", tag=2),
    "late" / V("1+", Int64, default=-1, tag=5, tagged="3+"),
)


def full() -> Any:
    return Everything(
        flag=True,
        small=-1,
        port=65535,
        count=1 << 31,
        ratio=0.5,
        topic_id=b"i" * 16,
        name="n",
        blob=b"bb",
        records=b"rrr",
        ids=[b"j" * 16],
        flags=[True, False],
        numbers=[1, -1],
        leaders=[Leader(leader_id=1), Leader()],
        maybe=Leader(epoch=2),
    )


def interpreted(version: int, value: Any) -> bytes:
    stream = io.BytesIO()
    Everything.at(version).build_stream(value, stream)
    return stream.getvalue()


@pytest.mark.parametrize("version", Everything.versions)
def test_every_type_goes_round_and_agrees_with_the_construct(version: int) -> None:
    value, codec = full(), Everything.codec(version)
    if version == 0:
        value.maybe = None
    data = codec.build(value)
    assert data == interpreted(version, value)
    assert codec.parse(data) == value
    assert Everything.at(version).parse(data) == value


def test_a_field_that_a_version_lacks_reads_as_its_default() -> None:
    value = full()
    value.old = 3
    value.maybe = None
    assert Everything.codec(1).parse(Everything.codec(1).build(value)).old == 3
    assert Everything.codec(2).parse(Everything.codec(2).build(value)).old == 7


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("text", None),
        ("text", ""),
        ("list", None),
        ("list", [4]),
        ("leader", Leader(leader_id=4)),
        ("late", 0),
    ],
)
def test_a_tagged_field_that_is_not_its_default_is_written(field: str, content: Any) -> None:
    value, codec = full(), Everything.codec(3)
    without = codec.build(value)
    setattr(value, field, content)
    data = codec.build(value)
    assert len(data) > len(without)
    assert data == interpreted(3, value)
    assert getattr(codec.parse(data), field) == content


@pytest.mark.parametrize(
    ("field", "content"),
    [("text", "x"), ("list", []), ("list", ()), ("leader", Leader()), ("late", -1)],
)
def test_a_tagged_field_that_equals_its_default_is_left_out(field: str, content: Any) -> None:
    value, codec = full(), Everything.codec(3)
    without = codec.build(value)
    setattr(value, field, content)
    assert codec.build(value) == without == interpreted(3, value)


def test_a_shared_default_refuses_to_be_changed() -> None:
    value = Everything()
    with pytest.raises(AttributeError, match="shared default"):
        value.leader.epoch = 3
    assert value.leader == Leader()
    assert Leader() == value.leader
    value.leader = Leader(epoch=3)
    assert value.leader.epoch == 3
    assert Everything().leader.epoch == -1


def test_values_say_what_they_are() -> None:
    assert repr(Leader(epoch=4)) == "Leader(leader_id=-1, epoch=4)"
    assert Leader(epoch=4) != Leader()
    assert Leader() != "Leader"
    assert Everything(ids=[]) == Everything()
    with pytest.raises(TypeError, match="'epok'"):
        Leader(epok=4)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Leader())


def test_bytes_and_records_are_slices_of_the_buffer() -> None:
    data = bytearray(Everything.codec(3).build(full()))
    value, _ = Everything.codec(3).parse_at(data, memoryview(data), 0, len(data))
    value.records[0] = ord("R")
    assert b"Rrr" in data
    assert value.blob.obj is data
    assert "<2 bytes>" in repr(value)


def test_records_of_any_kind_are_passed_on_as_they_are() -> None:
    class FileSlice:
        def __len__(self) -> int:
            return 300

    piece, pieces = FileSlice(), []
    value = full()
    value.records = piece
    Everything.codec(3).build_into(value, pieces.append)
    assert piece in pieces
    at = pieces.index(piece)
    assert pieces[at - 1] == b"\xad\x02"  # 301 as a varint


def test_an_unknown_tag_is_skipped_and_known_ones_must_fit() -> None:
    codec = Everything.codec(3)
    body = codec.build(full())
    assert body.endswith(b"\0")
    assert codec.parse(body[:-1] + b"\x01\x63\x02zz") == full()
    assert codec.parse(body[:-1] + b"\x01\xff\xff\xff\xff\x07\x00") == full()
    for tail in (
        b"\x01\x05\x04\0\0\0\1",  # an int64 of four bytes
        b"\x01\x05\x09" + bytes(9),  # one of nine
        b"\x01\x63\x05zz",  # an unknown one that is longer than the frame
        b"\xff\xff\xff\xff\x07",  # two thousand million of them
        b"\xff\xff\xff\xff\xff\x01\0",  # a varint of six bytes
        b"\xff\xff\xff\xff\x0f",  # a varint of 32 bits
    ):
        with pytest.raises(ProtocolError):
            codec.parse(body[:-1] + tail)
        with pytest.raises((StreamError, ValueError)):
            Everything.at(3).parse_tail(io.BytesIO(body[:-1] + tail), "")


Names = Api(None, "Names", "0-1", "1+", "names" / V("0+", Array(Str)))
Empty = Group("Empty")
Empties = Api(None, "Empties", "0-1", "1+", "empties" / V("0+", Array(Empty)))


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, b"\xff\xff\xff\xff"),  # null array
        (0, b"\x80\0\0\0"),
        (0, b"\x7f\xff\xff\xff"),
        (0, b"\0\0\0\1\xff\xff"),  # null string
        (0, b"\0\0\0\1\x80\0"),
        (0, b"\0\0\0\1\0\2\xc3\x28"),  # no UTF-8
        (0, b"\0\0\0\2\0\1a"),
        (1, b"\0\0"),
        (1, b"\x02\0\0"),
        (1, b"\x02\x03\xc3\x28\0"),
        (1, b"\x02\x81\x80\x02" + bytes(40_000) + b"\0"),  # longer than a string may be
        (1, b"\xff\xff\xff\xff\xff\xff\xff"),
        (1, b"\x02\x02a"),  # no tagged fields
        (1, b""),
    ],
)
def test_malformed_strings_and_counts(version: int, data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Names.codec(version).parse(data)


@pytest.mark.parametrize("size", [126, 127, 128, 32767])
def test_long_strings(size: int) -> None:
    for version in Names.versions:
        codec, value = Names.codec(version), Names(names=["x" * size])
        assert codec.parse(codec.build(value)) == value


Lengths = Api(
    None,
    "Lengths",
    "0-1",
    "1+",
    "before" / V("0+", Int16),  # read together with the length that follows
    "records" / V("0+", Records, nullable="0+"),
    "alone" / V("0+", Bytes),
    "again" / V("0+", Int16),
    "numbers" / V("0+", Array(Int8), nullable="0+"),
    "last" / V("0+", Int16),  # with the number of tagged fields
)


@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 128, 255, 16_382, 16_383, 16_384, 70_000])
@pytest.mark.parametrize("version", Lengths.versions)
def test_lengths_of_any_number_of_bytes_agree_with_the_construct(
    version: int, size: int | None
) -> None:
    codec, null = Lengths.codec(version), size is None
    value = Lengths(
        before=-2,
        records=None if null else b"r" * size,
        alone=b"a" * (size or 0),
        again=300,
        numbers=None if null else [7] * size,
        last=-1,
    )
    data = codec.build(value)
    assert codec.parse(data) == value == Lengths.at(version).parse_stream(io.BytesIO(data))
    for cut in (1, 2, 3):
        with pytest.raises(ProtocolError):
            codec.parse(data[:-cut])


@pytest.mark.parametrize("count", [1, 127, 128, 1_000])
def test_tagged_fields_behind_a_fixed_field_are_skipped(count: int) -> None:
    codec, value = Lengths.codec(1), Lengths(last=7)
    tail = uvarint(count) + b"".join(uvarint(tag) + b"\1x" for tag in range(count))
    assert codec.parse(codec.build(value)[:-1] + tail) == value


@pytest.mark.parametrize(
    "value", [0, 127, 128, 129, 255, 256, 16_383, 16_384, 16_385, 2_097_151, 2_097_152, 2**31 - 1]
)
def test_a_varint_of_any_number_of_bytes_goes_round(value: int) -> None:
    written = uvarint(value)
    assert [byte > 127 for byte in written] == [True] * (len(written) - 1) + [False]
    assert sum((byte & 127) << 7 * at for at, byte in enumerate(written)) == value
    if value > 127:
        assert read_uvarint(b"?" + written + b"?", 2, written[0]) == (value, 1 + len(written))


@pytest.mark.parametrize("version", Names.versions)
def test_what_does_not_fit_is_a_bug_of_the_caller(version: int) -> None:
    codec = Names.codec(version)
    for names in (["x" * 32768], [None], None):
        with pytest.raises((ValueError, struct.error, AttributeError, TypeError)):
            codec.build(Names(names=names))


def test_an_array_of_nothing_cannot_claim_more_elements_than_there_are_bytes() -> None:
    assert Empties.codec(0).build(Empties(empties=[])) == b"\0\0\0\0"
    with pytest.raises(ProtocolError):
        Empties.codec(0).parse(b"\x7f\xff\xff\xff\0\0\0\0")
    assert len(Empties.codec(1).parse(b"\x03\0\0\0").empties) == 2


def test_a_count_must_fit_what_its_elements_take_at_least() -> None:
    leaders = Api(None, "Leaders", "0-1", "1+", "leaders" / V("0+", Array(Leader)))
    for version, data in ((0, b"\0\0\0\2" + bytes(15)), (1, b"\x03" + bytes(17))):
        with pytest.raises(ProtocolError, match="more elements than the frame holds"):
            leaders.codec(version).parse(data)
    assert len(leaders.codec(0).parse(b"\0\0\0\2" + bytes(16)).leaders) == 2


def test_fixed_fields_beyond_the_frame_are_refused_though_the_buffer_goes_on() -> None:
    buffer = bytearray(40)
    codec = Leader_api.codec(0)
    with pytest.raises(ProtocolError, match="ends too early"):
        codec.parse_at(buffer, memoryview(buffer), 0, 7)
    assert codec.parse_at(buffer, memoryview(buffer), 0, 8)[1] == 8


Leader_api = Api(
    None, "Leader", "0", "none", "leader_id" / V("0+", Int32), "epoch" / V("0+", Int32)
)


def test_versions_that_are_not_declared() -> None:
    assert Everything.versions == range(4)
    assert [Everything.flexible(version) for version in Everything.versions] == [0, 0, 1, 1]
    assert (Everything.flexible_since, Leader_api.flexible_since) == (2, None)
    with pytest.raises(ValueError, match="no version 4"):
        Everything.codec(4)
    assert Everything.codec(3) is Everything.codec(3)


NestedTopic = Group("NestedTopic", "partitions" / V("0+", Array(Int8)))
Nested = Api(
    None,
    "Nested",
    "0-1",
    "1+",
    "topics" / V("0+", Array(NestedTopic)),
)


@pytest.mark.parametrize("version", [0, 1])
def test_all_arrays_of_a_message_share_one_limit_of_elements(version: int) -> None:
    def frame(topics: int, partitions: int) -> bytes:
        of_topic = [0] * partitions
        value = Nested(topics=[NestedTopic(partitions=of_topic)] * topics)
        return Nested.codec(version).build(value)

    per_topic = 99
    most = MAX_ELEMENTS // (per_topic + 1)
    assert len(Nested.codec(version).parse(frame(most, per_topic)).topics) == most
    with pytest.raises(ProtocolError, match="more elements than a message may have"):
        Nested.codec(version).parse(frame(most + 1, per_topic))
    with pytest.raises(ProtocolError, match="more elements than a message may have"):
        Nested.codec(version).parse(frame(1, MAX_ELEMENTS + 1))
    with pytest.raises(ProtocolError, match="more elements than a message may have"):
        Nested.codec(version).parse(frame(MAX_ELEMENTS + 1, 0))


def test_a_hostile_frame_costs_a_bounded_amount_of_memory() -> None:
    """Fifty megabytes of the smallest elements there are; without a limit they take gigabytes."""
    frame = bytearray(50_000_000)
    frame[:4] = (len(frame) // 4 - 1).to_bytes(4, "big")
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            Nested.codec(0).parse(frame)
        just_below = frame[: 4 + 4 * MAX_ELEMENTS]
        just_below[:4] = MAX_ELEMENTS.to_bytes(4, "big")
        parsed = Nested.codec(0).parse(just_below)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(parsed.topics) == MAX_ELEMENTS
    assert peak < 200_000_000


def test_a_value_has_the_declared_fields_and_no_others() -> None:
    parsed = Everything.codec(0).parse(Everything.codec(0).build(Everything()))
    for value in (Everything(), parsed, parsed.leader):
        with pytest.raises(AttributeError):
            value.eror_code = 3
        assert not hasattr(value, "__dict__")


def test_values_can_be_copied() -> None:
    value = full()
    for one in (copy.copy(value), copy.deepcopy(value)):
        assert one == value
        one.small = 3
        assert value.small == -1
    deep = copy.deepcopy(value)
    deep.leaders[0].epoch = 9
    assert value.leaders[0].epoch == -1


def test_the_class_of_a_value_is_its_declaration() -> None:
    assert isinstance(full(), Everything)
    assert type(full()) is Everything
    assert isinstance(full().leader, Leader)
    assert isinstance(Everything, Api)
    assert (Leader.name, [name for name, _ in Leader.fields]) == ("Leader", ["leader_id", "epoch"])


def test_a_field_may_be_called_as_a_property_of_its_class_is_but_not_as_a_method() -> None:
    both = Api(7, "Both", "0", "none", "key" / V("0", Int8), "name" / V("0", Str))
    value = both.codec(0).parse(b"\5\0\1x")
    assert (both.key, both.name, value.key, value.name) == (7, "Both", 5, "x")
    with pytest.raises(TypeError, match="codec"):
        Group("Wrong", "codec" / V("0", Int8))
