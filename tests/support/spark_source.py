"""A session and topics for tests of `format("pykafkalog")`, and the progress of checkpoints."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from pipeline.session import KAFKA, start_session
from pipeline.source import register
from protocol.types import TopicPartition
from storage.reader.scan import ScanRequest, plan
from tests.support.broker_process import BrokerProcess

SETTINGS: Final = {
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "100",
    "log.retention.check.interval.ms": "300",
}
"""Settings of a broker whose checkpoints and cleanings come soon."""


def source_session() -> SparkSession:
    """The session with the kafka source and with ours: the running one, if there is one.

    A test that starts a session with other settings ends it (`pipeline.session`).
    """
    session = start_session(
        "tests",
        master="local[2]",
        packages=(KAFKA,),
        conf={
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    register(session)
    return session


def checkpointed(broker: BrokerProcess, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether the files say that so much is committed."""
    request = ScanRequest(directories=(str(broker.log_dir),))
    found = {one.topic_partition: one.high_watermark for one in plan(request).partitions}
    return all(found.get(where) == end for where, end in ends.items())
