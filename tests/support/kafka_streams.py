"""A Kafka Streams application (tests/integration/WordCount.java) as a process that can be killed.

It is compiled once per run, not at each start, because an application that is killed must be back
in a second. Its jars (Kafka Streams, RocksDB) come from Maven Central, apart from the broker's.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka_jars import (
    LOGGING,
    PROJECTS,
    ROOT,
    SHORT_LIVED,
    TOOLS_VERSION,
    fetched,
)
from tests.support.server_process import ServerProcess

SOURCE = ROOT / "tests/integration/WordCount.java"


def streams_jars() -> str:
    """Return a Java classpath with Kafka Streams."""
    name, version = f"kafka-streams-{TOOLS_VERSION}", f"-Dkafka.version={TOOLS_VERSION}"
    return fetched(name, PROJECTS / "streams.xml", version)


def compile_word_count(target: Path) -> str:
    """Compile the application into `target`; return the classpath to start it with."""
    jars = streams_jars()
    subprocess.run(
        ["javac", *("-cp", jars), *("-d", str(target)), str(SOURCE)],
        check=True,
        timeout=60,
    )
    return f"{target}:{jars}"


class WordCount(ServerProcess):
    """One instance of the application; restarts keep its state directory and settings."""

    def __init__(
        self,
        classpath: str,
        directory: Path,
        *,
        bootstrap: str,
        source: str,
        target: str,
        store: str,
        settings: Mapping[str, str],
    ) -> None:
        super().__init__(directory / "streams.out")
        self.directory = directory
        self.classpath = classpath
        self.arguments = [
            *(bootstrap, "counter", source, target, str(directory / "state"), store),
            *(f"{key}={value}" for key, value in settings.items()),
        ]

    def start(self) -> "WordCount":
        """Start it, without waiting until it has joined its group."""
        self.launch(
            [
                *("java", "-Xmx384m", *SHORT_LIVED, *LOGGING, "-cp", self.classpath),
                *("WordCount", *self.arguments),
            ]
        )
        return self

    @property
    def works(self) -> bool:
        """Whether it has been running its tasks since the last start."""
        return "state RUNNING" in self.printed()
