"""Where a stand-alone broker's metadata tree is kept: rows of a table, changed all or nothing.

    sqlite_medium.py    a SQLite file beside the logs: what a broker on a machine uses
    journal_medium.py   a journal on the broker's own `FileSystem`, in memory or not
    `TransientMedium`   nowhere: for a look at what would be written

A medium is used by one store, which lets one call end before it makes the next; a call may block,
so it is made by `Workers`. The tree itself, its rules and its watches, is `broker.cluster`'s.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """One node of the tree."""

    path: str
    value: bytes
    version: int


class MediumError(Exception):
    """The medium cannot be used: it is somebody else's, damaged, or of a newer layout."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class MediumFailed(MediumError):
    """A write failed (disk full, file gone): nothing of it stands."""


class MetadataMedium(Protocol):
    """One opened table of rows."""

    @property
    def path(self) -> str:
        """Where it lies, for messages."""
        ...

    @property
    def fresh(self) -> bool:
        """Nothing was there before it was opened."""
        ...

    def load(self) -> list[Row]:
        """All rows. Raises MediumError."""
        ...

    def write(self, kept: Sequence[Row], gone: Sequence[str]) -> None:
        """Put rows, remove paths: durable and whole when this returns. Raises MediumFailed."""
        ...

    def close(self) -> None:
        """Let go of it. Safe to call twice."""
        ...


class MetadataMedia(Protocol):
    """Opens media of one kind."""

    @property
    def file_name(self) -> str:
        """Of the file that holds the table, in a log directory."""
        ...

    def open(self, path: str) -> MetadataMedium:
        """Open or make the file. May block. Raises MediumError."""
        ...


class TransientMedium:
    """A medium that keeps nothing: a start finds it empty."""

    path = "memory"
    fresh = True

    def load(self) -> list[Row]:
        """See `MetadataMedium`."""
        return []

    def write(self, kept: Sequence[Row], gone: Sequence[str]) -> None:
        """See `MetadataMedium`."""

    def close(self) -> None:
        """See `MetadataMedium`."""
