"""Prints statistics as tables on a terminal, or tab-separated without one."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pipeline.showing import print_table, size_of
from pipeline.stats.values import Stats, TopicStats

MOST_ROWS = 20
"""The most intervals that a terminal shows; of more, the busiest."""

_print = partial(print_table, is_one_of_many=True)


def show(stats: Stats) -> None:
    """Print everything, topic by topic."""
    _print(
        f"Topics of {stats.source}",
        ("topic", "partitions", "records", "bytes", "mean", "from", "to", "keys"),
        [
            (
                *(one.topic, len(one.partitions), one.records, size_of(one.bytes)),
                size_of(one.sizes.mean),
                *(moment(at) for at in span(one)),
                keys_in_words(one),
            )
            for one in stats.topics
        ],
    )
    for topic in stats.topics:
        _show_topic(topic)


def _show_topic(topic: TopicStats) -> None:
    width = topic.interval_ms
    listed = topic.throughput
    peak = max(size for _, _, size in listed)
    more = ""
    if len(listed) > MOST_ROWS and sys.stdout.isatty():
        # Not in the order of time: they are no series, and there are gaps between them.
        more = f", the {MOST_ROWS} busiest of {len(listed):,}, busiest first"
        listed = tuple(sorted(listed, key=lambda row: -row[2])[:MOST_ROWS])
    _print(
        f"{topic.topic}: throughput by {interval_in_words(width)}{more}",
        ("from", "records", "bytes", "records/s", "bytes/s", ""),
        [
            (
                *(moment(at), records, size_of(size)),
                f"{records * 1000 / width:,.1f}",
                size_of(size * 1000 / width),
                bar(size / peak),
            )
            for at, records, size in listed
        ],
    )
    sizes = topic.sizes
    _print(
        f"{topic.topic}: size of a record (smallest {sizes.smallest:,} B, median {sizes.p50:,} B, "
        f"90 % {sizes.p90:,} B, 99 % {sizes.p99:,} B, largest {sizes.largest:,} B)",
        ("from", "below", "records", ""),
        [
            (size_of(low), size_of(high), count, bar(count / max(h[2] for h in sizes.histogram)))
            for low, high, count in sizes.histogram
        ],
    )
    _print(
        f"{topic.topic}: partitions (the largest has {topic.partition_skew:.2f} times the mean)",
        ("partition", "records", "bytes", "keys", "without key", "tombstones", "offsets", "share"),
        [
            (
                *(one.partition, one.records, size_of(one.bytes), one.keys),
                *(one.without_key, one.tombstones),
                f"{one.first_offset:,} … {one.last_offset:,}",
                bar(one.records / topic.records),
            )
            for one in topic.partitions
        ],
    )
    if topic.keys.top:
        several = topic.keys.in_several_partitions or 0
        _print(
            f"{topic.topic}: busiest keys (Gini {topic.keys.gini:.3f}; "
            f"{several:,} keys are in several partitions)",
            ("key", "records", "bytes", "share"),
            [
                (key, count, size_of(size), f"{count / topic.records:.2%}")
                for key, count, size in topic.keys.top
            ],
        )
    for title, rows in (
        ("what compaction would leave", compaction_rows(topic)),
        ("in the files", log_rows(topic)),
    ):
        if rows:
            _print(f"{topic.topic}: {title}", ("", "records", "bytes"), rows)


def compaction_rows(topic: TopicStats) -> Sequence[tuple[str, Any, str]]:
    """Return rows about what compaction would leave."""
    found = topic.compaction
    if found is None:
        return []
    rows = [
        ("records with a key", found.records, size_of(found.bytes)),
        ("the last of each key", found.latest, size_of(found.latest_bytes)),
        ("of these tombstones", found.tombstones, size_of(found.tombstone_bytes)),
        ("saved", found.records - found.latest + found.tombstones, f"{found.saved:.1%}"),
    ]
    if found.without_key:
        rows.append(("without a key (a compacted topic refuses them)", found.without_key, ""))
    return rows


def log_rows(topic: TopicStats) -> Sequence[tuple[str, Any, str]]:
    """Return rows about what only files show."""
    log = topic.log
    if log is None:
        return []
    codecs = ", ".join(f"{name} {count:,}" for name, count in log.codecs)
    rows: list[tuple[str, Any, str]] = [
        (f"batches ({codecs})", log.batches, size_of(log.file_bytes)),
        ("producer ids", log.producers, ""),
    ]
    if log.committed or log.aborted or log.open or log.empty_markers:
        rows += [
            (f"in {log.committed:,} committed transactions", log.committed_records, ""),
            (f"in {log.aborted:,} aborted transactions", log.aborted_records, ""),
            (f"in {log.open:,} open transactions", log.open_records, ""),
            ("ends of transactions without records here", log.empty_markers, ""),
        ]
    return rows


def keys_in_words(topic: TopicStats) -> str:
    """Return the number of keys in words: exact, or with "about"."""
    return f"{'' if topic.keys.exact else 'about '}{topic.keys.distinct:,}"


def span(topic: TopicStats) -> tuple[int, int]:
    """Return the smallest and the largest timestamp, in ms."""
    return (
        min(one.first_timestamp for one in topic.partitions),
        max(one.last_timestamp for one in topic.partitions),
    )


def moment(timestamp_ms: int) -> str:
    """Return UTC to the second, or the milliseconds where Python has no such year."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{timestamp_ms} ms"


def interval_in_words(width_ms: int) -> str:
    """Return a length of time in words: 60000 -> 1 min."""
    for size, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if width_ms % size == 0:
            return f"{width_ms // size} {name}"
    return f"{width_ms} ms"


def bar(share: float) -> str:
    """Return a bar of up to twenty blocks."""
    return "█" * max(round(20 * share), 1 if share > 0 else 0)
