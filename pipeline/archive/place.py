"""Where an archive lies: the table, and beside it what only the archive itself needs.

    /lake/orders                    the table: data, and nothing else for Parquet
    /lake/_orders.archive/          readers of the table never look here
        checkpoint/                 Spark's: offsets and commits of batches
        staging/                    files of the batch in work, not yet whole
        archive.json                format of the table and of the values, with their schema
        lock                        held while an archive or a compaction is at work

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
    """The path as it is meant from any working directory; a URI stays as it is."""
    if path.startswith("file:"):
        return re.sub(r"^file:/+", "/", path)
    return path.rstrip("/") if _SCHEME.match(path) else str(Path(path).expanduser().absolute())


def is_local(path: str) -> bool:
    """On this machine's file systems, as far as the path says."""
    return not _SCHEME.match(path)


@dataclass(frozen=True, slots=True)
class Place:
    """A table and its state."""

    table: str
    state: str
    staging: str
    """Files that are not whole yet; on the table's file system, wherever the state is."""

    @classmethod
    def of(cls, table: str, state: str | None = None) -> "Place":
        """The table at this path, its state beside it unless told. Raises PipelineError."""
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
        """Spark's."""
        return f"{self.state}/checkpoint"

    @property
    def description(self) -> str:
        """The file that says what is archived how."""
        return f"{self.state}/archive.json"

    @contextmanager
    def lock(self, patience_s: float = 20) -> Iterator[int]:
        """Nobody else on this machine is at work on this table; a descriptor that keeps it so.

        The lock ends when the descriptor, and each copy that a child process inherited, is closed.
        The JVM of a driver that was killed needs a moment for that.

        Raises PipelineError when somebody still holds it after so many seconds.
        """
        if is_local(self.state):
            Path(self.state).mkdir(parents=True, exist_ok=True)
            path = f"{self.state}/lock"
        else:
            digest = hashlib.sha256(self.state.encode()).hexdigest()[:16]
            path = f"{tempfile.gettempdir()}/pykafkalog-archive-{digest}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
