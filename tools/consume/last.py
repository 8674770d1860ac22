"""Finds the last records of partitions, in windows before the end that grow until enough are found.

Offsets do not count records: transaction markers have offsets, compaction removes records, and
filters leave some out.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from tools.consume.bounds import Range
from tools.consume.filters import Filter
from tools.log_ends import Place
from tools.records.record import Record, record_of

GROWTH: Final = 8

Read = Callable[[Mapping[Place, Range]], Iterable[list[Any]]]


def last_records(
    read: Read, whole: Mapping[Place, Range], count: int, chosen: Filter | None
) -> list[Record]:
    """Return the last `count` chosen records of all ranges, merged by timestamp.

    `whole` are ranges with a `stop`. Each partition's records stay in the order of their offsets.
    """
    found: dict[Place, deque[Record]] = {}
    width = count
    left = dict(whole)
    while left:
        windows = {
            place: Range(max(each.start, (each.stop or 0) - width), each.stop)
            for place, each in left.items()
        }
        found |= {place: deque(maxlen=count) for place in left}
        for record in map(record_of, chain.from_iterable(read(windows))):
            if chosen is None or chosen(record):
                found[record.topic or "", record.partition or 0].append(record)
        left = {
            place: each
            for place, each in left.items()
            if len(found[place]) < count and windows[place].start > each.start
        }
        width *= GROWTH
    merged = heapq.merge(*found.values(), key=lambda record: record.timestamp or 0)
    return list(deque(merged, maxlen=count))
