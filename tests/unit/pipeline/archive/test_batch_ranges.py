"""The offsets of a batch, from the texts of Spark's checkpoint."""

from pipeline.archive.batch_ranges import ranges_between
from pipeline.exact_rows import OffsetRange

END = 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":7,"1":3},"b":{"0":2}}'


def test_a_first_batch_begins_where_the_source_wrote_down() -> None:
    start = '\0v1\n{"a":{"0":4,"1":3},"b":{"0":0}}'
    assert ranges_between(start, END) == [OffsetRange("a", 0, 4, 7), OffsetRange("b", 0, 0, 2)]


def test_a_partition_that_is_new_begins_with_its_first_record() -> None:
    start = 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":6}}'
    assert ranges_between(start, END) == [
        OffsetRange("a", 0, 6, 7),
        OffsetRange("a", 1, None, 3),
        OffsetRange("b", 0, None, 2),
    ]
