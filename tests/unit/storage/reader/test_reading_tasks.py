"""`storage.reader.scan` and `.arrow` where files are odd, damaged, or changed in between."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocol.records.batch import BATCH_OVERHEAD
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.errors import RecordsError
from protocol.records.message_set import build_message_set
from protocol.types import TopicPartition
from storage.reader import PartitionView
from storage.reader.arrow import SCHEMA, read_task
from storage.reader.scan import (
    CorruptLog,
    IsolationLevel,
    NoLogDirectory,
    Position,
    Positions,
    RecordsGone,
    ScanError,
    ScanPlan,
    ScanRequest,
    UnknownTopic,
    plan,
)
from tests.support.compacted_log import CompactedLog
from tests.support.log_builder import DIRECTORY
from tests.support.scanning import plain_records, read_plan, row_of, rows_of, scanned

ROWS = [
    (10, b"k", b"v", ()),
    (11, None, b"w" * 300, (("h", b"1"), ("h", None), ("ü", b""))),
    (12, b"", None, ()),
    (13, None, None, (("only", b"header"),)),
]


def written(directory: Path, *pieces: bytes, name: str = "t-0", base: int = 0) -> ScanRequest:
    """A log directory with one segment of these bytes and nothing else."""
    partition = directory / name
    partition.mkdir(exist_ok=True)
    (partition / f"{base:020}.log").write_bytes(b"".join(pieces))
    return ScanRequest(directories=(str(directory),))


def in_memory(**config: Any) -> CompactedLog:
    """A log of small segments with a high watermark in the checkpoint that reaches its end."""
    return CompactedLog(segment_bytes=500, index_interval_bytes=100, **config)


def planned(log: CompactedLog, **options: Any) -> ScanPlan:
    return plan(ScanRequest(directories=("/logs",), **options), log.fs)


@pytest.mark.parametrize("codec", CompressionType)
def test_a_chunk_of_plain_and_packed_batches(tmp_path: Path, codec: CompressionType) -> None:
    request = written(
        tmp_path,
        build_batch(ROWS, base_offset=0),
        build_batch(ROWS, base_offset=4, codec=codec),
        build_batch(ROWS[1:2], base_offset=8),
    )
    view = PartitionView(tmp_path / "t-0")
    everything = plain_records(view)
    assert scanned(request) == [row_of(one, "t", 0) for one in everything]
    assert list(view.records()) == [one.record for one in everything]
    assert [record.offset for record in view.records(6)] == [6, 7, 8]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_old_formats(tmp_path: Path, magic: int, codec: CompressionType) -> None:
    old = build_message_set(
        [(0, 10, b"k", b"v"), (1, 11, None, b"w"), (2, 9, b"", None)], magic=magic, codec=codec
    )
    request = written(tmp_path, old, build_batch(ROWS, base_offset=3))
    view = PartitionView(tmp_path / "t-0")
    everything = plain_records(view)
    assert list(view.records()) == [one.record for one in everything]
    rows = scanned(request)
    assert rows == [row_of(one, "t", 0) for one in everything]
    assert [row.timestamp_type for row in rows[:4]] == [-1 if magic == 0 else 0] * 3 + [0]


def test_only_what_is_asked_for_is_there(tmp_path: Path) -> None:
    request = written(tmp_path, build_batch(ROWS, base_offset=0))
    (task,) = plan(request).tasks
    (batch,) = read_task(task, ["offset", "key"])
    assert batch.schema.names == ["offset", "key"]
    assert batch["key"].to_pylist() == [b"k", None, b"", None]
    (everything,) = read_task(task)
    assert everything.schema.equals(SCHEMA)
    assert [one.num_rows for one in read_task(task, ["key"], batch_rows=3)] == [3, 1]
    with pytest.raises(ValueError, match="no column offsets"):
        next(read_task(task, ["offsets"]))


def test_many_headers_and_names_that_are_no_text(tmp_path: Path) -> None:
    headers = tuple((f"h{n}", b"x") for n in range(40))
    odd = bytearray(build_batch([(1, b"k", b"v", (("odd!", b"1"),))], base_offset=1))
    at = odd.index(b"odd!")
    odd[at : at + 4] = b"a\xff\xfeb"
    request = written(tmp_path, build_batch([(1, b"k", b"v", headers)]), _sealed(odd))
    rows = scanned(request)
    assert rows[0].headers == headers
    assert rows[1].headers == (("a\ufffd\ufffdb", b"1"),)  # as Java mends it


def _sealed(batch: bytearray) -> bytes:
    from protocol.records.batch import crc_of

    batch[17:21] = crc_of(batch, 0, len(batch)).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("damage", ["checksum", "record", "count"])
def test_a_corrupt_batch_is_named(tmp_path: Path, codec: CompressionType, damage: str) -> None:
    """With topic, partition, offset, file and position; what is before it comes out."""
    good = build_batch(ROWS, base_offset=5)
    bad = bytearray(build_batch(ROWS, base_offset=9, codec=codec))
    if damage == "checksum":
        bad[-1] ^= 1
    elif damage == "record":
        bad[BATCH_OVERHEAD] = 0x03
        bad = bytearray(_sealed(bad))
    else:
        bad[57:61] = (5).to_bytes(4, "big")
        bad = bytearray(_sealed(bad))
    request = written(tmp_path, good, bad, name="orders-3", base=5)
    (task,) = plan(request).tasks
    with pytest.raises(CorruptLog) as caught:
        list(read_task(task))
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, CorruptLog)
    assert (error.topic_partition, error.offset) == (TopicPartition("orders", 3), 9)
    assert error.position == len(good)
    assert str(error).startswith("orders-3, offset 9: ")
    assert str(error).endswith(f"00000005.log, byte {len(good)})")
    if damage == "record":
        values = PartitionView(tmp_path / "orders-3").records()
        assert [next(values).offset for _ in ROWS] == [5, 6, 7, 8]
        with pytest.raises(RecordsError):
            next(values)


def test_a_torn_batch_is_no_record_of_a_copy_and_damage_below_the_watermark(tmp_path: Path) -> None:
    whole, torn = build_batch(ROWS), build_batch(ROWS, base_offset=4)[:-1]
    request = written(tmp_path, whole, torn)
    assert len(scanned(request)) == 4
    nonsense = b"\0" * 8 + b"\xff" * 60
    with pytest.raises(CorruptLog, match="t-0, offset 4"):
        plan(written(tmp_path, whole, nonsense))
    checkpoint = tmp_path / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 6\n")
    (task,) = plan(request).tasks
    with pytest.raises(CorruptLog, match="t-0, offset 4"):
        list(read_task(task))
    written(tmp_path, whole, bytes(5000))  # allocated, not written to yet
    assert len(scanned(request)) == 4
    checkpoint.write_text("0\n0\n")
    assert plan(request).tasks == ()  # as for Kafka: nothing is committed


def test_a_committed_read_ends_at_the_last_stable_offset_and_tells_it(tmp_path: Path) -> None:
    sent = build_batch(
        ROWS, base_offset=4, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
    )
    request = written(tmp_path, build_batch(ROWS), sent)
    for isolation, stable, end in (
        (IsolationLevel.READ_UNCOMMITTED, None, 8),
        (IsolationLevel.READ_COMMITTED, 4, 4),
    ):
        (found,) = plan(replace(request, isolation=isolation)).partitions
        assert (found.last_stable_offset, found.end_offset) == (stable, end)


def test_unknown_names(tmp_path: Path) -> None:
    written(tmp_path, build_batch(ROWS))
    with pytest.raises(UnknownTopic, match=r"nope is not in .*; there are t$"):
        plan(ScanRequest(directories=(str(tmp_path),), topics=("nope",)))
    with pytest.raises(UnknownTopic, match="t-1"):
        plan(ScanRequest(directories=(str(tmp_path),), assign=(TopicPartition("t", 1),)))
    with pytest.raises(NoLogDirectory, match="No such file"):
        plan(ScanRequest(directories=(str(tmp_path / "x"),)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoLogDirectory, match="holds no partitions"):
        plan(ScanRequest(directories=(str(tmp_path / "empty"),)))
    with pytest.raises(ScanError, match="no pattern"):
        plan(ScanRequest(directories=(str(tmp_path),), pattern="("))
    other = tmp_path / "empty"
    written(other, build_batch(ROWS))
    with pytest.raises(NoLogDirectory, match=r"t-0 is in .* as well"):
        plan(ScanRequest(directories=(str(tmp_path), str(other))))
    with pytest.raises(ScanError, match="choose one"):
        plan(
            ScanRequest(
                directories=(str(tmp_path),),
                isolation=IsolationLevel.READ_COMMITTED,
                beyond_high_watermark=True,
            )
        )


def test_topics_by_pattern_and_without_internal_ones(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-eu-0", "orders-eu-1", "__consumer_offsets-3"):
        written(tmp_path, build_batch(ROWS[:1]), name=name)
    written(tmp_path, build_batch(ROWS), name=f"gone-0.{'a' * 32}-delete")

    def names(**which: Any) -> list[str]:
        found = plan(ScanRequest(directories=(str(tmp_path),), **which)).partitions
        return [str(one.topic_partition) for one in found]

    assert names() == ["orders-0", "orders-eu-0", "orders-eu-1"]
    assert names(pattern="orders") == ["orders-0"]
    assert names(pattern="orders.*") == names()
    assert names(topics=("__consumer_offsets",)) == ["__consumer_offsets-3"]
    one = ScanRequest(directories=(str(tmp_path / "orders-eu-1"),))
    assert [str(found.topic_partition) for found in plan(one).partitions] == ["orders-eu-1"]


# Files that change between planning and reading.


def filled(log: CompactedLog, count: int = 40, *, unique: int = 4) -> None:
    """Two records each; of the second ones so many different keys."""
    for number in range(count):
        log.put((b"k%d" % (number % 3), b"%d" % number), (b"s%d" % (number % unique), b"x" * 20))


def test_segments_that_were_cleaned_meanwhile(tmp_path: Path) -> None:
    """Merged into others, rewritten under their own names: the offsets that are left come out."""
    log = in_memory()
    filled(log)
    tasks = planned(log, split_bytes=150).tasks
    assert len({task.base_offset for task in tasks}) < len(tasks)  # several parts of one segment
    log.clean()
    filled(log, 1)
    log.clean()  # the small segments that the first one has left are merged
    assert len(log.log.segments) < len({task.base_offset for task in tasks})
    now = [
        row_of(one, "t", 0)
        for one in plain_records(PartitionView(DIRECTORY, log.fs))
        if one.record.offset < tasks[-1].end_offset
    ]
    assert [row for task in tasks for row in rows_of([*read_task(task, fs=log.fs)])] == now


@pytest.mark.parametrize(("each", "tasks"), [(0, 1), (1, 8), (3, 3), (7, 2), (8, 1), (9, 1)])
def test_tasks_of_at_most_so_many_offsets(tmp_path: Path, each: int, tasks: int) -> None:
    """A batch may be cut, and is then read by two tasks; no task reads what is before its own."""
    batches = [build_batch(ROWS, base_offset=base) for base in (0, 4)]
    found = plan(replace(written(tmp_path, *batches), split_offsets=each))
    sizes = [task.end_offset - task.start_offset for task in found.tasks]
    assert len(sizes) == tasks and max(sizes) <= (each or 8)
    rows = [row for task in found.tasks for row in rows_of([*read_task(task)])]
    assert [row.offset for row in rows] == list(range(8))
    for task in found.tasks:
        assert task.start_position == (len(batches[0]) if task.start_offset >= 4 else 0)
        assert task.end_position == len(batches[0]) * (1 if task.end_offset <= 4 else 2)


def test_every_moment_of_a_replacement_can_be_planned_and_read() -> None:
    """Between `.cleaned`, `.swap`, `.deleted` and the final names there is no hole."""
    log = in_memory()
    filled(log, 16)
    before = planned(log)
    bases = {task.base_offset for task in before.tasks}
    moments: list[Any] = []
    rename = log.fs.rename

    def watched(old: str, new: str) -> None:
        rename(old, new)
        moments.append(log.fs.crash(keep_unsynced=True))

    log.fs.rename = watched  # type: ignore[method-assign]
    log.clean()
    assert len(moments) > 3 * len(bases)
    last = {row.key: row.value for row in read_plan(before, log.fs)}
    for fs in moments:
        for tasks in (before, plan(ScanRequest(directories=("/logs",)), fs)):
            assert {row.key: row.value for row in read_plan(tasks, fs)} == last


def test_segments_that_retention_has_taken() -> None:
    log = in_memory(cleanup_policy=frozenset({"delete"}))
    filled(log)
    plan_before = planned(log)
    first = plan_before.tasks[2].base_offset
    for task in plan_before.tasks[:2]:
        for suffix in (".log", ".index", ".timeindex"):
            log.fs.unlink(f"{DIRECTORY}/{task.base_offset:020}{suffix}", missing_ok=True)
    with pytest.raises(RecordsGone, match=f"t-0: records from offset 0 .* {first} now"):
        read_plan(plan_before, log.fs)
    lenient = [replace(task, is_lenient=True) for task in plan_before.tasks]
    rows = [row for task in lenient for row in rows_of([*read_task(task, fs=log.fs)])]
    assert [row.offset for row in rows] == list(range(first, 80))
    log.fs.remove_tree(DIRECTORY)
    with pytest.raises(RecordsGone, match="nothing is left"):
        read_plan(plan_before, log.fs)


def test_another_file_under_the_planned_name_is_noticed() -> None:
    """The position of a task is inside of a batch there: its offset is searched anew."""
    log = in_memory()
    filled(log, 6)
    tasks = planned(log, split_bytes=150).tasks
    inner = next(task for task in tasks if task.start_position)
    path = f"{DIRECTORY}/{inner.base_offset:020}.log"
    records = [(1, b"k", b"y" * 100, ())] * 12
    log.fs.write_atomic(path, [build_batch(records, base_offset=inner.base_offset)])
    rows = rows_of([*read_task(inner, fs=log.fs)])
    assert [row.offset for row in rows] == list(range(inner.start_offset, inner.end_offset))


def test_a_batch_of_higher_offsets_at_the_planned_position_is_noticed(tmp_path: Path) -> None:
    """A cleaning took what was before: the task's own records lie before the position now."""
    gone, own, following = (build_batch(ROWS, base_offset=base) for base in (0, 4, 8))
    (whole,) = plan(written(tmp_path, gone, own, following)).tasks
    task = replace(whole, start_position=len(gone), start_offset=4)
    offsets = [row.offset for row in rows_of([*read_task(task)])]
    assert offsets == list(range(4, 12))
    written(tmp_path, own, following)
    assert [row.offset for row in rows_of([*read_task(task)])] == offsets


def test_markers_are_no_records(tmp_path: Path) -> None:
    """Neither of a commit nor of an abort, committed reader or not."""
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    request = written(
        tmp_path,
        build_batch(ROWS, base_offset=0, base_sequence=0, **fields),
        build_end_transaction_marker(
            ControlType.COMMIT,
            producer_id=7,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=13,
            base_offset=4,
        ),
        build_batch(ROWS, base_offset=5, base_sequence=4, **fields),
    )
    assert [row.offset for row in scanned(request)] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_a_range_of_times_reads_its_segments_only(tmp_path: Path) -> None:
    log = in_memory(cleanup_policy=frozenset({"delete"}))
    for _ in range(48):
        log.put(*[(b"k", b"x" * 100)] * 3)
        log.clock.advance(ms=1_800_000)
    begin = 1_700_000_000_000
    whole = planned(log)
    hour = (begin + 10 * 3_600_000, begin + 11 * 3_600_000)
    exact = planned(log, timestamps=hour)
    bounded = planned(log, timestamps=hour, lateness_ms=0)
    by_offsets = planned(
        log,
        start=Positions(Position.timestamp(hour[0])),
        end=Positions(Position.timestamp(hour[1])),
    )
    assert whole.bytes > 15_000
    assert bounded.bytes < 2_000 and by_offsets.bytes < 2_000
    assert bounded.bytes < exact.bytes < whole.bytes
    offsets = [
        [row.offset for row in read_plan(one, log.fs)] for one in (exact, bounded, by_offsets)
    ]
    assert offsets[0] == offsets[1] == offsets[2] == list(range(60, 66))


def test_a_time_in_the_future_does_not_hide_what_is_behind_it() -> None:
    """One record is dated in microseconds: by it, all later ones would be too late to be read."""
    begin = 1_700_000_000_000
    log = in_memory(cleanup_policy=frozenset({"delete"}), message_timestamp_after_max_ms=2**63 - 1)
    for number in range(24):
        at = begin * 1000 if number == 6 else begin + number
        log.log.append_as_leader(build_batch([(at, b"k", b"x" * 100, ())]), leader_epoch=0)
    log.log.update_high_watermark(24)
    options: dict[str, Any] = {"lateness_ms": 0, "with_times": True}

    def seen(now_ms: int | None, *times: int) -> list[int]:
        found = planned(log, timestamps=times, now_ms=now_ms, **options)
        return [row.offset for row in read_plan(found, log.fs) if row.timestamp < begin * 1000]

    assert max(seen(None, begin + 5, begin + 20)) < 12
    assert seen(begin + 99, begin + 5, begin + 20) == [5, *range(7, 20)]
    tasks = planned(log, now_ms=begin + 99, split_bytes=150, **options).tasks
    assert len({task.base_offset for task in tasks}) < len(tasks)  # several parts of a segment
    assert all(task.oldest is None or begin <= task.oldest < begin + 24 for task in tasks)
    assert tasks[-1].oldest is not None


@pytest.mark.parametrize(("before", "offsets"), [(-5000, []), (-4000, [0]), (1, [0, 1, 2])])
def test_times_before_1970_end_a_range_as_others_do(
    tmp_path: Path, before: int, offsets: list[int]
) -> None:
    batches = [
        build_batch([(time, b"k", b"v", ())], base_offset=number)
        for number, time in enumerate((-5000, -4000, 0))
    ]
    request = written(tmp_path, *batches)
    found = replace(request, timestamps=(None, before), lateness_ms=0)
    assert [row.offset for row in scanned(found)] == offsets
