"""Metadata in one SQLite file, for a broker on a machine.

Format: table `node(path TEXT PRIMARY KEY, value BLOB, version INTEGER)`; `PRAGMA user_version` is
the layout's number. With the write-ahead log and `synchronous=FULL`, a write that has returned
survives kill -9 and power loss, and a crash during a write leaves all or nothing of it. Kafka
ignores the file in a shared log directory, because it looks at directories only. `sqlite3` is
imported when a file is opened.

Keys of users and passwords of dynamic configs lie in the file, so a new one is its owner's alone.
SQLite gives `-wal` and `-shm` the same mode.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker.world.metadata_medium import MediumError, MediumFailed, NodeRow

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

_LAYOUT: Final = 1
_OWNERS_ALONE: Final = 0o600
_READABLE_BY_OTHERS: Final = 0o044
_WHAT_TO_DO: Final = (
    "It holds the topics, their ids and their configs; the records are not in it. Put a copy of it "
    "back, if there is one. Or move it aside, with its -wal and -shm, and start again: topics and "
    "partitions are then taken over from the log directories (pykafkalog adopt shows which), and "
    "their own configs have to be set again."
)


class SqliteMedia:
    """`MetadataMedia` on the volumes of the machine."""

    file_name = "metadata.sqlite"

    def open(self, path: str) -> "SqliteMedium":
        """See `MetadataMedia`. Logs a warning if others can read a file that is there already."""
        try:
            Path(path).touch(_OWNERS_ALONE, exist_ok=False)
        except FileExistsError:
            _tell_if_others_read(path)
        except OSError as error:
            raise MediumError(path, f"cannot be opened: {error.strerror or error}") from error
        return SqliteMedium(path)


def _tell_if_others_read(path: str) -> None:
    files = [path, f"{path}-wal", f"{path}-shm"]
    readable = [file for file in files if _is_readable_by_others(Path(file))]
    if readable:
        logger.warning(
            "Others than the owner can read %s, which holds keys of users and passwords that were"
            " set while the broker ran. To end that: chmod go= %s",
            path,
            " ".join(readable),
        )


def _is_readable_by_others(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & _READABLE_BY_OTHERS)
    except OSError:
        return False


class SqliteMedium:
    """A `MetadataMedium` in a SQLite file. Raises MediumError if the file is not one of ours."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self.path = path
        try:
            # One call at a time, but each may come from another thread.
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as error:
            raise MediumError(path, f"cannot be opened: {error}") from error
        try:
            self.fresh = self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise _damaged(path, error) from error
        except MediumError:
            self.close()
            raise

    def _prepare(self) -> bool:
        database = self._database
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, _LAYOUT):
            raise MediumError(self.path, f"has layout {layout}, this broker knows {_LAYOUT}")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        if layout == _LAYOUT:
            return False
        database.execute("BEGIN IMMEDIATE")
        database.execute(
            "CREATE TABLE IF NOT EXISTS node"
            " (path TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )
        database.execute(f"PRAGMA user_version={_LAYOUT}")
        database.execute("COMMIT")
        return True

    def load(self) -> list[NodeRow]:
        """See `MetadataMedium`."""
        import sqlite3

        try:
            rows = self._database.execute("SELECT path, value, version FROM node").fetchall()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error
        return [NodeRow(*row) for row in rows]

    def write(self, kept: Sequence[NodeRow], gone: Sequence[str]) -> None:
        """See `MetadataMedium`."""
        import sqlite3

        try:
            self._commit(kept, gone)
        except sqlite3.Error as error:
            raise MediumFailed(self.path, str(error)) from error

    def _commit(self, kept: Sequence[NodeRow], gone: Sequence[str]) -> None:
        database: sqlite3.Connection = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("DELETE FROM node WHERE path = ?", [(path,) for path in gone])
            database.executemany(
                "INSERT INTO node (path, value, version) VALUES (?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET value = excluded.value,"
                " version = excluded.version",
                kept,
            )
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """See `MetadataMedium`."""
        self._database.close()


def _damaged(path: str, error: Exception) -> MediumError:
    return MediumError(path, f"cannot be used: {error}. {_WHAT_TO_DO}")
