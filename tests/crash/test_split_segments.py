"""Power losses while segments are split whose offsets lie too far apart (KAFKA-6264).

Each workload is a partition directory as an old Kafka may have left it: segments with jumps in
their offsets, some further than an index can express. A broker starts on it, which splits them;
the power goes at any operation of that start, some of the next starts are interrupted as well, and
whatever is on the disk then, every record is found.

As in `test_torn_disks`: CRASH_SEED, CRASH_STATES, CRASH_HUNT.
"""

from dataclasses import dataclass, replace
from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, build_end_transaction_marker
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.paths import (
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    index_file,
    log_file,
    time_index_file,
)
from tests.support.crash_lab import (
    LOG_DIR,
    TP,
    Expectation,
    Sent,
    replayed,
    started,
    verify,
    verify_again,
)
from tests.support.crash_seeds import draw_states, wanted_states
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.manual_clock import ManualClock
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

DIRECTORY = f"{LOG_DIR}/{TP.topic}-{TP.partition}"
FIRST_SEED = 1000
STATES_PER_WORKLOAD = 30
NEAR = (0, 0, 0, 3, 1000)
FAR = (2**31 - 2, 2**31 - 1, 2**31, 2**31 + 5, 2**33)


@dataclass
class Overflown:
    """A directory with such segments, all of it on the disk."""

    fs: FaultyFileSystem
    line: tuple[Sent, ...]
    config: TopicConfig
    clock: ManualClock

    @property
    def expectation(self) -> Expectation:
        end = self.line[-1].last + 1
        return Expectation(lines=(self.line,), flushed=end, start=0, promised_start=0, end=end)


class Builder:
    """Draws one."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.clock = ManualClock()
        self.offset = 0
        self.line: list[Sent] = []
        self.sequence = 0
        self.in_transaction = False
        self.clean = random.random() < 0.3
        # Holes between segments are believed of compacted logs only.
        self.compacted = random.random() < 0.5
        self.config = TopicConfig(
            segment_bytes=100_000,
            index_interval_bytes=random.choice([0, 100, 400]),
            segment_index_bytes=random.choice([96, 4096]),
            cleanup_policy=frozenset({"compact" if self.compacted else "delete"}),
        )

    def build(self) -> Overflown:
        random, fs = self.random, FaultyFileSystem()
        fs.make_dirs(DIRECTORY)
        bases = []
        for _ in range(random.randint(1, 3)):
            bases.append(self.offset)
            self._segment(fs)
        end = self.line[-1].last + 1
        if self.clean:
            fs.write_bytes(f"{LOG_DIR}/{CLEAN_SHUTDOWN_FILE}", b"")
            producers = replayed(fs, self.line)
            producers.map_end_offset = end
            producers.take_snapshot()
        point = random.choice([0, *bases, end])
        fs.write_bytes(f"{DIRECTORY}/{LEADER_EPOCH_CHECKPOINT}", b"0\n1\n0 0\n")
        checkpoint = f"0\n1\n{TP.topic} {TP.partition} {point}\n"
        fs.write_bytes(f"{LOG_DIR}/{RECOVERY_POINT_CHECKPOINT}", checkpoint.encode())
        return Overflown(fs, tuple(self.line), self.config, self.clock)

    def _segment(self, fs: FaultyFileSystem) -> None:
        random, base, begin = self.random, self.offset, len(self.line)
        for at in range(random.randint(1, 7)):
            if at or self.compacted:
                self.offset += random.choice(random.choice([NEAR, NEAR, FAR]))
            self.clock.advance(ms=random.randint(0, 5000))
            self._batch()
        batches = self.line[begin:]
        fs.write_bytes(log_file(DIRECTORY, base), b"".join(batch.data for batch in batches))
        if random.random() < 0.7:
            # Sound as far as they go: only the offsets tell that something is wrong.
            fs.write_bytes(index_file(DIRECTORY, base), b"")
            stamp = max(h.max_timestamp for b in batches for _, h in iter_batches(b.data))
            entry = stamp.to_bytes(8, "big") + bytes(4)
            fs.write_bytes(
                time_index_file(DIRECTORY, base),
                entry if self.clean else random.choice((entry, b"")),
            )

    def _batch(self) -> None:
        random, first = self.random, self.offset
        kind = random.choice(("plain", "idempotent", "transactional", "marker"))
        now = self.clock.wall_ms()
        records = [(now, b"k", random.randbytes(random.randint(0, 200)), ())] * random.choice(
            (1, 3)
        )
        if kind == "marker" and self.in_transaction:
            self.in_transaction = False
            data = bytearray(
                build_end_transaction_marker(
                    random.choice((ControlType.ABORT, ControlType.COMMIT)),
                    producer_id=8,
                    producer_epoch=0,
                    coordinator_epoch=0,
                    timestamp=now,
                )
            )
            data[:8] = first.to_bytes(8, "big")
            data[12:16] = bytes(4)  # leader epoch; neither is part of the checksum
            self._add(bytes(data), first, first)
            return
        fields: dict[str, object] = {}
        if kind != "plain":
            transactional = kind != "idempotent"
            self.in_transaction = self.in_transaction or transactional
            fields = {
                "producer_id": 8 if transactional else 7,
                "producer_epoch": 0,
                "base_sequence": self.sequence,
                "transactional": transactional,
            }
            self.sequence += len(records)
        data = build_batch(records, base_offset=first, leader_epoch=0, **fields)
        self._add(data, first, first + len(records) - 1)

    def _add(self, data: bytes, first: int, last: int) -> None:
        self.line.append(Sent(first, last, 0, data))
        self.offset = last + 1


def run(seed: int, states: int) -> int:
    """Draw `states` states of the start on one directory; returns how many starts were tried."""
    random = Random(f"split-{seed}")
    made = Builder(random).build()
    first = RecordingFileSystem(made.fs)
    manager = started(first, made.clock, made.config)
    for segment in manager.get_log(TP).segments:
        assert segment.read_end()[0] - 1 - segment.base_offset <= MAX_RELATIVE_OFFSET
    loss = PowerLoss(first)
    tried = 0
    for number in range(states):
        at = random.randint(1, loss.last)
        kind = ("state", "kept", "lost")[number % 3]
        state = loss.state(at, random) if kind == "state" else getattr(loss, kind)(at)
        try:
            again = RecordingFileSystem(state)
            truth = verify(state, made.expectation, made.config, made.clock)
            tried += 1
            if number % 3 == 0:
                # A split is finished, or done once more, when the power goes again.
                expected = replace(made.expectation, start=truth.start)
                tried += verify_again(again, expected, made.config, made.clock, random)
        except Exception as error:
            error.add_note(f"CRASH_SEED={seed} split, state {number} ({kind} at {at})")
            raise
    return tried


def test_a_power_loss_in_the_middle_of_a_split_loses_nothing():
    for seed in range(8):
        run(seed, 12)


@pytest.mark.crash
def test_thousands_of_interrupted_splits(record_property, capsys):
    line = draw_states(
        "split",
        lambda seed: run(seed, STATES_PER_WORKLOAD),
        wanted_states(2000),
        FIRST_SEED,
        record_property,
    )
    with capsys.disabled():
        print(f"\n{line}")
