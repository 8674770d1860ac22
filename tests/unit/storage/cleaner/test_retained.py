"""Which record stays, by which rule (S-CMP-5), and which keys the map holds (S-CMP-3)."""

import numpy as np

from protocol.records.batch import BATCH_OVERHEAD
from storage.cleaner.fates import BatchRule, RecordFate
from storage.cleaner.retained import decide_records
from tests.support.compacted_log import CompactedLog


def fate(
    offset: int,
    *,
    latest: int = -1,
    map_end: int = 100,
    key: bool = True,
    value: bool = True,
    young: bool = True,
    rule: BatchRule = BatchRule.BY_KEY,
) -> RecordFate:
    (code,) = decide_records(
        rules=np.array([rule], np.uint8),
        tombstones_stay=np.array([young]),
        offsets=np.array([offset]),
        has_key=np.array([key]),
        has_value=np.array([value]),
        latest=np.array([latest]),
        map_end=map_end,
    )
    return RecordFate(code)


def test_s_cmp_5_each_rule_in_its_turn() -> None:
    assert fate(5, latest=5) is RecordFate.KEPT_LATEST
    assert fate(5, latest=4) is RecordFate.KEPT_LATEST
    assert fate(5) is RecordFate.KEPT_LATEST, "a key that the map does not know"
    assert fate(5, latest=6) is RecordFate.DROPPED_OLDER
    assert fate(5, latest=6, value=False) is RecordFate.DROPPED_OLDER
    assert fate(5, latest=5, value=False) is RecordFate.KEPT_TOMBSTONE
    assert fate(5, latest=5, value=False, young=False) is RecordFate.DROPPED_TOMBSTONE
    assert fate(5, key=False) is RecordFate.DROPPED_NO_KEY
    assert fate(101, key=False) is RecordFate.KEPT_ABOVE_MAP
    assert fate(101, latest=200) is RecordFate.KEPT_ABOVE_MAP
    assert fate(100, key=False) is RecordFate.DROPPED_NO_KEY
    assert fate(101, rule=BatchRule.ABORTED) is RecordFate.DROPPED_ABORTED
    assert fate(5, latest=6, rule=BatchRule.MARKER_STAYS) is RecordFate.KEPT_MARKER
    assert fate(101, rule=BatchRule.MARKER_GOES) is RecordFate.DROPPED_MARKER
    assert fate(5, key=False, rule=BatchRule.CONTROL_STAYS) is RecordFate.KEPT_CONTROL


def test_s_cmp_5_the_latest_record_of_each_key_stays() -> None:
    log = CompactedLog()
    log.keys(1, 2, 3, 1)
    log.keys(2)
    log.keys(4, 4, 3)
    stats = log.clean()
    assert log.offsets() == [3, 4, 6, 7]
    assert (stats.messages_read, stats.messages_written, stats.map_messages_read) == (8, 4, 8)
    assert sum(stats.fates) == 8


def test_s_cmp_5_records_without_a_key_go_and_are_counted() -> None:
    log = CompactedLog()
    log.append_unchecked((None, b"x"), (b"a", b"1"), (None, None))
    stats = log.clean()
    assert log.offsets() == [1]
    assert stats.invalid_messages_read == 2


def test_s_cmp_3_a_full_map_cleans_up_to_the_last_key_that_it_took() -> None:
    log = CompactedLog()
    log.keys(1, 2)
    log.keys(3, 4, 5, 1)
    log.keys(1, 2)
    stats = log.clean(map_bytes=24 * 4, load_factor=0.8)
    assert stats.end_offset == 3, "three keys are in the map, the fourth record is not"
    assert log.offsets() == list(range(8)), "above the map nothing is known of keys"
    stats = log.clean(map_bytes=24 * 4, load_factor=0.8)
    assert (log.cleaned_to, log.offsets()) == (6, [1, 2, 3, 4, 5, 6, 7])
    log.clean()
    assert log.offsets() == [2, 3, 4, 6, 7]
    assert log.cleaned_to == 8


def test_s_cmp_3_the_map_goes_over_gaps_between_segments() -> None:
    log = CompactedLog()
    log.keys(1)
    log.log.roll()
    log.keys(2)
    log.keys(2)
    log.clean()
    # The batch at 1 is gone, and a segment that begins there would begin in the gap.
    log.keys(1)
    log.log.roll()
    stats = log.clean(roll=False)
    assert stats.end_offset == 4
    assert log.offsets() == [2, 3]
    assert log.log.segments.active.base_offset == 4


def test_s_cmp_3_tombstones_are_in_the_map() -> None:
    log = CompactedLog()
    log.keys(1)
    log.put((b"1", None))
    log.clean()
    assert log.offsets() == [1]


def test_s_cmp_8_only_the_header_of_the_last_batch_may_be_left() -> None:
    log = CompactedLog()
    log.keys(1)
    log.append_unchecked((None, b"x"))
    log.clean()
    ((_, first), (header, last)) = log.batches()
    assert [record.offset for record in first] == [0]
    assert (header.base_offset, header.record_count, last) == (1, 0, [])
    assert (header.size, header.base_timestamp) == (BATCH_OVERHEAD, -1)


def test_s_cmp_8_an_empty_batch_below_the_high_watermark_goes() -> None:
    log = CompactedLog()
    log.keys(1)
    log.append_unchecked((None, b"x"))
    log.log.roll()
    log.keys(2)
    log.clean(roll=False)
    assert [(header.base_offset, header.record_count) for header, _ in log.batches()] == [
        (0, 1),
        (2, 1),
    ]
