"""Apache Kafka and this broker recover equal files from the same damage (S-REC-3, S-REC-9)."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.records.batch import iter_batches
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.scripted_workload import (
    TOPICS,
    make_topics,
    produce,
    script,
    transactions,
    wait_until_led,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.conformance

SETTINGS = {"transaction.partition.verification.enable": "false"}
COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
Damage = Callable[[Path], None]


def last(directory: Path, suffix: str = ".log", *, back: int = 1) -> Path:
    return sorted(directory.glob("*" + suffix))[-back]


def cut(count: int) -> Damage:
    """Cut the last bytes of the log, as if they had not reached the disk."""

    def damage(directory: Path) -> None:
        path = last(directory)
        path.write_bytes(path.read_bytes()[:-count])

    return damage


def append(data: bytes) -> Damage:
    """Append bytes to the last batch."""

    def damage(directory: Path) -> None:
        with last(directory).open("ab") as file:
            file.write(data)

    return damage


def flip(*, back: int, at: float) -> Damage:
    """Change a bit of a segment."""

    def damage(directory: Path) -> None:
        path = last(directory, back=back)
        data = bytearray(path.read_bytes())
        data[int(len(data) * at)] ^= 1
        path.write_bytes(data)

    return damage


def remove(*suffixes: str) -> Damage:
    """Remove files."""

    def damage(directory: Path) -> None:
        for suffix in suffixes:
            for path in directory.glob("*" + suffix):
                path.unlink()

    return damage


def garble(suffix: str) -> Damage:
    """Fill an index with random bytes."""

    def damage(directory: Path) -> None:
        for path in directory.glob("*" + suffix):
            path.write_bytes(bytes(range(1, 241)) * 2)

    return damage


def spread(directory: Path) -> None:
    """From the middle on, move offsets too far away for their segment's index (KAFKA-6264)."""
    path = last(directory)
    data = bytearray(path.read_bytes())
    batches = list(iter_batches(data))
    assert len(batches) > 1
    for at, header in batches[len(batches) // 2 :]:
        # The checksum does not cover it.
        data[at : at + 8] = (header.base_offset + 2**31).to_bytes(8, "big")
    path.write_bytes(data)


WRECKS: dict[str, tuple[str, Damage]] = {
    "half-a-batch": ("codecs", cut(17)),
    "half-a-header": ("codecs", append(bytes(8) + b"\0\0\1\0" + b"abc")),
    "zeroed-page": ("codecs", append(bytes(4096))),
    "garbage": ("transactional", append(bytes(range(256)) * 3)),
    "size-beyond-the-end": ("transactional", append(bytes(8) + b"\x7f\xff\xff\xff" + bytes(80))),
    "bit-in-an-old-segment": ("timed", flip(back=3, at=0.5)),
    "bit-in-the-last-segment": ("narrow", flip(back=1, at=0.8)),
    "no-indexes": ("narrow", remove(".index", ".timeindex")),
    "no-snapshots": ("codecs", remove(".snapshot")),
    "no-transaction-index": ("transactional", remove(".txnindex")),
    "garbled-index": ("codecs", garble(".index")),
    "garbled-time-index": ("transactional", garble(".timeindex")),
    "garbled-snapshots": ("codecs", garble(".snapshot")),
    "empty-last-segment": ("timed", lambda d: last(d).write_bytes(b"")),
    "no-epochs": ("codecs", lambda d: (d / "leader-epoch-checkpoint").unlink()),
    "overflown": ("codecs", spread),
    "overflown-transactions": ("transactional", spread),
    "whole": ("transactional", lambda d: None),
}
"""By name, which is also the topic's: the workload that fills it, and the damage."""


def fill(port: int, bootstrap: str) -> None:
    """Fill a topic for each damage."""
    # Recent, because Kafka's recovery drops a producer that was silent for a day.
    sends = list(script(int(time.time() * 1000) - 3_600_000))
    make_topics(bootstrap, {name: TOPICS[o] for name, (o, _) in WRECKS.items() if o in TOPICS})
    with WireClient(port, timeout_s=30) as client:
        for name, (origin, _) in WRECKS.items():
            if origin not in TOPICS:
                transactions(port, bootstrap, name)
                continue
            wait_until_led(client, name)
            for send in sends:
                if send.topic == origin:
                    produce(client, type(send)(name, send.batch))


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in COMPARED
    }


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Kafka's log directory and ours, after both recovered the same damage and stopped cleanly."""
    root = tmp_path_factory.mktemp("wrecks")
    kafkas, ours = root / "kafka", root / "ours"
    kafka = ApacheKafka(kafkas, SETTINGS, heap="512m", java_options=SHORT_LIVED)
    with kafka:
        fill(kafka.port, kafka.bootstrap)
        kafka.stop()
    log_dir = kafkas / "kafka-logs"
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "recovery-point-offset-checkpoint").unlink()
    for name, (_, damage) in WRECKS.items():
        damage(log_dir / f"{name}-0")
    shutil.copytree(log_dir, ours / "kafka-logs")
    with ApacheKafka(kafkas, SETTINGS, heap="512m", java_options=SHORT_LIVED) as kafka:
        with WireClient(kafka.port, timeout_s=30) as client:
            for name in WRECKS:
                wait_until_led(client, name)
        kafka.stop()
    with BrokerProcess(ours):
        pass
    return log_dir, ours / "kafka-logs"


@pytest.mark.parametrize("name", sorted(WRECKS))
def test_s_rec_9_the_same_wreck_is_recovered_to_equal_files(
    recovered: tuple[Path, Path], name: str
) -> None:
    kafkas, ours = (files_in(root / f"{name}-0") for root in recovered)
    wrong = [
        f"{file}: {len(kafkas.get(file, b''))} bytes (Kafka), {len(ours.get(file, b''))} (ours)"
        for file in sorted({*kafkas, *ours})
        if kafkas.get(file) != ours.get(file)
    ]
    assert wrong == []
    assert sum(map(len, kafkas.values())) > 0
    if "overflown" in name:
        assert max(int(file.split(".")[0]) for file in ours if file.endswith(".log")) >= 2**31
