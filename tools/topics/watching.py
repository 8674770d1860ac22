"""Watches topics grow: rates between two looks, as a table on a terminal or as JSON lines."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from config.terminal import console
from tools.json_output import print_line
from tools.moments import iso_time
from tools.tables import size, table_for_people
from tools.topics.survey import TopicView

COLUMNS: Final = ("topic", "records/s", "bytes/s", "records", "bytes", "new records", "growth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The topics at one moment."""

    monotonic_s: float
    wall_ms: int
    topics: Mapping[str, TopicView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One topic, compared with the last look and with the first one."""

    topic: str
    records: int
    bytes: int
    records_per_s: float
    bytes_per_s: float
    """Negative if more old segments were deleted than bytes written."""
    new_records: int
    grown_bytes: int


def growths(first: Look, last: Look, now: Look) -> list[Growth]:
    """Return growths, the busiest topic first.

    A new topic grows from 0, a deleted one is left out. New records are counted at the ends of
    partitions, so deleting old records does not reduce them.
    """
    seconds = max(now.monotonic_s - last.monotonic_s, 1e-9)
    found = []
    for name, topic in now.topics.items():
        ends, size_before = _then(last, name, topic)
        first_ends, first_size = _then(first, name, topic)
        found.append(
            Growth(
                topic=name,
                records=topic.records,
                bytes=topic.bytes,
                records_per_s=(topic.ends - ends) / seconds,
                bytes_per_s=(topic.bytes - size_before) / seconds,
                new_records=topic.ends - first_ends,
                grown_bytes=topic.bytes - first_size,
            )
        )
    return sorted(found, key=lambda each: (-each.records_per_s, -each.bytes, each.topic))


def _then(look: Look, name: str, now: TopicView) -> tuple[int, int]:
    before = look.topics.get(name)
    if before is None or before.ends > now.ends:  # created, or deleted and created again, since
        return 0, 0
    return before.ends, before.bytes


def looks(
    take: Callable[[], Sequence[TopicView]],
    interval_s: float,
    count: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Look]:
    """Yield a look at once, then one per interval: `count` of them, or without end."""
    due = time.monotonic()
    taken = 0
    while True:
        yield Look(
            monotonic_s=time.monotonic(),
            wall_ms=time.time_ns() // 1_000_000,
            topics={topic.name: topic for topic in take()},
        )
        if taken == count:
            return
        taken += 1
        due += interval_s
        sleep(max(due - time.monotonic(), 0))


def watch(seen: Iterator[Look], *, as_json: bool) -> None:
    """Show every look until the iterator ends."""
    first = last = next(seen)
    if as_json or not sys.stdout.isatty():
        for now in seen:
            for growth in growths(first, last, now):
                print_line(_object(now, growth))
            last = now
        return
    from rich.live import Live

    out = console()
    with Live(_table(growths(first, last, last), out), console=out, auto_refresh=False) as live:
        for now in seen:
            live.update(_table(growths(first, last, now), out), refresh=True)
            last = now


def _table(found: Sequence[Growth], out: Any) -> Any:
    room = max(out.height - 4, 1)
    rows = [
        (
            each.topic,
            round(each.records_per_s),
            _signed(each.bytes_per_s),
            each.records,
            size(each.bytes),
            each.new_records,
            _signed(each.grown_bytes),
        )
        for each in found[:room]
    ]
    caption = f"and {len(found) - room} more" if len(found) > room else "Ctrl-C ends it"
    return table_for_people(COLUMNS, rows, caption=caption)


def _signed(amount: float) -> str:
    """Return bytes as text; negative amounts are not shown as unknown, as `size` would."""
    from tools.magnitudes import size_of

    return size_of(round(amount))


def _object(now: Look, growth: Growth) -> dict[str, Any]:
    return {
        "time": iso_time(now.wall_ms),
        "topic": growth.topic,
        "records": growth.records,
        "bytes": growth.bytes,
        "records_per_s": round(growth.records_per_s, 3),
        "bytes_per_s": round(growth.bytes_per_s, 3),
        "new_records": growth.new_records,
        "grown_bytes": growth.grown_bytes,
    }
