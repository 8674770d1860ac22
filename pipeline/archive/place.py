"""The paths of an archive: the table, and beside it the state that only the archive needs.

    /lake/orders                    the table: data, and nothing else for Parquet
    /lake/_orders.archive/          the state, which readers of the table never read
        checkpoint/                 Spark's: offsets and commits of batches
        staging/                    files of the batch in work, not yet whole
        archive.json                format of the table and of the values, with their schema
        topics.json                 partitions and configs of the topics
        lock                        held while an archive or a compaction runs

Paths are local, or of any file system that Hadoop knows (`s3a://…`, `hdfs://…`).
"""

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.errors import PipelineError

_SCHEME: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:/")


def absolute(path: str) -> str:
    """Return the absolute path; a URI stays as it is, without a `/` at its end."""
    if path.startswith("file:"):
        return re.sub(r"^file:/+", "/", path)
    return path.rstrip("/") if _SCHEME.match(path) else str(Path(path).expanduser().absolute())


def is_local(path: str) -> bool:
    """Return whether a path is on this machine's file systems, judging by its form."""
    return not _SCHEME.match(path)


@dataclass(frozen=True, slots=True)
class Place:
    """A table and its state."""

    table: str
    state: str
    staging: str
    """Directory of files that are not whole yet, on the table's file system."""

    @classmethod
    def of(cls, table: str, state: str | None = None) -> "Place":
        """Return a table's place, by default with its state beside it. Raises PipelineError."""
        path = absolute(table)
        parent, _, name = path.rpartition("/")
        if name and parent and not parent.endswith(("/", ":")):
            beside = f"{parent}/_{name}.archive"
        elif name and state is not None:
            beside = f"{path}/_archive"
        else:
            raise PipelineError(f"{table} leaves no room for what lies beside it; name --state")
        return cls(path, absolute(state) if state else beside, f"{beside}/staging")

    @property
    def checkpoint(self) -> str:
        """The directory of Spark's checkpoint."""
        return f"{self.state}/checkpoint"

    @property
    def description(self) -> str:
        """The path of `archive.json` (`pipeline.archive.description`)."""
        return f"{self.state}/archive.json"

    @property
    def topics(self) -> str:
        """The path of `topics.json` (`pipeline.archive.topics`)."""
        return f"{self.state}/topics.json"

    @contextmanager
    def lock(self, patience_s: float = 20) -> Iterator[int]:
        """Lock the table against other processes on this machine; yield the lock's descriptor.

        The lock ends when the descriptor and all copies that child processes inherited are closed.
        After a driver was killed, its JVM needs a moment for that.

        Raises PipelineError if another process still holds the lock after `patience_s` seconds, and
        if the lock cannot be opened.
        """
        if is_local(self.state):
            Path(self.state).mkdir(parents=True, exist_ok=True)
            path = f"{self.state}/lock"
        else:
            digest = hashlib.sha256(self.state.encode()).hexdigest()[:16]
            path = f"{tempfile.gettempdir()}/pykafkalog-archive-{digest}.lock"
        try:
            # O_NOFOLLOW: anybody may put a link into the directory for temporary files.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise PipelineError(f"cannot open the lock {path}: {error.strerror}") from None
        deadline = time.monotonic() + patience_s
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise PipelineError(f"another process is at work on {self.table} (it holds {path})")
            time.sleep(0.1)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
