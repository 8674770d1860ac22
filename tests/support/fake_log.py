"""A log in memory with the contract of `storage.log.log.Log`, for tests of its users.

Batches are kept as bytes, one after the other in one buffer; offsets and epochs are patched in as a
leader does. `fail_with` makes the next append or read raise, `writing` lets a test stop a threaded
append in the middle. There are no segments, indexes, producers, or validation beyond the checksum.
"""

import threading
from bisect import bisect_right
from types import SimpleNamespace

from broker.replication.partition import Partition
from broker.replication.topic_statistics import TopicStatistics
from config.topic_config import TopicConfig
from protocol.records.batch import read_header, set_place, verify_crc
from protocol.records.errors import CorruptBatch
from protocol.types import TopicPartition
from storage.errors import OffsetOutOfRange
from storage.log.results import AppendInfo, AppendOrigin, FetchIsolation, ReadInfo, TimestampOffset
from storage.waits import PAUSE


class FakeEpochs:
    """`LeaderEpochCache` without a file."""

    def __init__(self):
        self.entries: list[tuple[int, int]] = []

    @property
    def is_empty(self):
        return not self.entries

    @property
    def latest_epoch(self):
        return self.entries[-1][0] if self.entries else None

    def assign(self, epoch, start_offset):
        if not self.entries or self.entries[-1][0] < epoch:
            self.entries.append((epoch, start_offset))

    def epoch_for_offset(self, offset):
        found = [epoch for epoch, start in self.entries if start <= offset]
        return found[-1] if found else None

    def end_offset_for(self, epoch, log_end_offset):
        if not self.entries or epoch < self.entries[0][0] or epoch < 0:
            return (-1, -1)
        if epoch > self.entries[-1][0]:
            return (-1, -1)
        found = max(known for known, _ in self.entries if known <= epoch)
        later = [start for known, start in self.entries if known > epoch]
        return found, (later[0] if later else log_end_offset)


class FakePending:
    def __init__(self, log, records, info):
        self.log, self.records, self.info = log, records, info
        self.size = len(records)
        self.thread = None

    def write(self):
        self.thread = threading.current_thread()
        if self.log.writing is not None:
            self.log.writing.wait(5)


class FakeProducers:
    """`ProducerStateManager` without producers."""

    producer_count = 0

    def has_late_transaction(self, now_ms, max_timeout_ms):
        return False

    def entry(self, producer_id):
        return None


class FakeLog:
    def __init__(self, tp=("t", 0), config=None, directory="/data", log_start_offset=0):
        tp = TopicPartition(*tp)
        self.topic_partition = tp
        self.config = config or TopicConfig()
        self.dir = f"{directory}/{tp}"
        self.leader_epochs = FakeEpochs()
        self.producers = FakeProducers()
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.first_unstable = None
        self.batches: list[tuple[int, int, int]] = []  # base, position, size
        self.data = bytearray()
        self.fail_with = None
        self.writing: threading.Event | None = None
        self.aborted = []
        self.pending = None
        self.reads = 0
        self.dated: list[tuple[int, int]] = []
        self.asked_before = []
        # It is its own parts.
        self.appender = self.offsets = self.reader = self.times = self

    @property
    def start(self):
        return self.log_start_offset

    @property
    def end(self):
        return self.log_end_offset

    @property
    def last_stable(self):
        return self.last_stable_offset

    @property
    def last_stable_offset(self):
        if self.first_unstable is None:
            return self.high_watermark
        return min(self.first_unstable, self.high_watermark)

    def visible_end(self, isolation):
        return {
            FetchIsolation.LOG_END: self.log_end_offset,
            FetchIsolation.HIGH_WATERMARK: self.high_watermark,
            FetchIsolation.TXN_COMMITTED: self.last_stable_offset,
        }[isolation]

    def end_base(self, isolation):
        return 0

    def moment(self):
        return self.log_start_offset, self.last_stable_offset, self.high_watermark, len(self.data)

    def _raise(self):
        if self.fail_with is not None:
            error, self.fail_with = self.fail_with, None
            raise error

    def begin_append(
        self,
        records,
        *,
        leader_epoch,
        origin=AppendOrigin.CLIENT,
        request_version=13,
        opened=None,
    ):
        assert self.pending is None, "two appends at once"
        self._raise()
        header = read_header(records)
        if not verify_crc(records, 0, header):
            raise CorruptBatch("bad crc")
        base = self.log_end_offset
        records = bytearray(records)
        set_place(records, header, base, leader_epoch)
        info = AppendInfo(
            base,
            base + header.last_offset_delta,
            header.max_timestamp,
            base,
            log_start_offset=self.log_start_offset,
            leader_epoch=leader_epoch,
            record_count=header.record_count,
            valid_bytes=header.size,
        )
        self.pending = FakePending(self, records, info)
        return self.pending

    def complete_append(self, pending):
        assert self.pending is pending
        self.pending = None
        info = pending.info
        self.leader_epochs.assign(info.leader_epoch, info.first_offset)
        self.batches.append((info.first_offset, len(self.data), len(pending.records)))
        self.data += pending.records
        self.dated.append((info.max_timestamp, info.first_offset))
        self.log_end_offset = info.last_offset + 1
        return info

    def append_if_light(self, records, **how):
        pending = self.begin_append(records, **how)
        pending.write()
        return self.complete_append(pending)

    def update_high_watermark(self, offset):
        moved = offset != self.high_watermark
        self.high_watermark = offset
        return moved

    def maybe_increment_log_start_offset(self, offset, reason):
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            return True
        return False

    def _bound(self, isolation):
        if isolation is FetchIsolation.LOG_END:
            return self.log_end_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.last_stable_offset

    def read(self, offset, max_bytes, isolation, min_one_message=True):
        self.reads += 1
        self._raise()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                offset,
                start=self.log_start_offset,
                high_watermark=self.high_watermark,
                end=self.log_end_offset,
            )
        committed = isolation is FetchIsolation.TXN_COMMITTED
        bound = self._bound(isolation)
        if offset >= bound:
            return ReadInfo(offset, b"", aborted=[] if committed else None)
        first = bisect_right([base for base, _, _ in self.batches], offset) - 1
        position = self.batches[first][1]
        last = max(i for i, (base, _, _) in enumerate(self.batches) if base < bound)
        end = self.batches[last][1] + self.batches[last][2]
        size = min(end - position, max_bytes)
        incomplete = size < self.batches[first][2]
        if incomplete and min_one_message:
            size, incomplete = self.batches[first][2], False
        records = bytes(self.data[position : position + size])
        aborted = list(self.aborted) if committed else None
        return ReadInfo(offset, records, 0, position, incomplete, aborted)

    async def search(self, timestamp, isolation=FetchIsolation.LOG_END, look=None):
        await PAUSE
        for found, offset in self.dated:
            if found >= timestamp:
                return TimestampOffset(timestamp=found, offset=offset, leader_epoch=0)
        return None

    async def search_latest(self, look=None):
        await PAUSE
        if not self.dated:
            return None
        best = max(found for found, _ in self.dated)
        return next(
            TimestampOffset(timestamp=found, offset=offset, leader_epoch=0)
            for found, offset in self.dated
            if found == best
        )

    def segments_before(self, timestamp, most):
        self.asked_before.append((timestamp, most))
        return [self.high_watermark, self.log_start_offset][:most]


class FakeLogManager:
    """`LogManager` over `FakeLog`s; topics named `b…` live in a second directory."""

    def __init__(self):
        self.logs = {}
        self.deleted = []
        self.failed = []
        self.watermarks = {}
        self.writes = 0

    def get_log(self, tp):
        return self.logs.get(tp)

    def get_or_create_log(self, tp, topic_id, config, is_new=False):
        log = self.logs.get(tp)
        if log is None:
            log = self.logs[tp] = FakeLog(tp, config, self.directory_for(tp))
        return log

    def directory_for(self, tp):
        return "/data-b" if tp.topic.startswith("b") else "/data"

    def dir_of(self, tp):
        return self.directory_for(tp) if tp in self.logs else None

    def async_delete(self, tp):
        self.deleted.append(tp)
        self.logs.pop(tp)

    def report_failure(self, directory, error):
        assert isinstance(error, OSError)
        if directory not in self.failed:
            self.failed.append(directory)

    def read_high_watermarks(self):
        return dict(self.watermarks)

    async def checkpoint_high_watermarks(self):
        self.writes += 1
        self.watermarks = {tp: log.high_watermark for tp, log in self.logs.items()}


class FakeImage:
    """The topics that exist."""

    def __init__(self):
        self.topics = {}

    def add(self, name, topic_id, partitions=1):
        image = SimpleNamespace(
            name=name, topic_id=topic_id, partitions=dict.fromkeys(range(partitions))
        )
        self.topics[name] = image
        return image

    def topic(self, name):
        return self.topics.get(name)

    def topic_by_id(self, topic_id):
        return next((t for t in self.topics.values() if t.topic_id == topic_id), None)


def led_partition(image, config=None, *, index=0, **more):
    """A partition of "t" over such a log, which broker 1 leads."""
    tp = TopicPartition("t", index)
    partition = Partition(
        topic_partition=tp,
        topic_id=b"t" * 16,
        log=FakeLog(tp, config or TopicConfig()),
        image=image,
        broker_id=1,
        statistics=TopicStatistics(),
        **more,
    )
    partition.lead(image)
    return partition
