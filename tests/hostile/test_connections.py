"""More connections than descriptors, and frames that are never finished."""

from pathlib import Path

from protocol.errors import ErrorCode
from tests.hostile.attacks import (
    PATIENCE_S,
    admitted,
    create_topic,
    half_frames,
    idle_connections,
    produce,
)
from tests.hostile.bombs import honest_records
from tests.hostile.watch import TOPIC, watched
from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until

DESCRIPTORS = 256


def test_more_connections_than_descriptors(tmp_path: Path) -> None:
    """The log directory stays online, segments roll, checkpoints are written."""
    limit = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
    settings = {
        "log.segment.bytes": "20000",
        "log.flush.offset.checkpoint.interval.ms": "200",
        "log.flush.start.offset.checkpoint.interval.ms": "200",
        "log.initial.task.delay.ms": "0",
    }
    with BrokerProcess(tmp_path, settings, wrapper=limit) as broker:
        create_topic(broker.port, TOPIC)
        create_topic(broker.port, "rolling")
        batch = honest_records(100, b"v" * 150)
        with watched(broker), idle_connections(broker.port, 2 * DESCRIPTORS) as held:
            for one in admitted(held, most=DESCRIPTORS // 2)[: DESCRIPTORS // 4]:
                one.close()
            wait_until(lambda: produce(broker.port, "rolling", batch) is not None, PATIENCE_S)
            for _ in range(50):
                assert produce(broker.port, "rolling", batch) == ErrorCode.NONE
        assert create_topic(broker.port, "afterwards") == ErrorCode.NONE
        assert produce(broker.port, "afterwards", batch) == ErrorCode.NONE


def test_twenty_frames_of_almost_100_megabytes(broker: BrokerProcess) -> None:
    size = 100 * 1024 * 1024
    with watched(broker), half_frames(broker.port, 20, size, size - 1_000):
        pass


def test_hundreds_of_halves_of_a_megabyte(broker: BrokerProcess) -> None:
    """More than there is memory for. All of them wake the loop in one moment, which is no matter of
    their size: a thousand would be a test of the machine."""
    with watched(broker), half_frames(broker.port, 400, 1 << 20, 1 << 19):
        pass
