"""The index files of a segment, while they are open and after they were let go of."""

from tests.support.log_builder import LogBuilder


def filled() -> LogBuilder:
    """One segment of eight batches, seven of which have an entry in either index."""
    built = LogBuilder(index_interval_bytes=0)
    for _ in range(8):
        built.clock.advance(0.001)
        built.append()
    return built


def test_released_indexes_are_closed_and_the_next_use_opens_their_files() -> None:
    segment = filled().log.segments.active
    indexes = segment.indexes
    before = indexes.offset, indexes.time
    indexes.write_entries()
    assert indexes.are_open
    assert indexes.free > 0
    indexes.close()
    indexes.release()
    assert not indexes.are_open
    assert indexes.free == 0, "appends ask the index for room"
    assert indexes.offset is not before[0]
    assert indexes.time is not before[1]
    assert (indexes.offset.entries, indexes.time.entries) == (7, 7)
