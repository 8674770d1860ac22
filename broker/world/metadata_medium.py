"""The store of a stand-alone broker's metadata tree: rows of a table, changed atomically.

    sqlite_medium.py    a SQLite file beside the logs: for a broker on a machine
    journal_medium.py   a journal on the broker's own `FileSystem`, in memory or not
    `TransientMedium`   nowhere: for dry runs

A medium is used by one store, which makes one call at a time; calls may block, so `Workers` make
them. The tree itself, with its rules and its watches, belongs to `broker.cluster`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class NodeRow(NamedTuple):
    """One node of the tree."""

    path: str
    value: bytes
    version: int


class MediumError(Exception):
    """The medium cannot be used: it is another program's, damaged, or of a newer layout."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class MediumFailed(MediumError):
    """A write failed (disk full, file gone) and has changed nothing."""


class MetadataMedium(Protocol):
    """One opened table of rows."""

    @property
    def path(self) -> str:
        """The path of its file, for messages."""
        ...

    @property
    def fresh(self) -> bool:
        """Whether it was made when it was opened."""
        ...

    def load(self) -> list[NodeRow]:
        """All rows. Raises MediumError."""
        ...

    def write(self, kept: Sequence[NodeRow], gone: Sequence[str]) -> None:
        """Put the rows `kept`, remove the paths `gone`, atomically; durable once it returns.

        Raises MediumFailed.
        """
        ...

    def close(self) -> None:
        """Close it. Safe to call twice."""
        ...


class MetadataMedia(Protocol):
    """Opens media of one kind."""

    @property
    def file_name(self) -> str:
        """The name of the file in a log directory that holds the table."""
        ...

    def open(self, path: str) -> MetadataMedium:
        """Open or make the file. May block. Raises MediumError."""
        ...


class TransientMedium:
    """A medium that stores nothing: it is empty whenever it is opened."""

    path = "memory"
    fresh = True

    def load(self) -> list[NodeRow]:
        """See `MetadataMedium`."""
        return []

    def write(self, kept: Sequence[NodeRow], gone: Sequence[str]) -> None:
        """See `MetadataMedium`."""

    def close(self) -> None:
        """See `MetadataMedium`."""
