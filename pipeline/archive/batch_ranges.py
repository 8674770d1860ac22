"""The offsets of a batch, from Spark's checkpoint: those that the kafka source reads for it."""

import json

from pipeline.archive.files import Files
from pipeline.exact_rows import OffsetRange


def batch_ranges(files: Files, checkpoint: str, batch: int) -> list[OffsetRange]:
    """Return the ranges of a batch that has been planned."""
    before = f"offsets/{batch - 1}" if batch else "sources/0/0"
    start, end = (files.read(f"{checkpoint}/{name}") for name in (before, f"offsets/{batch}"))
    return ranges_between(start or "{}", end or "{}")


def ranges_between(start: str, end: str) -> list[OffsetRange]:
    """Return the ranges between two texts of the checkpoint, whose last lines are JSON.

    A partition that is new begins with its first record.
    """
    begins, ends = (json.loads(text.splitlines()[-1]) for text in (start, end))
    found = [
        OffsetRange(topic, int(number), begins.get(topic, {}).get(number), offset)
        for topic, partitions in ends.items()
        for number, offset in partitions.items()
    ]
    return [one for one in found if one.start is None or one.start < one.end]
