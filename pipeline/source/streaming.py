"""A streaming query: a batch reads from the end of the last batch to the latest offsets.

Offsets have the kafka source's form: `{"orders": {"0": 17}}` is the first offset that was not read.
Spark 4.0 asks a Python source for `latestOffset` without telling it the query's position. It makes
these other calls (Spark's `MicroBatchExecution`, 4.0.0):

* for a new query, none before it; then `initialOffset` and `partitions`;
* for a query that goes on from a checkpoint, `partitions(x, x)` with the offsets it has seen;
* for each batch, `partitions(start, end)`.

So the reader remembers the last end that it was asked for, and `maxOffsetsPerTrigger` counts from
there. With `availableNow`, Spark asks for the latest offset once and reads up to it, so a run with
the option ends after that many offsets. If Spark asks before the reader knows the position, the
answer may be before the position; the query is refused when that shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pipeline.source.batch import (
    LogPartition,
    check_there,
    limit_of,
    partitions_of,
    read_partition,
)
from pipeline.source.options import BadOption, SourceOptions
from protocol.types import TopicPartition
from storage.reader.scan import (
    LATEST,
    PartitionRange,
    Position,
    Positions,
    ScanError,
    plan,
)

Offsets = dict[str, dict[str, int]]


class LogStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """One query's reader, which Spark keeps in a Python process of the driver while it runs."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns
        self._at: dict[TopicPartition, int] | None = None
        self._has_guessed = False

    def initialOffset(self) -> Offsets:
        """Return the offsets of a new query. Raises BadOption, the scan errors, OSError."""
        return _to_json(self._initial())

    def latestOffset(self) -> Offsets:
        """Return the end of the next batch. Raises BadOption, the scan errors, OSError."""
        options = self._options
        latest = {
            found.topic_partition: limit_of(found, options)
            for found in self._ranges(Positions(LATEST), Positions(LATEST))
        }
        most = options.max_offsets_per_trigger
        if most is None:
            return _to_json(latest)
        if self._at is None:
            self._at, self._has_guessed = self._initial(), True
        return _to_json(limited(self._at, latest, most, self._first))

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Plan a batch. Raises BadOption, the scan errors, OSError."""
        options = self._options
        begin, until = _from_json(start), _from_json(end)
        if begin == until and self._has_guessed:
            raise BadOption(
                "maxOffsetsPerTrigger cannot be kept: Spark has asked for the latest offset "
                "before it has said where the query stands, as with the trigger availableNow; "
                "leave it out, or use another trigger"
            )
        self._at, self._has_guessed = until, False
        if options.fail_on_data_loss:
            _check_continuous(begin, until)
        wanted = {where for where, offset in until.items() if begin.get(where) != offset}
        if not wanted:
            return []
        starts = {where: Position.offset(begin[where]) for where in wanted if where in begin}
        ends = {where: Position.offset(until[where]) for where in wanted}
        request = replace(
            options.request,
            topics=None,
            pattern=None,
            assign=tuple(sorted(wanted)),
            start=Positions(Position.offset(0), starts),
            end=Positions(LATEST, ends),
        )
        planned = plan(request)
        for found in planned.partitions:
            where = found.topic_partition
            if options.fail_on_data_loss:
                for position in (starts.get(where, LATEST), ends[where]):
                    check_there(found, position, limit_of(found, options))
        return partitions_of(planned.tasks, options)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition. Raises the scan errors, OSError."""
        assert isinstance(partition, LogPartition)
        return read_partition(partition, self._columns)

    def _initial(self) -> dict[TopicPartition, int]:
        options = self._options
        begin = options.start.positions(options.selected())
        return {
            found.topic_partition: found.start_offset
            for found in self._ranges(begin, Positions(LATEST))
        }

    def _ranges(self, start: Positions, end: Positions) -> Sequence[PartitionRange]:
        return plan(replace(self._options.request, start=start, end=end)).partitions

    def _first(self, where: TopicPartition) -> int:
        """Return the first offset of a partition that is new, and is read from its start."""
        request = replace(self._options.request, topics=None, pattern=None, assign=(where,))
        (found,) = plan(request).partitions
        return found.log_start_offset


def limited(
    at: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    most: int,
    first: Any,
) -> dict[TopicPartition, int]:
    """Return ends for at most `most` offsets from `at` on, shared in proportion to the lags."""
    begins = {where: at[where] if where in at else first(where) for where in latest}
    sizes = {where: max(latest[where] - begins[where], 0) for where in latest}
    total = sum(sizes.values())
    if total <= most:
        return {where: max(latest[where], begins[where]) for where in latest}
    ends = {}
    for where, size in sizes.items():
        share = most * size / total
        ends[where] = begins[where] + min(size, 1 if 0 < share < 1 else int(share))
    return ends


def _check_continuous(
    begin: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int]
) -> None:
    """Raise ScanError if the log is not the one that the query has read (failOnDataLoss)."""
    for where, offset in begin.items():
        if where not in until:
            raise ScanError(
                f"{where} is not there any more; the query has read it up to offset {offset} "
                "(failOnDataLoss=false goes on without it)"
            )
        if until[where] < offset:
            raise ScanError(
                f"{where} ends at offset {until[where]}, the query has read it up to {offset} "
                "(failOnDataLoss=false goes on)"
            )


def _to_json(offsets: Mapping[TopicPartition, int]) -> Offsets:
    table: Offsets = {}
    for where, offset in sorted(offsets.items()):
        table.setdefault(where.topic, {})[str(where.partition)] = offset
    return table


def _from_json(table: Offsets) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in table.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise ScanError(f"these are no offsets of this source: {table}") from None
