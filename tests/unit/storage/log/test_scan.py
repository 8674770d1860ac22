"""The end of a walk over a record file, and its reason in words."""

import pytest

from protocol.records.builder import build_batch
from storage.log.scan import Ended, Walk
from storage.memory_filesystem import MemoryFileSystem

BATCH = bytes(build_batch([(1, b"k", b"v", ())]))

TAILS = {
    "nothing": (b"", Ended.AT_END),
    "a short header": (BATCH[:16], Ended.TORN_HEADER),
    "half a batch": (BATCH[:-1], Ended.TORN_BATCH),
    "an unknown magic": (BATCH[:16] + b"\x09" + BATCH[17:], Ended.NONSENSE),
    "a negative size": (BATCH[:8] + b"\xff" * 4 + BATCH[12:], Ended.NONSENSE),
    "zeros": (bytes(4096), Ended.ZEROS),
    "one zero": (bytes(1), Ended.ZEROS),
    "zeros of a header's size": (bytes(17), Ended.ZEROS),
    "a magic behind zeros": (bytes(16) + b"\x02", Ended.NONSENSE),
    "zeros and a byte": (bytes(15) + b"\x01", Ended.TORN_HEADER),
}


@pytest.mark.parametrize("tail", TAILS)
def test_a_walk_says_what_follows_the_last_batch(tail: str) -> None:
    data, ended = TAILS[tail]
    fs = MemoryFileSystem(lambda: 0)
    fs.make_dirs("/d")
    fs.write_atomic("/d/log", (BATCH + data,))
    file = fs.open("/d/log")
    walk = Walk(file, 0, file.size())
    assert [position for position, *_ in walk] == [0]
    assert (walk.position, walk.ended) == (len(BATCH), ended)
    assert str(walk.ended) == ended.value, "a person reads words, not the name of a constant"
