"""Every codec in every version: generated code agrees with the interpreted construct.

Values are random, the construct tree is interpreted as the oracle, and each message is tried whole,
with a tail, cut off, and byte by byte through framing. CODEC_EXAMPLES in the environment asks for
more than the few examples of a quick run.
"""

import io
import os
import struct
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.errors import ProtocolError
from protocol.framing import frame_size
from protocol.schema import Api
from tests.support.message_values import all_codecs, codec_id, random_value

EVERY_CODEC = pytest.mark.parametrize(("api", "version"), list(all_codecs()), ids=codec_id)
QUICK = settings(
    max_examples=int(os.environ.get("CODEC_EXAMPLES", "2")),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
randoms = st.integers(min_value=0, max_value=(1 << 32) - 1).map(Random)


def interpreted(api: Api, version: int, value: object) -> bytes:
    stream = io.BytesIO()
    api.at(version).build_stream(value, stream)
    return stream.getvalue()


@EVERY_CODEC
@QUICK
@given(rng=randoms)
def test_generated_code_builds_and_parses_what_the_construct_does(
    api: Api, version: int, rng: Random
) -> None:
    codec, node = api.codec(version), api.at(version)
    value = random_value(node, rng)
    data = codec.build(value)
    assert data == interpreted(api, version, value)

    parsed = codec.parse(data)
    assert parsed == value
    assert parsed == node.parse_stream(io.BytesIO(data))
    assert codec.parse(memoryview(data)) == value

    check_in_steps(api, version, data, value)
    check_with_a_tail(api, version, data, value)
    check_cut_off(api, version, data, rng)


def check_in_steps(api: Api, version: int, data: bytes, value: object) -> None:
    """Building and parsing in steps have the same results as in one call."""
    codec = api.codec(version)
    built = bytearray()
    for _ in codec.build_steps(value, built.extend):
        pass
    assert built == data
    *none, last = codec.parse_steps(data, memoryview(data), 0, len(data))
    assert last is not None
    assert last[:2] == (value, len(data))
    assert not any(none)
    assert len(none) <= last[2]
    assert codec.parse_small_at(data, memoryview(data), 0, len(data)) == (value, len(data))


def check_with_a_tail(api: Api, version: int, data: bytes, value: object) -> None:
    codec = api.codec(version)
    buffer = bytearray(b"\xff" * 3 + data + b"\xff" * 5)
    parsed, offset = codec.parse_at(buffer, memoryview(buffer), 3, len(buffer))
    assert (parsed, offset) == (value, 3 + len(data))
    with pytest.raises(ProtocolError):
        codec.parse(data + b"\0")


def check_cut_off(api: Api, version: int, data: bytes, rng: Random) -> None:
    """Neither a buffer that ends early nor a frame that ends within its buffer passes."""
    codec, view = api.codec(version), memoryview(data)
    cuts = range(len(data)) if len(data) <= 24 else sorted(rng.sample(range(len(data)), 24))
    for cut in cuts:
        with pytest.raises(ProtocolError):
            codec.parse_at(data, view, 0, cut)
        with pytest.raises(ProtocolError):
            codec.parse(data[:cut])
        with pytest.raises(ProtocolError):
            list(codec.parse_steps(data, view, 0, cut))


@EVERY_CODEC
def test_a_message_of_defaults_goes_round(api: Api, version: int) -> None:
    codec, value = api.codec(version), api()
    assert codec.parse(codec.build(value)) == value


@settings(QUICK, max_examples=20)
@given(payload=st.binary(min_size=8, max_size=60))
def test_a_frame_is_complete_only_at_its_last_byte(payload: bytes) -> None:
    wire = struct.pack(">i", len(payload)) + payload
    for available in range(len(wire) + 1):
        size = frame_size(wire[:available], 0, available, max_size=1000)
        assert (size is None) == (available < 4)
        complete = size is not None and available >= 4 + size
        assert complete == (available == len(wire))
