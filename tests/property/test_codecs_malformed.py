"""Bad bytes: codecs answer with ProtocolError, and memory stays in proportion to the frame."""

import contextlib
import tracemalloc
from random import Random

import pytest
from hypothesis import given

from protocol.errors import ProtocolError
from protocol.schema import Api
from tests.frames.mutations import damaged
from tests.property.test_codecs_round_trip import EVERY_CODEC, QUICK, randoms
from tests.support.message_values import all_apis, codec_id, random_value

NASTY = (
    b"\xff",
    b"\0",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff\x07",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
)
COUNTS = (b"\xb0\x17", b"\xf0\x0b", b"\xff\xff\xff\xff\x07", b"\0\0\x0b\xb0", b"\x7f\xff\xff\xff")
"""Counts of 2,990 and 1,500 elements and of as many as there can be, compact and not."""
OVERHEAD = 200
"""Bytes of memory that one byte of a frame may cost: an empty element is two bytes on the wire."""


@EVERY_CODEC
@QUICK
@given(rng=randoms)
def test_mutated_messages_raise_protocol_error_or_parse(
    api: Api, version: int, rng: Random
) -> None:
    codec = api.codec(version)
    data = codec.build(random_value(api.at(version), rng))
    frames = [damaged(data, rng, NASTY, (1, 2, 3)) for _ in range(8)]
    frames += [bytes(rng.randrange(256) for _ in range(size)) for size in (1, 10, 40)]
    for frame in frames:
        try:
            value = codec.parse(frame)
        except ProtocolError:
            continue
        assert codec.parse(codec.build(value)) == value


@pytest.mark.parametrize("api", list(all_apis()), ids=codec_id)
def test_memory_stays_within_the_frame(api: Api) -> None:
    version = api.versions[-1]
    codec = api.codec(version)
    rng = Random(f"{api.name} {version}")
    data = codec.build(random_value(api.at(version), rng))
    frames = [damaged(data, rng, NASTY, (1, 2, 3)) for _ in range(6)]
    frames += [lead + bytes([byte]) * 3000 for byte in (0, 1, 2, 0xFF) for lead in (b"", *COUNTS)]
    assert codec.parse_at is not None  # made before it is measured
    tracemalloc.start()
    try:
        for frame in frames:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            with contextlib.suppress(ProtocolError):
                codec.parse(frame)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < 20_000 + OVERHEAD * len(frame)
    finally:
        tracemalloc.stop()
