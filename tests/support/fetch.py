"""Fetches what the tests take from Maven Central: `python -m tests.support.fetch`.

A test that lacks a jar fetches it, too; but workers that run side by side would all fetch at once,
into the same directories. Kafka's classes are archived as well (`kafka_jars.shared_classes`).
"""

import tempfile
from pathlib import Path

from pyspark import __version__

from pipeline.session import AVRO, COMPLETE, DELTA, ICEBERG, KAFKA, end_jvm, start_session
from tests.support.apache_kafka import ApacheKafka
from tests.support.kafka_jars import (
    CACHE,
    KAFKA_VERSION,
    SHORT_LIVED,
    TOOLS_VERSION,
    archive_of,
    compaction_tester_jars,
    java,
    kafka_jars,
)
from tests.support.kafka_streams import streams_jars

OLD_KAFKA = "3.9.0"


def fetch() -> None:
    """Fetch all of it, once per checkout and version."""
    for version in (KAFKA_VERSION, TOOLS_VERSION, OLD_KAFKA):
        kafka_jars(version)
        if not archive_of(version).exists():
            archive_classes(version)
    compaction_tester_jars()
    streams_jars()
    done = CACHE / f"spark-{__version__}.complete"
    if not done.exists():
        formats = (AVRO, ICEBERG, DELTA) if __version__ == COMPLETE else ()
        start_session("fetch", master="local[1]", packages=(KAFKA, *formats))
        end_jvm()
        done.touch()


def archive_classes(version: str) -> None:
    """Start and end a broker, or of the release that only tools are taken from a tool."""
    made = archive_of(version).with_suffix(".new")
    option = f"-XX:ArchiveClassesAtExit={made}"
    with tempfile.TemporaryDirectory() as directory:
        if version == TOOLS_VERSION:
            with ApacheKafka(Path(directory), java_options=SHORT_LIVED) as kafka:
                words = ("--bootstrap-server", kafka.bootstrap, "--create", "--topic", "t")
                java("org.apache.kafka.tools.TopicCommand", *words, options=(option,))
        else:
            kafka = ApacheKafka(
                Path(directory), version=version, java_options=(*SHORT_LIVED, option)
            )
            kafka.start().stop()
    made.rename(archive_of(version))


if __name__ == "__main__":
    fetch()
