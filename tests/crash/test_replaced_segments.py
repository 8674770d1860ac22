"""Segments take the place of others, and the process dies or the power goes at any operation.

A start then finds either the old ones or the new ones, whole, and nothing half done on the disk;
and so does a second start after the first was interrupted at any of its operations (S-REC-2).
"""

from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from tests.support.cleaning import Keep, cleaned, keep_all
from tests.support.crash_lab import LOG_DIR, Expectation, Sent, Truth, Workload, started, verify
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

CONFIG = TopicConfig(
    cleanup_policy=frozenset({"compact"}),
    index_interval_bytes=0,
    segment_index_bytes=480,
    file_delete_delay_ms=0,
)
SEGMENTS, BATCHES = 4, 3


def prepared() -> Workload:
    """Some segments of three batches each, flushed and checkpointed; two batches above them."""
    work = Workload(Random(3), config=CONFIG)
    work.begin()
    for _ in range(SEGMENTS):
        for _ in range(BATCHES):
            append(work)
        work.roll()
    append(work)
    work.flush()
    work.checkpoint()
    append(work)
    return work


def append(work: Workload) -> None:
    def go() -> Truth:
        work.clock.advance(ms=7)
        data = bytearray(build_batch([(work.clock.wall_ms(), b"k", work.random.randbytes(20), ())]))
        info = work.log.append_as_leader(data, leader_epoch=0)
        work.log.update_high_watermark(work.log.log_end_offset)
        sent = Sent(info.first_offset, info.last_offset, 0, bytes(data))
        return work._grown((*work.truth.line, sent))

    work.act("append", go)


def last_of_each(base_offset: int) -> bool:
    """Keep the newest record of a key, as compaction does."""
    return base_offset % BATCHES == BATCHES - 1


def none(_: int) -> bool:
    return False


PLANS: dict[str, tuple[int, Keep]] = {
    "merged": (1, keep_all),
    "compacted into one": (1, last_of_each),
    "compacted into two": (2, last_of_each),
}
"""The number of new segments, and the batches that stay."""


def replaced(pieces: int, keep: Keep, old: slice) -> tuple[Workload, int, tuple[Sent, ...]]:
    """The workload after the replacement, the operation it began with, and the line before."""
    work = prepared()
    log, before = work.log, work.truth.line
    doomed = list(log.segments)[old]
    each = len(doomed) // pieces
    new = [cleaned(log, doomed[at : at + each], keep) for at in range(0, len(doomed), each)]
    for segment in new:
        segment.release()
    begin = work.fs.now
    first, end = doomed[0].base_offset, doomed[-1].base_offset + BATCHES
    after = tuple(b for b in before if not first <= b.base < end or keep(b.base))

    def go() -> Truth:
        log.replacer.replace(new, doomed, generation=log.store.generation)
        return work._grown(after)

    work.act("replace", go)
    return work, begin, before


def expectation(work: Workload, before: tuple[Sent, ...], flushed: int) -> Expectation:
    return Expectation(
        lines=(before, work.truth.line), flushed=flushed, start=0, promised_start=0, end=10**6
    )


def nothing_left_over(fs: FaultyFileSystem) -> None:
    names = fs.list_dir(f"{LOG_DIR}/t-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))], names


def check_all(work: Workload, begin: int, before: tuple[Sent, ...], *, again: bool) -> int:
    """Every state from the first operation on; how many."""
    loss, checked = PowerLoss(work.fs), 0
    random = Random(1)
    flushed = SEGMENTS * BATCHES + 1
    for at in range(begin, loss.last + 1):
        states = [loss.kept(at), loss.names(at), loss.lost(at), loss.state(at, random)]
        for state in states:
            recorded = RecordingFileSystem(state)
            truth = verify(state, expectation(work, before, flushed), work.config, work.clock)
            nothing_left_over(state)
            checked += 1
            if again and at % 3 == 0:
                checked += check_again(recorded, work, truth.line)
    return checked


def check_again(fs: RecordingFileSystem, work: Workload, line: tuple[Sent, ...]) -> int:
    """The start itself is interrupted at each of its operations: the next one finds the same."""
    started(fs, work.clock, work.config)
    loss = PowerLoss(fs)
    expected = Expectation(
        lines=(line,), flushed=SEGMENTS * BATCHES + 1, start=0, promised_start=0, end=10**6
    )
    for at in range(loss.last + 1):
        for state in (loss.kept(at), loss.lost(at)):
            verify(state, expected, work.config, work.clock)
    return 2 * (loss.last + 1)


@pytest.mark.parametrize("old", [slice(0, 4), slice(1, 3)], ids=["all", "inner"])
@pytest.mark.parametrize("name", PLANS)
def test_s_rec_2_a_replacement_is_finished_or_undone(name: str, old: slice) -> None:
    work, begin, before = replaced(*PLANS[name], old)
    work.flush()
    work.delete_logs()
    assert check_all(work, begin, before, again=False) > 100


@pytest.mark.crash
@pytest.mark.parametrize("name", PLANS)
def test_s_rec_2_an_interrupted_start_finishes_or_undoes_it_too(name: str) -> None:
    work, begin, before = replaced(*PLANS[name], slice(0, 4))
    work.flush()
    assert check_all(work, begin, before, again=True) > 500


def test_s_rec_2_a_segment_of_nothing_takes_the_place_at_its_base() -> None:
    work, begin, before = replaced(1, none, slice(0, 1))
    check_all(work, begin, before, again=False)
