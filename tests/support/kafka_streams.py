"""A Kafka Streams application (tests/integration/WordCount.java) as a process that can be killed.

It is compiled once per run, not at each start, because an application that is killed must be back
in a second. Its jars (Kafka Streams, RocksDB) come from Maven Central, apart from the broker's.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka_jars import LOGGING, ROOT, SHORT_LIVED, TOOLS_VERSION

SOURCE = ROOT / "tests/integration/WordCount.java"
STOP_TIMEOUT_S = 30


def streams_jars() -> str:
    """Return a Java classpath with Kafka Streams."""
    target = ROOT / ".cache" / f"kafka-streams-{TOOLS_VERSION}"
    done = target / ".complete"
    if not done.exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(ROOT / "tests/conformance/jars/streams.xml")),
                f"-Dkafka.version={TOOLS_VERSION}",
                "dependency:copy-dependencies",
                f"-DoutputDirectory={target}",
            ],
            check=True,
        )
        done.touch()
    return f"{target}/*"


def compile_word_count(target: Path) -> str:
    """Compile the application into `target`; return the classpath to start it with."""
    jars = streams_jars()
    subprocess.run(
        ["javac", *("-cp", jars), *("-d", str(target)), str(SOURCE)],
        check=True,
        timeout=60,
    )
    return f"{target}:{jars}"


class WordCount:
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
        self.directory = directory
        self.classpath = classpath
        self.output_file = directory / "streams.out"
        self.arguments = [
            *(bootstrap, "counter", source, target, str(directory / "state"), store),
            *(f"{key}={value}" for key, value in settings.items()),
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self._began = 0

    def start(self) -> "WordCount":
        """Start it, without waiting until it has joined its group."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.output_file.open("ab") as out:
            self._began = out.tell()
            self.process = subprocess.Popen(
                [
                    *("java", "-Xmx384m", *SHORT_LIVED, *LOGGING, "-cp", self.classpath),
                    *("WordCount", *self.arguments),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        return self

    def check(self) -> None:
        """Raise AssertionError with its output if it ended by itself."""
        assert self.process is not None
        assert self.process.poll() is None, self.output()

    @property
    def running(self) -> bool:
        """Whether it has been running its tasks since the last start."""
        with self.output_file.open("rb") as printed:
            printed.seek(self._began)
            return b"state RUNNING" in printed.read()

    def kill(self) -> None:
        """Kill it with SIGKILL: its transaction stays open, its stores are not closed."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it with SIGTERM: it commits and closes its stores."""
        self._end(signal.SIGTERM)

    def output(self) -> str:
        """Return the end of its output."""
        return self.output_file.read_text(errors="replace")[-6000:]

    def _end(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)
            self.process.wait(STOP_TIMEOUT_S)
