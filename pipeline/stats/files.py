"""Statistics that only files show: batches, codecs, producers, and how transactions ended.

Consumers see none of this: markers are not records, and aborted records are left out or look like
others. One task reads one partition directory, only the batch headers, and returns counts.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pipeline.errors import PipelineError
from pipeline.stats.values import LogFacts
from protocol.records.batch import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT
from protocol.records.control import ControlType, parse_control_type
from protocol.records.record import iter_records
from storage.reader import PartitionView
from storage.reader.columns import batch_columns
from storage.reader.frames import Frames

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(slots=True)
class Counted:
    """Counts of one or more partitions."""

    file_bytes: int = 0
    batches: int = 0
    codecs: Counter[int] = field(default_factory=Counter)
    producers: set[int] = field(default_factory=set)
    transactions: Counter[str] = field(default_factory=Counter)
    """Counts of committed, aborted, open; the same with `_records`; and empty_markers."""

    def add(self, other: "Counted") -> None:
        """Add the other's counts."""
        self.file_bytes += other.file_bytes
        self.batches += other.batches
        self.codecs += other.codecs
        self.producers |= other.producers
        self.transactions += other.transactions


def facts(counted: Iterable[Counted]) -> LogFacts:
    """Return a topic's facts from the counts of its partitions."""
    total = Counted()
    for one in counted:
        total.add(one)
    told = total.transactions
    names = ("committed", "aborted", "open")
    return LogFacts(
        file_bytes=total.file_bytes,
        batches=total.batches,
        codecs=tuple(
            (CODECS[codec] if codec < len(CODECS) else f"codec {codec}", count)
            for codec, count in sorted(total.codecs.items())
        ),
        producers=len(total.producers),
        empty_markers=told["empty_markers"],
        **{name: told[name] for name in names},
        **{f"{name}_records": told[f"{name}_records"] for name in names},
    )


def count_directories(spark: Any, directories: dict[str, list[str]]) -> dict[str, LogFacts]:
    """Return the facts of each topic; Spark's executors read its partition directories."""
    flat = [(topic, path) for topic, paths in directories.items() for path in paths]
    if not flat:
        return {}
    context = spark.sparkContext
    counted = context.parallelize(flat, len(flat)).map(_count_of_topic).collect()
    return {
        topic: facts(count for name, count in counted if name == topic) for topic in directories
    }


def _count_of_topic(item: tuple[str, str]) -> tuple[str, Counted]:
    topic, directory = item
    return topic, count_partition(directory)


def count_partition(directory: str) -> Counted:
    """Count the batch headers of a partition directory, to the end of its files.

    Raises PipelineError if it cannot be read.
    """
    counted = Counted()
    open_records: dict[int, int] = {}
    try:
        for segment in PartitionView(directory).segments():
            for frames in segment.frames():
                _count(frames, counted, open_records)
    except OSError as error:
        raise PipelineError(f"{directory}: {error.strerror or error}") from error
    counted.transactions["open"] += len(open_records)
    counted.transactions["open_records"] += sum(open_records.values())
    return counted


def _count(frames: Frames, counted: Counted, open_records: dict[int, int]) -> None:
    columns = batch_columns(frames)
    attributes = columns["attributes"]
    control = (attributes & CONTROL_BIT) != 0
    counted.file_bytes += int(columns["size"].sum())
    counted.batches += len(attributes)
    counted.codecs.update((attributes[~control] & CODEC_MASK).tolist())
    producers = columns["producer_id"]
    counted.producers.update(np.unique(producers[producers >= 0]).tolist())
    for at in np.flatnonzero((attributes & TRANSACTIONAL_BIT) != 0).tolist():
        producer = int(producers[at])
        if not control[at]:
            records = int(columns["record_count"][at])
            open_records[producer] = open_records.get(producer, 0) + records
            continue
        outcome = _outcome(frames, at)
        if outcome is None:
            continue
        if producer in open_records:
            counted.transactions[outcome] += 1
            counted.transactions[f"{outcome}_records"] += open_records.pop(producer)
        else:
            counted.transactions["empty_markers"] += 1


def _outcome(frames: Frames, at: int) -> str | None:
    for record in iter_records(frames.chunk, frames.starts[at]):
        kind = parse_control_type(record.key)
        if kind is ControlType.COMMIT:
            return "committed"
        if kind is ControlType.ABORT:
            return "aborted"
    return None
