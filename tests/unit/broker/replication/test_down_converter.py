"""Down-conversion for a reply: what is read, how much is given, what goes wrong."""

import errno
from types import SimpleNamespace

import pytest
import trio

from broker.replication import down_converter
from broker.replication.batch_looker import BatchLooker
from broker.replication.down_converter import DownConverter, HeldRecords
from broker.replication.read_plan import FetchTarget
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers, WorkerDied
from protocol.errors import ErrorCode
from protocol.messages.fetch import PartitionData
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.message_set import iter_legacy_records
from storage.errors import OutOfResources, StorageError
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from tests.support.faulty_filesystem import FaultyFileSystem

KB = 1024


class Counted(InlineWorkers):
    """Notes what child processes are given."""

    def __init__(self, fails=None):
        self.work = []
        self.fails = fails

    async def in_process(self, work, *values):
        self.work.append((work, values))
        if self.fails is not None:
            raise self.fails
        return await super().in_process(work, *values)


class Conversion:
    """One converter over the content of a file."""

    def __init__(self, content, fs=None, path="/log", workers=None):
        self.fs = fs or FaultyFileSystem()
        self.file = self.fs.open(path, create=True)
        self.file.pwrite(content, 0)
        self.slice = FileSlice(self.file, 0, len(content))
        self.failed = []
        self.workers = workers or Counted()
        self.converter = DownConverter(
            BatchLooker(), lambda partition, error: self.failed.append(error)
        )

    def run(
        self, offset=0, *, partition_bytes=1 << 20, max_bytes=1 << 26, partitions=1, partition=False
    ):
        entries = []
        for _ in range(partitions):
            target = FetchTarget()
            target.fetch_offset, target.max_bytes = offset, partition_bytes
            if partition:
                target.partition = SimpleNamespace(log=SimpleNamespace(dir="/logs/t-0"))
            entries.append((target, PartitionData(records=self.slice)))
        driver = Driver(self.workers, SystemClock())
        trio.run(driver.run, self.converter.convert(entries, 1, max_bytes))
        return [data for _, data in entries]


def offsets(data):
    records = data.records.read() if isinstance(data.records, HeldRecords) else data.records
    return [m.offset for at, _ in iter_batches(records) for m in iter_legacy_records(records, at)]


def batch(count=10, base=0, size=100, codec=CompressionType.NONE):
    return build_batch([(0, None, bytes(size), ())] * count, base_offset=base, codec=codec)


def marker(offset):
    return build_end_transaction_marker(
        ControlType.COMMIT,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=9,
        base_offset=offset,
    )


def test_records_become_a_message_set():
    (data,) = Conversion(batch() + batch(base=10)).run()
    assert offsets(data) == list(range(20))


def test_no_more_is_read_than_a_reply_can_take(monkeypatch):
    monkeypatch.setattr(down_converter, "REPLY_BYTES", 256 * KB)
    conversion = Conversion(b"".join(batch(500, base=500 * at) for at in range(10)))
    conversion.run()
    ((_, values),) = conversion.workers.work
    assert len(values[0]) == 256 * KB


def test_a_reply_is_limited_and_partitions_share_it(monkeypatch):
    monkeypatch.setattr(down_converter, "REPLY_BYTES", 256 * KB)
    content = b"".join(batch(500, base=500 * at) for at in range(10))  # 530 KB
    alone = Conversion(content).run()
    assert 200 * KB < len(alone[0].records) <= 256 * KB
    shared = Conversion(content).run(partitions=8)
    sizes = [len(data.records) for data in shared]
    assert sum(sizes) <= 256 * KB + 64 * KB
    assert sizes[0] <= 64 * KB
    assert sizes[2] > 0


def test_replies_that_wait_to_be_sent_make_the_next_ones_small(monkeypatch):
    monkeypatch.setattr(down_converter, "HELD_BYTES", 512 * KB)
    content = b"".join(batch(500, base=500 * at) for at in range(10))
    conversion = Conversion(content)
    replies = [conversion.run()[0] for _ in range(9)]
    held = sum(len(data.records) for data in replies)
    assert conversion.converter.held == held
    assert len(replies[0].records) > 100 * KB
    assert 0 < len(replies[-1].records) <= 64 * KB
    replies.clear()
    assert conversion.converter.held == 0


def test_a_first_batch_larger_than_the_reply_is_read_whole(monkeypatch):
    monkeypatch.setattr(down_converter, "REPLY_BYTES", 64 * KB)
    (data,) = Conversion(batch(3000)).run()
    found = offsets(data)
    assert found == list(range(len(found)))
    assert 0 < len(found) < 3000
    (data,) = Conversion(batch(3000)).run(offset=2500)
    assert offsets(data)[0] == 2500


def test_a_batch_that_was_cut_by_a_hard_limit_says_too_large():
    conversion = Conversion(batch())
    conversion.slice.size = 200
    (data,) = conversion.run()
    assert bytes(data.records) == b"\0" * 8 + b"\x7f\xff\xff\xff"


def test_markers_are_passed_by_for_what_follows(monkeypatch):
    monkeypatch.setattr(down_converter, "REPLY_BYTES", 64 * KB)
    markers = b"".join(marker(at) for at in range(2000))  # 150 KB
    (data,) = Conversion(markers + batch(base=2000)).run()
    assert offsets(data) == list(range(2000, 2010))
    (data,) = Conversion(markers).run()
    assert (data.records, data.error_code) == (b"", 0)


def test_what_cannot_be_converted_is_told():
    (data,) = Conversion(batch(codec=CompressionType.ZSTD)).run()
    assert data.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (data.high_watermark, data.records) == (-1, b"")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (WorkerDied("killed"), []),
        (OSError(errno.EMFILE, "none left"), [OutOfResources]),
        (OSError(errno.EIO, "broken"), [StorageError]),
    ],
)
def test_only_a_failed_disk_is_reported_and_no_lack_of_processes_or_descriptors(error, told):
    conversion = Conversion(batch(), workers=Counted(error))
    (data,) = conversion.run(partition=True)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER  # clients of v0-3 try again
    assert data.records == b""
    assert [type(failure) for failure in conversion.failed] == told


def test_the_child_reads_the_file_itself_unless_it_was_renamed(tmp_path):
    conversion = Conversion(batch(), OsFileSystem(), str(tmp_path / "log"))
    (data,) = conversion.run()
    assert offsets(data) == list(range(10))
    ((_, values),) = conversion.workers.work
    assert not isinstance(values[0], bytes)
    (tmp_path / "log").rename(tmp_path / "gone")
    (tmp_path / "log").write_bytes(b"another file" * 100)
    (data,) = conversion.run()
    assert offsets(data) == list(range(10))
    assert isinstance(conversion.workers.work[-1][1][0], bytes)
