"""Frames out of a stream, whatever it is cut into, and who may use a buffer again."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.peers.frames import LARGEST, SMALL_BYTES, IncomingFrames
from protocol.errors import ProtocolError

SIZES = st.sampled_from(
    (4, 5, 100, SMALL_BYTES - 5, SMALL_BYTES - 4, SMALL_BYTES - 3, SMALL_BYTES, 40_000, 70_000)
)


def framed(number: int, size: int) -> bytes:
    return struct.pack(">i", size) + bytes([number % 251]) * size


def receive(frames: IncomingFrames, data: bytes, most: int) -> list[bytes]:
    """Put `data` in, at most so many bytes at once; return the contents of the frames."""
    found = []
    at = 0
    while at < len(data):
        room = frames.room()
        size = min(len(room), len(data) - at, most)
        room[:size] = data[at : at + size]
        del room
        at += size
        found += [bytes(buffer[:end]) for buffer, end in frames.received(size)]
    return found


@given(st.lists(SIZES, max_size=8), st.integers(1, 100_000))
def test_frames_come_out_as_they_went_in(sizes: list[int], most: int) -> None:
    most = max(most, sum(sizes) // 300)  # not a million receives
    sent = [framed(number, size) for number, size in enumerate(sizes)]
    assert receive(IncomingFrames(), b"".join(sent), most) == [one[4:] for one in sent]


@pytest.mark.parametrize("size", [-1, 0, 3, LARGEST + 1])
def test_a_size_that_no_answer_has_is_nonsense(size: int) -> None:
    frames = IncomingFrames()
    frames.room()[:4] = struct.pack(">i", size)
    with pytest.raises(ProtocolError, match="an answer of"):
        frames.received(4)


def large(frames: IncomingFrames, number: int, size: int = 100_000) -> bytearray:
    data = framed(number, size)
    at = 0
    while True:
        room = frames.room()
        some = min(len(room), len(data) - at)
        room[:some] = data[at : at + some]
        at += some
        del room
        for buffer, _ in frames.received(some):
            assert isinstance(buffer, bytearray)
            return buffer


def test_a_large_buffer_is_used_again_once_nobody_looks_at_it() -> None:
    frames = IncomingFrames()
    first = large(frames, 1)
    view = memoryview(first)[10:20]
    second = large(frames, 2)
    assert second is not first
    assert bytes(view) == b"\1" * 10
    third = large(frames, 3)
    assert third is second
    del view


def test_a_large_buffer_goes_when_a_small_frame_comes() -> None:
    frames = IncomingFrames()
    first = large(frames, 1)
    assert receive(frames, framed(2, 10), 100) == [b"\2" * 10]
    assert large(frames, 3) is not first
