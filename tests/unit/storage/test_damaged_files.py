"""One damaged file beside good ones: the start succeeds, and no reader gets wrong records.

Each file of a log directory in turn gets a wrong bit, or bytes at its end, or is cut, emptied or
removed; then the test opens the directory and reads everything. A read gives the records as they
were written, or CORRUPT_MESSAGE; nothing is skipped in silence, the other partitions lose nothing,
and the directory stays in service.

The test leaves out the base offset and leader epoch in a batch's header, because no checksum of
Kafka covers them and nothing repeats them. A damaged end of the active segment is the log's end.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from copy import copy

import pytest

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import LOG_OVERHEAD, iter_batches, verify_crc
from protocol.records.builder import build_batch
from protocol.records.control import ControlType
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from protocol.types import TopicPartition
from storage import log_tasks
from storage.errors import BeingRepaired
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from storage.paths import LOG_START_OFFSET_CHECKPOINT, META_PROPERTIES
from storage.waits import at_once
from tests.support.log_builder import end_transaction
from tests.support.log_tasks import run_task
from tests.support.managed_logs import Managed

CONFIG = TopicConfig(segment_bytes=1600, index_interval_bytes=200, segment_index_bytes=1200)
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
Seen = dict[int, bytes]
"""Values by offset."""


class Directory(Managed):
    """Three partitions in one log directory, and what was written to them."""

    def __init__(self) -> None:
        super().__init__("/d", CONFIG)
        for tp in PARTITIONS:
            self.populate(self.log(*tp))
        run_task(self.manager, log_tasks.FLUSH_ROLLED)
        run_task(self.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
        run_task(self.manager, log_tasks.LOG_START_CHECKPOINT)

    def populate(self, log: Log) -> None:
        def add(number: int, **fields: int | bool) -> None:
            stamp = self.clock.wall_ms()
            values = [(stamp, b"k", b"%s %d" % (str(log.topic_partition).encode(), number), ())]
            log.append_as_leader(build_batch(values * 2, **fields), leader_epoch=number // 12)
            self.clock.advance(ms=10)

        for number in range(36):
            if number % 6 == 0:
                add(
                    number,
                    producer_id=5,
                    producer_epoch=0,
                    base_sequence=number // 3,
                    transactional=True,
                )
                kind = ControlType.ABORT if number % 12 else ControlType.COMMIT
                end_transaction(log, self.clock, 5, kind)
            add(number)
        log.update_high_watermark(log.log_end_offset)
        log.maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)

    def files(self) -> Iterator[str]:
        for name in self.fs.list_dir("/d"):
            path = f"/d/{name}"
            if self.fs.is_dir(path):
                yield from (f"{path}/{inner}" for inner in self.fs.list_dir(path))
            elif name not in (META_PROPERTIES, ".lock"):
                yield path

    def repaired(self) -> None:
        run_task(self.manager, log_tasks.REPAIR_INDEXES)

    def read(self, tp: TopicPartition, isolation: FetchIsolation) -> tuple[Seen, bool]:
        """The records that a client sees, and whether a read was refused."""
        log = self.manager.get_log(tp)
        assert log is not None
        log.update_high_watermark(log.log_end_offset)
        seen: Seen = {}
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            try:
                info = log.read(offset, 700, isolation)
            except BeingRepaired:
                self.repaired()
                continue
            except KafkaError as error:
                assert error.code == ErrorCode.CORRUPT_MESSAGE
                return seen, True
            data = info.records.read() if isinstance(info.records, FileSlice) else b""
            if not data:
                break
            first = offset
            aborted = {one.first_offset: one.last_offset for one in info.aborted or ()}
            try:
                for position, header in iter_batches(data):
                    if position + header.batch_length + LOG_OVERHEAD > len(data):
                        break
                    if not verify_crc(data, position, header):
                        return seen, True  # as a client does
                    taken_back = header.producer_id >= 0 and any(
                        start <= header.base_offset < end for start, end in aborted.items()
                    )
                    if not header.is_control and not taken_back:
                        seen |= {
                            record.offset: record.value or b""
                            for record in iter_records(data, position)
                        }
                    offset = header.last_offset + 1
            except RecordsError:
                return seen, True
            if offset == first:
                return seen, True
        return seen, False

    def everything(self) -> dict[tuple[TopicPartition, FetchIsolation], Seen]:
        return {
            (tp, isolation): self.read(tp, isolation)[0]
            for tp in PARTITIONS
            for isolation in (FetchIsolation.LOG_END, FetchIsolation.TXN_COMMITTED)
        }


def unprotected(data: bytes) -> set[int]:
    """Positions of base offsets and leader epochs in a record file."""
    found: set[int] = set()
    with suppress(RecordsError):
        for position, _ in iter_batches(data):
            found |= {*range(position, position + 8), *range(position + 12, position + 16)}
    return found


def damages(path: str, data: bytes, seed: random.Random, bits: int) -> Iterator[bytes | None]:
    """Contents instead of `data`; None: no file at all."""
    yield None
    for size in {0, len(data) // 2 + 7, max(len(data) - 1, 0)}:  # not between two batches
        yield data[:size]
    yield data + seed.randbytes(40)
    safe = sorted(set(range(len(data))) - (unprotected(data) if path.endswith(".log") else set()))
    for at in seed.sample(safe, min(bits, len(safe))):
        changed = bytearray(data)
        changed[at] ^= 1 << seed.randrange(8)
        yield bytes(changed)


def check(
    directory: Directory,
    right: dict[tuple[TopicPartition, FetchIsolation], Seen],
    path: str,
    *,
    clean: bool,
) -> None:
    """Everything is as it was, or refused, or beyond what is now the log's end."""
    assert directory.offline == []
    for (tp, isolation), values in right.items():
        seen, refused = directory.read(tp, isolation)
        log = directory.manager.get_log(tp)
        assert log is not None
        own = path.startswith(f"/d/{tp.topic}-{tp.partition}/")
        if not own:
            start, end = log.log_start_offset, log.log_end_offset
            assert (refused, end) == (False, max(values) + 1), (tp, path)
            # A bit makes another digit of a digit, and nothing in that file says that it is wrong.
            assert start == 3 or path.endswith(LOG_START_OFFSET_CHECKPOINT), (tp, path, start)
        if own and path.endswith(".log") and not clean:
            # Recovery after a crash ends this segment where it is damaged, and says so; a marker
            # that went with it may have ended a transaction.
            base = int(path[-24:-4])
            end = min(
                (s.base_offset for s in log.segments if s.base_offset > base), default=1 << 40
            )
            values = {o: v for o, v in values.items() if not base <= o < end}
            seen = {o: v for o, v in seen.items() if not base <= o < end}
        wanted = {offset: value for offset, value in values.items() if offset in seen}
        beyond = max(seen, default=-1) if refused or own else 1 << 40
        assert {o: v for o, v in seen.items() if o in values} == wanted
        assert {o for o in seen if o not in values and o >= 3} == set(), "taken back"
        missing = {o for o in values if o not in seen and log.log_start_offset <= o <= beyond}
        assert missing == set(), (tp, path, isolation)


def run(bits: int, seed: int, *, clean: bool, step: int = 1) -> int:
    template = Directory()
    right = template.everything()
    if clean:
        at_once(template.manager.shutdown())
    chance, tried = random.Random(seed), 0
    for path in list(template.files())[seed % step :: step]:
        data = template.fs.read_bytes(path)
        for content in damages(path, data, chance, bits):
            directory = copy(template)
            directory.offline = []
            directory.fs = template.fs.crash(keep_unsynced=True)
            if content is None:
                directory.fs.unlink(path)
            else:
                directory.fs.write_bytes(path, content)
            if path.endswith(".log") and not content:
                continue  # records that are gone without a trace: a gap, as compaction leaves them
            directory.start()
            check(directory, right, path, clean=clean)
            tried += 1
    return tried


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_file_is_found_at_the_start_or_when_it_is_read(clean: bool) -> None:
    assert run(1, 1, clean=clean, step=10) > 10


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_many_damaged_files(seed: int, clean: bool) -> None:
    assert run(15, seed, clean=clean) > 300
