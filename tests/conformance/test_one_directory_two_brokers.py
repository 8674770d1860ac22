"""Apache Kafka and this broker hand one log directory to each other (S-FMT-1, S-FMT-2)."""

import time
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import KAFKA_VERSION, java
from tests.support.scripted_workload import Send, produce
from tests.support.shared_directory import (
    SharedDirectory,
    View,
    commit_some,
    consume_in_group,
    look,
    make_topics,
    new_producer_id,
    transact,
    wait_until_led,
    write,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.conformance

NEW, OLD = KAFKA_VERSION, "3.9.0"
COMPLAINTS = ("Mismatch", "mismatch", "Non-", "Found", "isvalid: false", "Exception", "not match")
DUMP = "org.apache.kafka.tools.DumpLogSegments"
DUMP_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


class RawProducer:
    """An idempotent producer that continues its sequence numbers at another broker."""

    def __init__(self, port: int) -> None:
        self.producer_id = new_producer_id(port)
        self.begin = int(time.time() * 1000)  # a producer silent for a day is forgotten
        self.sent: list[bytes] = []
        self.offsets: list[int] = []

    def batch(self, sequence: int) -> bytes:
        rows = [(self.begin + sequence, b"%d" % sequence, b"raw", [])]
        return build_batch(
            rows,
            codec=CompressionType.LZ4,
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )

    def go_on(self, port: int, count: int = 3) -> None:
        """Duplicates are recognised, a gap is refused, and the next batches are appended."""
        with WireClient(port, timeout_s=20) as client:
            for batch, offset in list(zip(self.sent, self.offsets, strict=True))[-1:]:
                assert produce(client, Send("raw", batch))[1:3] == (0, offset)
            ahead = self.batch(len(self.sent) + 7)
            if self.sent:
                assert produce(client, Send("raw", ahead))[1] == 45
            for _ in range(count):
                batch = self.batch(len(self.sent))
                _, code, offset, _ = produce(client, Send("raw", batch))
                assert code == 0
                self.sent.append(batch)
                self.offsets.append(offset)


def end(broker: ApacheKafka | BrokerProcess, *, clean: bool) -> None:
    if clean:
        broker.stop()
    else:
        broker.kill()


def dump(directories: list[Path], *options: str, kinds: tuple[str, ...] = DUMP_FILES) -> str:
    """Return what Kafka's DumpLogSegments prints of all files of the directories."""
    files = [
        str(path)
        for directory in directories
        for path in sorted(directory.iterdir())
        if path.suffix in kinds and path.stat().st_size
    ]
    result = java(DUMP, "--files", ",".join(files), *options)
    return result.stdout + result.stderr


def complaints(text: str) -> list[str]:
    """Return the lines of DumpLogSegments that name faults."""
    lines = text.splitlines()
    return [
        line
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if any(word in line for word in COMPLAINTS)
        # It reports a gap for a segment that begins with a marker, in Kafka's own files too.
        and not following.strip().startswith("-1 is followed by")
    ]


def epochs_rise(view: View) -> bool:
    return all(
        [row[5] for row in rows] == sorted(row[5] for row in rows if row[5] is not None)
        for rows in view.records.values()
    )


@pytest.mark.parametrize(
    ("version", "clean", "rounds"),
    [(NEW, True, 2), (NEW, False, 1), (OLD, True, 1), (OLD, False, 1)],
    ids=["new-clean", "new-killed", "old-clean", "old-killed"],
)
def test_s_fmt_2_a_directory_goes_to_and_fro(
    tmp_path: Path, version: str, clean: bool, rounds: int
) -> None:
    shared = SharedDirectory(tmp_path, version)
    # Kafka writes …
    with shared.kafka() as kafka:
        make_topics(kafka.bootstrap)
        write(kafka.bootstrap, "kafka")
        held = transact(kafka.bootstrap, "open", leave_open=True)
        raw = RawProducer(kafka.port)
        raw.go_on(kafka.port)
        consume_in_group(kafka.bootstrap, 120)
        commit_some(kafka.bootstrap, {"raw-0": 2})
        seen = look(kafka.bootstrap, kafka.port)
        end(kafka, clean=clean)
    del held
    _, high, stable = seen.watermarks["transacted-0"]
    assert stable < high
    assert len(seen.aborted) == 2
    assert seen.group["raw-0"] == 2
    assert sum(seen.group.values()) == 122

    assert shared.adopt()["plain"] == "adopted"
    for turn in range(rounds):
        # … this broker serves the same and goes on …
        with shared.ours() as broker:
            assert look(broker.bootstrap, broker.port) == seen
            write(broker.bootstrap, f"ours {turn}", count=60)
            transact(broker.bootstrap, "open" if turn == 0 else "ours")
            raw.go_on(broker.port)
            commit_some(broker.bootstrap, {"raw-0": len(raw.sent)})
            seen = look(broker.bootstrap, broker.port)
            assert seen.group["raw-0"] == len(raw.sent)
            assert seen.watermarks["transacted-0"][1] == seen.watermarks["transacted-0"][2]
            assert epochs_rise(seen)
            end(broker, clean=clean)
        if turn == 0:
            check_with_kafkas_tool(shared, clean=clean)
        # … and Kafka takes it back.
        with shared.kafka() as kafka:
            wait_until_led(kafka.bootstrap)
            assert look(kafka.bootstrap, kafka.port) == seen
            write(kafka.bootstrap, f"kafka {turn}", count=60)
            transact(kafka.bootstrap, "ours")
            raw.go_on(kafka.port)
            commit_some(kafka.bootstrap, {"raw-0": len(raw.sent)})
            seen = look(kafka.bootstrap, kafka.port)
            end(kafka, clean=clean)
        assert set(shared.adopt().values()) == {"known already"}
    with shared.ours() as broker:
        assert look(broker.bootstrap, broker.port) == seen
        raw.go_on(broker.port)
        end(broker, clean=clean)


def check_with_kafkas_tool(shared: SharedDirectory, *, clean: bool) -> None:
    """Check the files of both brokers, after this one stopped or was killed (S-FMT-1)."""
    directories = shared.partition_dirs()
    if not clean:  # indexes are not cut to size yet
        assert complaints(dump(directories, "--deep-iteration", kinds=(".log",))) == []
        return
    assert complaints(dump(directories, "--deep-iteration", "--verify-index-only")) == []
    sane = dump(directories, "--index-sanity-check", kinds=DUMP_FILES[1:])
    assert complaints(sane) == []
    assert "passed sanity check" in sane
    offsets = dump(sorted(shared.log_dir.glob("__consumer_offsets-*")), "--offsets-decoder")
    assert complaints(offsets) == []
    assert '"group":"readers"' in offsets
    transactions = dump(
        sorted(shared.log_dir.glob("__transaction_state-*")), "--transaction-log-decoder"
    )
    assert complaints(transactions) == []
    assert '"transactionalId":"id-open"' in transactions
