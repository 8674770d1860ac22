"""Sets of old formats in pieces: the same batch as of the records read at once, with an end."""

import os
import random

import pytest

from protocol.records import message_stream
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType, compress
from protocol.records.deflating import OutputFull
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.message_set import build_message_set, encode_message, frames
from protocol.records.message_stream import codec_of_set
from protocol.records.record import iter_records
from tests.support.message_sets import MOST, records_in, up_converted

OLD_CODECS = [
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_the_same_batch_as_at_once(magic: int, codec: CompressionType) -> None:
    rng = random.Random(7)
    for count, largest in ((1, 10), (40, 30_000), (700, 200)):
        rows = [
            (at, 1000 + rng.randrange(500), rng.choice((None, b"k")), os.urandom(largest))
            for at in range(count)
        ]
        data = build_message_set(rows, magic=magic, codec=codec)
        expected = build_batch(
            [(r.timestamp, r.key, r.value, ()) for r in records_in(data)], codec=codec
        )
        for made in (up_converted(data), up_converted(data + data[:20])):
            assert list(iter_records(made)) == list(iter_records(expected))
            # More than a piece is compressed by a stream, which frames it in another way.
            assert made == expected or count * largest > 1 << 20


def test_frames_open_nothing() -> None:
    bomb = encode_message(1, 0, 0, None, b"not gzip at all", 1)
    (frame,) = frames(bomb + bomb[:-1])
    assert (frame.start, frame.end, frame.magic, frame.codec) == (0, len(bomb), 1, 1)
    assert frame.size == len(bomb)


def wrapped(inner: bytes, offset: int = 0, magic: int = 1) -> bytes:
    return encode_message(magic, offset, 5, None, compress(CompressionType.GZIP, inner), 1)


ONE = encode_message(1, 3, 7, None, b"v")
WRONG = {
    "no inner message": (wrapped(b""), InvalidRecord),
    "not gzip": (encode_message(1, 0, 5, None, b"x" * 30, 1), InvalidRecord),
    "no value": (encode_message(1, 0, 5, None, None, 1), InvalidRecord),
    "zstd": (encode_message(1, 0, 5, None, b"", 4), InvalidRecord),
    "an inner checksum": (wrapped(ONE[:-1] + b"x"), CorruptBatch),
    "another format within": (wrapped(encode_message(0, 0, 0, None, b"v")), InvalidRecord),
    "a wrapper within": (wrapped(wrapped(ONE)), InvalidRecord),
    "a size of nothing": (wrapped(ONE[:8] + bytes(4) + ONE[12:]), CorruptBatch),
    "a wrapper below its messages": (wrapped(ONE, offset=2), InvalidRecord),
    "nothing": (b"", InvalidRecord),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_read_is_refused(what: str) -> None:
    data, error = WRONG[what]
    with pytest.raises(error):
        up_converted(data)


def test_sets_of_mixed_kinds_are_refused() -> None:
    old, new = encode_message(0, 0, 0, None, b"v"), encode_message(1, 0, 0, None, b"v")
    with pytest.raises(InvalidRecord, match="not the same as the first"):
        codec_of_set(old + new, "t-0", most=MOST)
    with pytest.raises(InvalidRecord, match="more than one batch"):
        codec_of_set(new + wrapped(ONE), "t-0", most=MOST)
    with pytest.raises(CorruptBatch):
        codec_of_set(new[:-1] + b"x", "t-0", most=MOST)
    with pytest.raises(OutputFull):
        codec_of_set(new, "t-0", most=len(new) - 1)


def test_conversion_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wrapped(encode_message(1, 0, 0, None, b"v") * 5000)
    with pytest.raises(OutputFull):
        up_converted(data, codec=CompressionType.NONE, most=1000)
    with pytest.raises(EffortSpent):
        up_converted(data, effort=Effort(steps=100))
    with pytest.raises(EffortSpent):
        up_converted(data, effort=Effort(bytes=1000))
    monkeypatch.setattr(message_stream, "MOST_MESSAGES", 4999)
    with pytest.raises(InvalidRecord, match="may hold"):
        up_converted(data)
