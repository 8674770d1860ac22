"""Fetches what the tests take from Maven Central: `python -m tests.support.fetch`.

A test that lacks a jar fetches it, too; but workers that run side by side would all fetch at once,
into the same directories.
"""

from pyspark import __version__

from pipeline.session import AVRO, COMPLETE, DELTA, ICEBERG, KAFKA, end_jvm, start_session
from tests.support.kafka_jars import (
    KAFKA_VERSION,
    ROOT,
    TOOLS_VERSION,
    compaction_tester_jars,
    kafka_jars,
)
from tests.support.kafka_streams import streams_jars

OLD_KAFKA = "3.9.0"


def fetch() -> None:
    """Fetch all of it, once per checkout and version."""
    for version in (KAFKA_VERSION, TOOLS_VERSION, OLD_KAFKA):
        kafka_jars(version)
    compaction_tester_jars()
    streams_jars()
    done = ROOT / ".cache" / f"spark-{__version__}.complete"
    if not done.exists():
        formats = (AVRO, ICEBERG, DELTA) if __version__ == COMPLETE else ()
        start_session("fetch", master="local[1]", packages=(KAFKA, *formats))
        end_jvm()
        done.touch()


if __name__ == "__main__":
    fetch()
