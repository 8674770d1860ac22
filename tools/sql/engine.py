"""DuckDB over topics: each topic is a table that is read by the query's columns and conditions."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tools.clock import WallClock
from tools.errors import CommandError
from tools.magnitudes import size_of


class Engine:
    """A DuckDB in memory whose tables are the topics of some log directories."""

    def __init__(self, directories: Sequence[str], isolation: str, lateness_ms: int | None) -> None:
        """Raises CommandError."""
        import duckdb

        from storage.errors import CheckpointError
        from storage.os_filesystem import OsFileSystem
        from storage.reader.arrow.dataset import LogDataset
        from storage.reader.scan import IsolationLevel, ScanError, ScanRequest, partitions_in

        self._duckdb = duckdb
        self._known: tuple[type[Exception], ...] = (ScanError, CheckpointError, OSError)
        try:
            there = partitions_in(tuple(directories), OsFileSystem())
        except self._known as error:
            raise CommandError(str(error)) from None
        self.topics: dict[str, LogDataset] = {}
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False}
        )
        # Show times as the log has them, in UTC.
        self._connection.execute("set timezone = 'UTC'")
        self._lateness_ms = lateness_ms
        for topic in sorted({where.topic for where in there}):
            request = ScanRequest(
                directories=tuple(directories),
                topics=(topic,),
                isolation=IsolationLevel(isolation),
                lateness_ms=lateness_ms,
                now_ms=WallClock().wall_ms(),
            )
            self.topics[topic] = LogDataset(request)
            self._connection.register(topic, self.topics[topic])

    def run(self, query: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return (column names, rows). Raises CommandError, also while the rows are iterated."""
        try:
            relation = self._connection.sql(columns_quoted(query))
            if relation is None:  # a statement without rows
                return [], iter(())
            # Through Arrow, since DuckDB's own conversion to Python needs pytz for times.
            stream = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
            return list(relation.columns), self._rows(iter(stream()))
        except Exception as error:  # noqa: BLE001 - what DuckDB raises for a failed scan varies
            raise self._complaint(error) from None

    def _rows(self, batches: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        from tools.sql.values import python_values

        while True:
            try:
                batch = next(batches, None)
            except Exception as error:  # noqa: BLE001 - as in `run`
                raise self._complaint(error) from None
            if batch is None:
                return
            yield from zip(*map(python_values, batch.columns), strict=True)

    def _complaint(self, error: Exception) -> Exception:
        for dataset in self.topics.values():
            if isinstance(dataset.scanned.failure, self._known):
                return CommandError(str(dataset.scanned.failure))
        if not isinstance(error, (self._duckdb.Error, *self._known)):
            return error
        lines = [line for line in str(error).splitlines() if line.strip()]
        said = " ".join(lines[:2])
        if isinstance(error, self._duckdb.CatalogException) and "Table" in said:
            known = ", ".join(self.topics) or "none"
            return CommandError(f"{lines[0]} The topics are: {known}")
        return CommandError(said)

    def account(self, seconds: float) -> str:
        """Return a sentence about how much was read."""
        read = [one.scanned for one in self.topics.values() if one.scanned.bytes]
        parts, left = sum(one.tasks for one in read), sum(one.tasks_left_out for one in read)
        text = f"Read {size_of(sum(one.bytes for one in read))} in {seconds:.1f} s"
        if left:
            text += f"; {parts} of {parts + left} parts of the log, by the conditions of the query"
            if self._lateness_ms is not None and any(one.tasks_believed_late for one in read):
                text += (
                    f"\nA record dated more than {self._lateness_ms // 1000} s before its "
                    "predecessors may have been left out (--lateness any reads on)"
                )
        return text

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


_CLAUSE: Final = re.compile(r"\s*(\d|\?|\$|:)")


def columns_quoted(query: str) -> str:
    """Return the query with the column `offset` in quotes, because `offset` is an SQL keyword.

    The keyword of `… limit 5 offset 10` stays: a number or a parameter follows it.
    """
    import duckdb

    tokens = duckdb.tokenize(query)
    pieces, done = [], 0
    for at, kind in tokens:
        if kind == duckdb.token_type.keyword and query[at : at + 6].lower() == "offset":
            if _CLAUSE.match(query, at + 6):
                continue
            pieces += [query[done:at], '"offset"']
            done = at + 6
    return "".join(pieces) + query[done:]
