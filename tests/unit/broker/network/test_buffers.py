"""Bytes behind a parked request keep what they need, and no more stays in the pool."""

import pytest

from broker.network.backlog import Backlog
from broker.network.buffers import STANDARD_BYTES, BufferPool
from broker.network.frame_memory import FrameMemory
from broker.network.receive_buffer import ReceiveBuffer


@pytest.mark.parametrize("rest", [0, 100, 40_000, 100_000, STANDARD_BYTES - 10])
def test_requests_that_are_parked_one_after_the_other_leave_the_pool_as_it_was(rest: int) -> None:
    pool = BufferPool()
    incoming = ReceiveBuffer(pool, FrameMemory(1 << 30))
    for _ in range(100):
        incoming.acquire(0)
        incoming.have = 10 + rest
        incoming.view[10 : 10 + rest] = b"r" * rest
        incoming.shrink_parked(10)
        assert incoming.have == rest
        assert bytes(incoming.view[:rest]) == b"r" * rest
        assert len(incoming.view) <= max(1024, 2 * rest - 1) if rest else not incoming.view
        incoming.have = 0
        incoming.shrink_idle()
    found = pool.statistics()
    assert (found.in_use, found.bytes_in_use) == (0, 0)
    assert found.bytes_free <= 2 * STANDARD_BYTES


@pytest.mark.parametrize(
    ("kept", "rest", "size"),
    [
        (101, 100, 1024),
        (101, STANDARD_BYTES // 2, STANDARD_BYTES // 2),
        (101, STANDARD_BYTES // 2 + 1, STANDARD_BYTES),
        (100, 100, STANDARD_BYTES),  # there is memory for a buffer each
    ],
)
def test_requests_behind_a_cut_turn_move_where_that_frees_a_buffer(
    kept: int, rest: int, size: int
) -> None:
    pool, backlog = BufferPool(), Backlog(100)
    backlog.add(kept)
    incoming = ReceiveBuffer(pool, FrameMemory(1 << 30), backlog=backlog)
    incoming.buffer = buffer = pool.acquire()
    incoming.view = memoryview(buffer)
    incoming.have = 10 + rest
    incoming.view[10 : 10 + rest] = b"r" * rest
    position = incoming.shrink_interrupted(10)
    assert len(incoming.view) == size
    assert (position == 10) is (incoming.buffer is buffer)
    assert bytes(incoming.view[position : incoming.have]) == b"r" * rest
    assert backlog.bytes == kept + rest
    assert pool.statistics().in_use == (size == STANDARD_BYTES)


def test_what_is_kept_of_a_large_buffer_is_one_of_the_pool() -> None:
    pool = BufferPool()
    large = pool.grown(1 << 20, 300_000)
    kept = pool.packed(memoryview(large)[:300_000])
    assert len(kept) == 1 << 20
    pool.release(large)
    pool.release(kept)
    found = pool.statistics()
    assert (found.in_use, found.bytes_free) == (0, 2 << 20)
