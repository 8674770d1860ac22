"""Apache Kafka's own cleaner, in one JVM that answers many questions.

It is tests/conformance/CleanerOracle.java:

with KafkaCleaner(tmp_path) as kafka:
    answer = kafka.clean(directory, config, now_ms=…, first_dirty=0, first_uncleanable=100)
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from config.topic_config import TopicConfig
from tests.support.kafka_jars import LOGGING, ROOT, TOOLS_VERSION, kafka_jars

SOURCE = ROOT / "tests/conformance/CleanerOracle.java"
MAIN = "org.apache.kafka.storage.internals.log.CleanerOracle"
BYTES_PER_SLOT = 24

Answer = dict[str, Any]


class KafkaRefused(Exception):
    """Kafka threw; `kind` is the name of the exception's class."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class KafkaCleaner:
    """The JVM's process."""

    def __init__(self, directory: Path) -> None:
        """Compile the oracle into `directory` and start it; its `oracle.err` is there too."""
        self.directory = directory
        jars = kafka_jars()
        classes = directory / "classes"
        subprocess.run(
            ["javac", *("-cp", jars), *("-d", str(classes)), str(SOURCE)], check=True, timeout=120
        )
        self._errors = (directory / "oracle.err").open("w")
        self._process = subprocess.Popen(
            [
                *("java", "-Xmx1g", "-XX:+UseSerialGC", *LOGGING),
                *("-cp", f"{classes}:{jars}", MAIN),
                kafka_jars(TOOLS_VERSION).removesuffix("/*"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._errors.close()

    @property
    def errors(self) -> str:
        """Return its standard error."""
        return (self.directory / "oracle.err").read_text(errors="replace")

    def ask(self, op: str, **question: Any) -> Answer:
        """Ask one question. Raises KafkaRefused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self.errors[-2000:]
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise KafkaRefused(answer["kind"], answer["error"])
        return answer

    def clean(
        self,
        directory: Path,
        config: TopicConfig,
        *,
        now_ms: int,
        first_dirty: int,
        first_uncleanable: int,
        map_bytes: int,
        io_buffer: int = 512 * 1024,
        max_io_buffer: int = 1_048_588,
        load_factor: float = 0.9,
        log_start: int = 0,
    ) -> Answer:
        """Run `Cleaner.doClean` on a partition directory. Raises KafkaRefused."""
        return self.ask(
            "clean",
            directory=str(directory),
            config=kafka_settings(config),
            now=now_ms,
            firstDirty=first_dirty,
            firstUncleanable=first_uncleanable,
            mapBytes=map_bytes,
            ioBuffer=io_buffer,
            maxIoBuffer=max_io_buffer,
            loadFactor=load_factor,
            logStart=log_start,
        )

    def plan(
        self,
        directory: Path,
        config: TopicConfig,
        *,
        now_ms: int,
        checkpoint: int | None,
        log_start: int = 0,
    ) -> Answer:
        """Return what LogCleanerManager would clean."""
        return self.ask(
            "plan",
            directory=str(directory),
            config=kafka_settings(config),
            now=now_ms,
            checkpoint=checkpoint,
            logStart=log_start,
        )

    def facts(
        self, directory: Path, config: TopicConfig, *, now_ms: int, clean_shutdown: bool = True
    ) -> Answer:
        """Return offsets and producers after Kafka has opened the partition."""
        return self.ask(
            "open",
            directory=str(directory),
            config=kafka_settings(config),
            now=now_ms,
            cleanShutdown=clean_shutdown,
        )

    def dump(self, files: Iterable[Path], *options: str) -> str:
        """Return the output of DumpLogSegments."""
        arguments = ["--files", ",".join(map(str, files)), *options]
        output: str = self.ask("dump", arguments=arguments)["output"]
        return output


def kafka_settings(config: TopicConfig) -> dict[str, str]:
    """Return a topic's settings by Kafka's names. Kafka allows small segments only internally."""
    return {
        "cleanup.policy": ",".join(sorted(config.cleanup_policy)),
        "internal.segment.bytes": str(config.segment_bytes),
        "segment.index.bytes": str(config.segment_index_bytes),
        "index.interval.bytes": str(config.index_interval_bytes),
        "delete.retention.ms": str(config.delete_retention_ms),
        "max.message.bytes": str(config.max_message_bytes),
        "min.compaction.lag.ms": str(config.min_compaction_lag_ms),
        "max.compaction.lag.ms": str(config.max_compaction_lag_ms),
        "min.cleanable.dirty.ratio": str(config.min_cleanable_dirty_ratio),
        "message.timestamp.type": config.message_timestamp_type,
        "file.delete.delay.ms": "0",
    }
