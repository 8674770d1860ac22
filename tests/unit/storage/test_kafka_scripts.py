"""Random operations with the answers of Apache Kafka's own classes (tests/golden/storage)."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from protocol.errors import KafkaError
from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, read_header
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, EndTransactionMarker
from protocol.types import TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.log.results import AppendOrigin
from storage.os_filesystem import OsFileSystem
from storage.producers.snapshot import decode_snapshot
from storage.producers.state import ProducerStateManager
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.producer_snapshots import encode_snapshot

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "storage"

EXCEPTIONS: dict[type[KafkaError], str] = {
    OutOfOrderSequence: "OutOfOrderSequenceException",
    InvalidProducerEpoch: "InvalidProducerEpochException",
    InvalidTransactionState: "InvalidTxnStateException",
    TransactionCoordinatorFenced: "TransactionCoordinatorFencedException",
}


def script(name: str) -> Iterator[tuple[int, list[str], str]]:
    """(line number, words of the operation, answer)."""
    for number, line in enumerate((GOLDEN / name).read_text().splitlines(), start=1):
        operation, answer = line.split("->")
        yield number, operation.split(), answer.strip()


def test_s_idx_3_and_s_idx_5_indexes_answer_and_store_as_kafka(tmp_path: Path) -> None:
    """S-IDX-1 to S-IDX-5, S-ROLL-4: 3000 entries, 1200 lookups, truncations, closed files."""
    fs = OsFileSystem()
    offsets = OffsetIndex(fs, str(tmp_path / "offsets"), 1000, 30000)
    times = TimeIndex(fs, str(tmp_path / "times"), 1000, 30000)
    for number, (operation, *words), answer in script("index.script"):
        arguments = [int(word) for word in words]
        found: object
        match operation:
            case "append":
                offsets.append(*arguments)
                found = offsets.entries
            case "time":
                times.maybe_append(*arguments)
                found = times.entries
            case "lookup":
                found = "{} {}".format(*offsets.lookup(*arguments))
            case "lookup_time":
                found = "{} {}".format(*times.lookup(*arguments))
            case "upper":
                upper = offsets.upper_bound(*arguments)
                found = "none" if upper is None else "{} {}".format(*upper)
            case _:
                offsets.truncate_to(*arguments)
                times.truncate_to(*arguments)
                found = f"{offsets.entries} {times.entries} {offsets.last_offset}"
                offsets._check()
                times._check()
        assert str(found) == answer, f"line {number}"
    offsets.close()
    times.close()
    kafka = GOLDEN / "00000000000000001000.index"
    assert (tmp_path / "offsets").read_bytes() == kafka.read_bytes()
    assert (tmp_path / "times").read_bytes() == kafka.with_suffix(".timeindex").read_bytes()


def test_s_read_5_transaction_index_answers_and_stores_as_kafka() -> None:
    fs = FaultyFileSystem()
    fs.make_dirs("/log")
    index = TransactionIndex(fs, "/log/i", 50)
    for number, (operation, *words), answer in script("txnindex.script"):
        arguments = [int(word) for word in words]
        if operation == "append":
            producer_id, first, last, stable = arguments
            index.append(
                AbortedTxn(
                    producer_id=producer_id,
                    first_offset=first,
                    last_offset=last,
                    last_stable_offset=stable,
                )
            )
        elif operation == "collect":
            found, complete = index.collect_aborted(*arguments)
            text = " ".join([str(complete).lower(), *(str(txn.last_offset) for txn in found)])
            assert text == answer, f"line {number}"
        else:
            index.truncate_to(*arguments)
            assert str(index.entries) == answer
        index._check()
    golden = (GOLDEN / "00000000000000000050.txnindex").read_bytes()
    assert fs.read_bytes("/log/i") == golden
    fs.write_bytes("/log/kafka", golden)
    theirs = TransactionIndex(fs, "/log/kafka", 50)
    theirs.sanity_check()
    assert theirs.all_aborted() == index.all_aborted()


class ProducerReplay:
    """Runs one line of producers.script and words the outcome as the generator does."""

    def __init__(self) -> None:
        self.fs = FaultyFileSystem()
        self.fs.make_dirs("/p")
        self.manager = ProducerStateManager(
            self.fs, TopicPartition("topic", 0), "/p", expiration_ms=20000
        )
        self.end = 0
        template = build_batch([(0, None, b"v", [])], producer_id=0, producer_epoch=0)
        self.header: BatchHeader = read_header(template)

    def run(self, operation: str, words: list[str]) -> str:
        answer: str | None = getattr(self, operation)(*words)
        state = self._state()
        return state if answer is None else f"{answer} {state}"

    def _state(self) -> str:
        unstable = self.manager.first_unstable_offset
        begun = (entry.current_txn_first_offset for entry in self.manager.producers.values())
        undecided = min((offset for offset in begun if offset >= 0), default=None)
        numbers = [-1 if value is None else value for value in (unstable, undecided)]
        return f"| {numbers[0]} {numbers[1]} {len(self.manager.producers)}"

    def batch(
        self, pid: str, epoch: str, sequence: str, count: str, kind: str, origin: str, now: str
    ) -> str:
        header = self.header
        header.producer_id = int(pid)
        header.producer_epoch = int(epoch)
        header.base_sequence = int(sequence)
        header.last_offset_delta = int(count) - 1
        header.attributes = TRANSACTIONAL_BIT if kind == "txn" else 0
        try:
            verdict = self.manager.analyze(header, AppendOrigin[origin])
        except KafkaError as error:
            return EXCEPTIONS[type(error)]
        if verdict.duplicate_of is not None:
            first, last = verdict.duplicate_of.first_offset, verdict.duplicate_of.last_offset
            return f"duplicate {first} {last}"
        last = self.end + int(count) - 1
        assert self.manager.update(header, self.end, last, int(now)) is None
        self._advance(int(count))
        return "ok"

    def marker(
        self, pid: str, epoch: str, coordinator: str, outcome: str, version: str, now: str
    ) -> str:
        header = self.header
        header.producer_id = int(pid)
        header.producer_epoch = int(epoch)
        header.base_sequence = -1
        header.attributes = TRANSACTIONAL_BIT | CONTROL_BIT
        kind = ControlType.ABORT if outcome == "abort" else ControlType.COMMIT
        marker = EndTransactionMarker(control_type=kind, coordinator_epoch=int(coordinator))
        try:
            self.manager.analyze(
                header, AppendOrigin.COORDINATOR, marker, transaction_version=int(version)
            )
        except KafkaError as error:
            return EXCEPTIONS[type(error)]
        completed = self.manager.update(header, self.end, self.end, int(now), marker)
        self._advance(1)
        if completed is None:
            return "none"
        stable = self.manager.last_stable_offset(completed)
        self.manager.complete_txn(completed)
        aborted = str(completed.is_aborted).lower()
        return f"completed {completed.first_offset} {completed.last_offset} {aborted} {stable}"

    def _advance(self, by: int) -> None:
        self.end += by
        self.manager.map_end_offset = self.end

    def high_watermark(self, offset: str) -> None:
        self.manager.on_high_watermark_updated(int(offset))

    def expire(self, now: str) -> None:
        at_once(self.manager.expire(int(now)))

    def snapshot(self) -> str:
        offset = self.manager.take_snapshot(sync=False)
        if offset is None:
            return "none"
        data = self.fs.read_bytes(self.manager.snapshots.path(offset))
        return hashlib.md5(data).hexdigest()

    def final(self, offset: str) -> str:
        self.manager.map_end_offset = int(offset)
        return self.snapshot()

    def truncate(self, end: str, now: str) -> str:
        self.manager.truncate_and_reload(0, int(end), int(now))
        latest = self.manager.snapshots.latest
        return f"{self.manager.map_end_offset} {-1 if latest is None else latest}"


def test_producer_state_decides_and_stores_as_kafka() -> None:
    """S-IDEM-1, S-IDEM-2, S-TXN-1, S-TXN-2, S-FMT-3: 3000 operations, each snapshot byte-equal."""
    replay = ProducerReplay()
    for number, (operation, *words), answer in script("producers.script"):
        found = replay.run(operation, words)
        if operation == "final":
            found = found.split(" ", 1)[0]
            data = replay.fs.read_bytes(replay.manager.snapshots.path(int(words[0])))
            assert data == (GOLDEN / "producers.snapshot").read_bytes()
        assert found == re.sub(r"\s+", " ", answer), f"line {number}"
        replay.manager._check()


def test_snapshot_of_kafka_is_read_and_written_back_unchanged() -> None:
    data = (GOLDEN / "producers.snapshot").read_bytes()
    entries = decode_snapshot(data)
    assert len(entries) == 7
    assert encode_snapshot(entries) == data


def test_s_read_12_and_s_rec_6_leader_epochs_answer_and_store_as_kafka() -> None:
    fs = FaultyFileSystem()
    fs.make_dirs("/p")
    cache = LeaderEpochCache(fs, "/p/leader-epoch-checkpoint", Random(1))
    for number, (operation, *words), answer in script("epochs.script"):
        arguments = [int(word) for word in words]
        found: object
        match operation:
            case "end_offset_for":
                found = "{} {}".format(*cache.end_offset_for(*arguments))
            case "epoch_for_offset":
                epoch = cache.epoch_for_offset(*arguments)
                found = -1 if epoch is None else epoch
            case _:
                change = {
                    "assign": cache.assign,
                    "from_end": cache.truncate_from_end,
                    "from_start": cache.truncate_from_start,
                }[operation]
                change(*arguments)
                found = " ".join(f"{e.epoch}:{e.start_offset}" for e in cache.entries)
        assert str(found) == answer, f"line {number}"
        cache._check()
    cache.flush()
    golden = (GOLDEN / "leader-epoch-checkpoint").read_bytes()
    assert fs.read_bytes("/p/leader-epoch-checkpoint") == golden
    assert LeaderEpochCache(fs, "/p/leader-epoch-checkpoint", Random(1)).entries == cache.entries


@pytest.mark.parametrize("name", ["00000000000000001000.index", "00000000000000001000.timeindex"])
def test_indexes_closed_by_kafka_pass_the_sanity_check(name: str) -> None:
    kind = TimeIndex if name.endswith("timeindex") else OffsetIndex
    index = kind(OsFileSystem(), str(GOLDEN / name), 1000, 30000)
    index.sanity_check(full=True)
    index._check()
    assert index.entries == (GOLDEN / name).stat().st_size // kind.ENTRY_SIZE
