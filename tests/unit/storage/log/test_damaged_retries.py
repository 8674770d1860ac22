"""A damaged batch is damaged before it is a duplicate or out of order (S-APP-2, S-IDEM-1)."""

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.log.validation import IN_WRITER_FROM
from tests.support.log_builder import LogBuilder


@pytest.mark.parametrize("size", [10, IN_WRITER_FROM * 2])
@pytest.mark.parametrize("base_sequence", [0, 17])
def test_s_app_2_the_checksum_comes_before_the_producer(size: int, base_sequence: int) -> None:
    built = LogBuilder(max_message_bytes=4 * IN_WRITER_FROM)
    producer = {"producer_id": 5, "producer_epoch": 0}
    good = built.batch(value=b"x" * size, base_sequence=0, **producer)
    built.log.append_as_leader(memoryview(bytearray(good)), leader_epoch=0)
    again = bytearray(built.batch(value=b"x" * size, base_sequence=base_sequence, **producer))
    again[-2] ^= 1
    with pytest.raises(KafkaError) as refused:
        built.log.append_as_leader(memoryview(again), leader_epoch=0)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert built.log.log_end_offset == 1
