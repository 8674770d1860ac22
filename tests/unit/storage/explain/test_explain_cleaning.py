"""The explanation of the cleaner agrees with the cleaner: verdicts from files, and the dry run."""

from random import Random

import pytest

from protocol.records.compression import CompressionType
from storage.cleaner.fates import RecordFate
from storage.cleaner.planner import ActiveSegmentOnly, Due, NotDue, OpenTransaction, RatioBelow
from storage.explain.cleaning import CleaningVerdict, explain_cleaning
from storage.explain.dry_run import JudgedRecord, dry_run
from storage.explain.opened import LogOpener, OpenedLog, partitions_of
from tests.support.compacted_log import DIRECTORY, CompactedLog

MAP_BYTES = 24 * 4096


def opened(log: CompactedLog, *, cleaned_to: int | None = None) -> OpenedLog:
    """Open the log as a tool does while a broker uses it."""
    if cleaned_to is not None:
        content = f"0\n1\nt 0 {cleaned_to}\n".encode()
        log.fs.write_bytes("/logs/cleaner-offset-checkpoint", content)
    (view,) = partitions_of(DIRECTORY, log.fs)
    return LogOpener(log.fs, log.clock, Random(0), lambda _: log.config).open(view)


def explained(log: CompactedLog, *, cleaned_to: int | None = None) -> CleaningVerdict:
    return explain_cleaning(opened(log, cleaned_to=cleaned_to), log.clock.wall_ms())


def test_s_cmp_1_a_dirty_log_is_due() -> None:
    log = CompactedLog()
    log.keys(1, 2, 1)
    log.log.roll()
    found = explained(log)
    assert isinstance(found.verdict, Due)
    assert (found.verdict.extent.first_uncleanable_offset, found.checkpointed) == (3, None)


def test_s_cmp_1_one_that_was_cleaned_tells_what_is_missing() -> None:
    log = CompactedLog()
    log.keys(1, 2, 1)
    log.log.roll()
    log.keys(1)
    verdict = explained(log, cleaned_to=3).verdict
    assert isinstance(verdict, NotDue)
    assert [type(reason) for reason in verdict.reasons] == [ActiveSegmentOnly]
    log.log.roll()
    verdict = explained(log, cleaned_to=3).verdict
    assert isinstance(verdict, NotDue)
    assert isinstance(verdict.reasons[0], RatioBelow)


def test_s_cmp_2_an_open_transaction_is_named_with_its_age() -> None:
    log = CompactedLog()
    log.keys(1)
    since = log.clock.wall_ms()
    log.transactional(41, 0, (b"t", b"v"))
    log.clock.advance(60)
    log.log.roll()
    log.keys(2)
    verdict = explained(log).verdict
    assert isinstance(verdict, NotDue)
    assert verdict.reasons == (OpenTransaction(producer_id=41, first_offset=1, since_ms=since),)


def drawn(seed: int) -> CompactedLog:
    """Some of everything: tombstones, transactions of both ends, batches of many records."""
    random = Random(seed)
    log = CompactedLog(segment_bytes=600, delete_retention_ms=1000)
    sequence = 0
    for _ in range(30):
        log.clock.advance(ms=random.randint(0, 200))
        pairs = [
            (b"k%d" % random.randrange(8), None if random.random() < 0.3 else random.randbytes(9))
            for _ in range(random.choice((1, 2, 5)))
        ]
        kind = random.random()
        if kind < 0.3:
            log.transactional(7, sequence, *pairs)
            sequence += len(pairs)
            (log.abort if random.random() < 0.5 else log.commit)(7)
        else:
            codec = random.choice((CompressionType.NONE, CompressionType.ZSTD))
            log.put(*pairs, codec=codec)
    return log


@pytest.mark.parametrize("seed", range(6))
def test_s_cmp_5_the_dry_run_says_of_each_record_what_becomes_of_it(seed: int) -> None:
    log = drawn(seed)
    for _ in range(2):
        log.log.roll()
        before = {record.offset for _, records in log.batches() for record in records}
        looked = opened(log, cleaned_to=log.cleaned_to)
        extent = explain_cleaning(looked, log.clock.wall_ms()).verdict.extent
        assert extent is not None
        told: list[JudgedRecord] = []
        files = log.fs.snapshot()
        stats = dry_run(
            looked,
            extent,
            now_ms=log.clock.wall_ms(),
            map_bytes=MAP_BYTES,
            tell=told.append,
        )
        assert log.fs.snapshot() == files
        really = log.clean(roll=False)
        assert (stats.fates, stats.end_offset) == (really.fates, really.end_offset)
        assert (stats.bytes_read, stats.bytes_written) == (really.bytes_read, really.bytes_written)
        after = {record.offset for _, records in log.batches() for record in records}
        goes = {
            offset
            for one in told
            if one.fate >= RecordFate.DROPPED_OLDER
            for offset in range(one.offset, one.last_offset + 1)
        }
        assert before - after == goes & before
        assert [one.offset for one in told] == sorted(one.offset for one in told)
        log.clock.advance(5)
        log.keys(1)
