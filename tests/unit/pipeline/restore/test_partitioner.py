"""Kafka's murmur2."""

import pytest

from pipeline.restore.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("data", "hash_"),
    [
        # org.apache.kafka.common.utils.UtilsTest, testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(data: bytes, hash_: int) -> None:
    assert murmur2(data) == hash_ & 0xFFFFFFFF


def test_the_sign_is_taken_off_before_the_division() -> None:
    assert partition_of(b"foobar", 7) == (-790332482 & 0x7FFFFFFF) % 7
