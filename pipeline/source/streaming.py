"""A streaming query: a batch reads from the end of the last batch to the latest offsets.

Offsets have the kafka source's form: `{"orders": {"0": 17}}` is the first offset that was not read.

From Spark 4.2 on, Spark gives a Python source the end of the last batch and the trigger's limit
(`latestOffset(start, limit)`), and `availableNow` ends at the offsets that were the latest when the
query started. So limits and triggers mean what they mean for the kafka source.

Spark 4.0 and 4.1 ask for the latest offset without saying either. With `availableNow` and `once`
they ask once and read up to the answer; a source cannot tell these triggers from others. So a limit
would leave out records without a word there, and `check_limits` refuses it.

Spark keeps where a batch ended, but not where the first one began: a query that is started again
before its first batch was done asks for the initial offset anew, and `latest` means something else
then. So the end of the first batch has its beginning with it, under a name that no topic can have.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any, Final

from pyspark import __version__
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pipeline.source.batch import (
    LogPartition,
    check,
    limit_of,
    partitions_of,
    planned,
    read_partition,
)
from pipeline.source.options import BadOption, SourceOptions
from pipeline.source.telling import telling
from protocol.types import TopicPartition
from storage.os_filesystem import OsFileSystem
from storage.reader.scan import (
    EARLIEST,
    LATEST,
    Position,
    Positions,
    ScanError,
    partitions_in,
    plan,
)

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2
    SupportsTriggerAvailableNow = None

Offsets = dict[str, dict[str, int]]
Told = dict[str, Any]
"""Offsets as Spark has them; those of a first batch's end have `_BEGAN` too."""
Positioned = Mapping[TopicPartition, int]

_BEGAN: Final = "(began at)"
"""Beside the topics in the end of the first batch. No topic's name has a bracket."""


class LogStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """One query's reader, which Spark keeps in a Python process of the driver while it runs."""

    def __init__(
        self,
        options: SourceOptions,
        columns: list[str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._columns = columns
        self._monotonic = monotonic
        self._initial: Positioned | None = None
        self._latest: Positioned | None = None
        """The latest offsets when Spark last asked."""
        self._firsts: Positioned = {}
        """The first offsets at that time."""
        self._stands_at: Told = {}
        """The end of the last batch."""
        self._has_begun = False
        """Whether a batch was planned, or had been before the query was started again."""
        self._is_available_now = False
        self._triggered_at = -inf

    def initialOffset(self) -> Offsets:
        """Return the offsets of a new query. Raises BadOption, the scan errors, OSError."""
        with telling():
            return _to_json(self._began())

    def latestOffset(self, start: Told | None = None, limit: Any = None) -> Told:
        """Return the end of the next batch. Raises BadOption, the scan errors, OSError.

        Spark 4.0 and 4.1 give no arguments; `start` is then known from the last batch, if any.
        """
        with telling():
            at = self._stands_at if start is None else start
            is_first = self._is_first(at)
            if self._latest is None or not self._is_available_now:
                self._latest, self._firsts = self._bounds()
            ends: Positioned = self._latest
            if limit is not None and not isinstance(limit, ReadAllAvailable):
                ends = self._limited(_from_json(at), ends)
            if is_first and self._initial is not None:
                return {**_to_json(ends), _BEGAN: _to_json(self._initial)}
            return at if at and ends == _from_json(at) else dict(_to_json(ends))

    def getDefaultReadLimit(self) -> Any:
        """Return whether the options set a limit; `latestOffset` knows which (Spark 4.2)."""
        most, least = self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger
        if most is None and least is None:
            return ReadAllAvailable()
        return ReadMaxRows(sys.maxsize if most is None else most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to what is the latest when Spark asks first, and end there (Spark 4.2)."""
        self._is_available_now = True

    def reportLatestOffset(self) -> Offsets | None:
        """Return the latest offsets, for the progress of the query (Spark 4.2)."""
        return _to_json(self._latest) if self._latest else None

    def partitions(self, start: Told, end: Told) -> Sequence[InputPartition]:
        """Plan a batch. Raises BadOption, the scan errors, OSError."""
        with telling():
            begin, until = _from_json(start), _from_json(end)
            if _BEGAN in end and _BEGAN not in start and begin == self._initial:
                begin = _from_json(end[_BEGAN])
            self._stands_at, self._has_begun = end, True
            return self._planned(begin, until)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition. Raises the scan errors, OSError."""
        assert isinstance(partition, LogPartition)
        return read_partition(partition, self._columns)

    def _planned(self, begin: Positioned, until: Positioned) -> list[InputPartition]:
        options = self._options
        if options.fail_on_data_loss:
            _check_continuous(begin, until)
        wanted = {where for where, offset in until.items() if begin.get(where) != offset}
        if not options.fail_on_data_loss:
            wanted &= partitions_in(options.request.directories, OsFileSystem()).keys()
        if not wanted:
            return []
        # The kafka source, too, takes it for a loss if a partition that is new has lost its start.
        starts = {where: Position.offset(begin.get(where, 0)) for where in wanted}
        ends = {where: Position.offset(until[where]) for where in wanted}
        request = replace(
            options.request,
            topics=None,
            pattern=None,
            assign=tuple(sorted(wanted)),
            start=Positions(EARLIEST, starts),
            end=Positions(LATEST, ends),
        )
        found = planned(request, options)
        for one in found.partitions:
            check(one, request.start, request.end, options)
        return partitions_of(found.tasks, options)

    def _is_first(self, at: Told) -> bool:
        """Whether the batch that is to begin at these offsets is the query's first one."""
        if self._has_begun:
            return False
        if at:
            return _BEGAN not in at and _from_json(at) == self._initial
        # Before 4.2 this may be a query that goes on; then the options of its start may not fit.
        with suppress(BadOption, ScanError):
            self._began()
        return self._initial is not None

    def _began(self) -> Positioned:
        """Return where a new query begins: the same at every call, though the log grows."""
        if self._initial is None:
            options = self._options
            start, end = options.start.positions(options.selected()), Positions(LATEST)
            found = plan(replace(options.request, start=start, end=end)).partitions
            for one in found:
                check(one, start, end, options)
            self._initial = {one.topic_partition: one.start_offset for one in found}
        return self._initial

    def _bounds(self) -> tuple[Positioned, Positioned]:
        """Return the latest and the first offsets of all partitions."""
        options = self._options
        latest = Positions(LATEST)
        found = plan(replace(options.request, start=latest, end=latest)).partitions
        return (
            {one.topic_partition: limit_of(one, options) for one in found},
            {one.topic_partition: one.log_start_offset for one in found},
        )

    def _limited(self, begin: Positioned, ends: Positioned) -> Positioned:
        """Return where the next batch ends by the options of a trigger."""
        options = self._options
        begins = {where: begin.get(where, self._firsts.get(where, 0)) for where in ends}
        least = options.min_offsets_per_trigger
        # Nothing that comes later is read under availableNow, so there is nothing to wait for.
        if least is not None and not self._is_available_now:
            now, new = self._monotonic(), sum(ends[where] - begins[where] for where in ends)
            is_late = now - self._triggered_at >= options.max_trigger_delay_s
            if new < least and not is_late:
                return begin
            self._triggered_at = now
        most = options.max_offsets_per_trigger
        return ends if most is None else limited(begins, ends, most)


if SupportsTriggerAvailableNow is not None:
    SupportsTriggerAvailableNow.register(LogStreamReader)


class RefusedStream(DataSourceStreamReader):  # type: ignore[misc]
    """Stands in for a reader whose options are wrong.

    Spark reports an error of a reader's method. It replaces an error of `streamReader` by another,
    because its runner then uses a reader that does not exist.
    """

    def __init__(self, error: BadOption) -> None:
        self._error = error

    def initialOffset(self) -> Offsets:
        """Raise the error, as every method that Spark may call first."""
        with telling():
            raise self._error

    def latestOffset(self) -> Told:
        """Raise the error."""
        return self.initialOffset()

    def partitions(self, start: Told, end: Told) -> Sequence[InputPartition]:
        """Raise the error."""
        with telling():
            raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raise the error."""
        with telling():
            raise self._error


def check_limits(options: SourceOptions) -> None:
    """Raise BadOption for limits that this version of Spark does not let a source keep."""
    given = (options.max_offsets_per_trigger, options.min_offsets_per_trigger)
    if SupportsTriggerAvailableNow is None and any(one is not None for one in given):
        raise BadOption(
            f"maxOffsetsPerTrigger and minOffsetsPerTrigger need Spark 4.2: Spark {__version__} "
            "does not tell a source where a query stands, so records would be left out; without "
            "these options all are read"
        )


def limited(begins: Positioned, latest: Positioned, most: int) -> dict[TopicPartition, int]:
    """Return ends for at most `most` offsets from `begins` on, in proportion to the lags."""
    sizes = {where: max(latest[where] - begins[where], 0) for where in latest}
    total = sum(sizes.values())
    ends = dict(latest)  # also of a log that became shorter, which is reported as a loss
    for where, size in sizes.items():
        if total > most and size:
            ends[where] = begins[where] + min(size, max(most * size // total, 1))
    return ends


def _check_continuous(begin: Positioned, until: Positioned) -> None:
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


def _to_json(offsets: Positioned) -> Offsets:
    table: Offsets = {}
    for where, offset in sorted(offsets.items()):
        table.setdefault(where.topic, {})[str(where.partition)] = offset
    return table


def _from_json(table: Told) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in table.items()
            if topic != _BEGAN
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise ScanError(f"these are no offsets of this source: {table}") from None
