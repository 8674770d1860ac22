"""Offsets as CSV, as `kafka-consumer-groups.sh --reset-offsets --export` writes and reads them.

orders,0,1200               of one group
billing,orders,0,1200       of several groups
"""

import csv
from collections.abc import Iterable, Mapping
from typing import TextIO

from tools.errors import CommandError
from tools.log_ends import Place


def read_offsets(lines: Iterable[str], group: str, name: str) -> dict[Place, int]:
    """Return the offsets of this group. Raises CommandError that names a bad line."""
    found: dict[Place, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        try:
            *owner, topic, partition, offset = row
            place, value = (topic, int(partition)), int(offset)
        except ValueError:
            raise CommandError(
                f"line {number} of {name} is not of the form topic,partition,offset"
                " (or group,topic,partition,offset)"
            ) from None
        if len(owner) > 1 or not topic or place[1] < 0:
            raise CommandError(f"line {number} of {name} is not of the form topic,partition,offset")
        if owner and owner[0] != group:
            continue
        if place in found:
            raise CommandError(f"line {number} of {name} names {topic}:{partition} once more")
        found[place] = value
    if not found:
        raise CommandError(f"{name} has no offsets of group {group}")
    return found


def write_offsets(offsets: Mapping[Place, int], out: TextIO) -> None:
    """Write a line for each partition."""
    writer = csv.writer(out, lineterminator="\n")
    for (topic, partition), offset in sorted(offsets.items()):
        writer.writerow((topic, partition, offset))
