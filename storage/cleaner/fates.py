"""Enums for what a cleaning does with records and batches, and by which rule.

The rules themselves are in `storage.cleaner.retained`.
"""

from enum import IntEnum
from typing import Final


class RecordFate(IntEnum):
    """Whether a record is kept, and why. Values below `DROPPED_OLDER` are kept."""

    KEPT_LATEST = 0
    KEPT_ABOVE_MAP = 1
    KEPT_TOMBSTONE = 2
    """The latest of its key, and too young to be dropped."""
    KEPT_MARKER = 3
    """The marker of a transaction with data left, or too young to be dropped."""
    KEPT_CONTROL = 4
    """A control record that ends no transaction."""
    DROPPED_OLDER = 5
    DROPPED_TOMBSTONE = 6
    DROPPED_NO_KEY = 7
    DROPPED_ABORTED = 8
    DROPPED_MARKER = 9


class BatchRule(IntEnum):
    """How the records of a batch are judged: one by one, or all together."""

    BY_KEY = 0
    ABORTED = 1
    """Data of an aborted transaction: none is kept."""
    MARKER_STAYS = 2
    MARKER_GOES = 3
    CONTROL_STAYS = 4


FATE_OF_RULE: Final = {
    BatchRule.ABORTED: RecordFate.DROPPED_ABORTED,
    BatchRule.MARKER_STAYS: RecordFate.KEPT_MARKER,
    BatchRule.MARKER_GOES: RecordFate.DROPPED_MARKER,
    BatchRule.CONTROL_STAYS: RecordFate.KEPT_CONTROL,
}
"""The fate of all records of a batch that is judged as a whole."""

UNOPENED: Final = (BatchRule.ABORTED, BatchRule.MARKER_GOES)
"""Rules by which no record is kept, so the batch need not be opened."""


class BatchFate(IntEnum):
    """Whether a batch is kept, and how."""

    KEPT_WHOLE = 0
    REWRITTEN = 1
    """Some of its records are dropped, or its delete horizon is set."""
    EMPTIED_FOR_PRODUCER = 2
    """Only its header is kept: it is the last batch of an active producer."""
    EMPTIED_FOR_OFFSET = 3
    """Only its header is kept: it is the last batch below the high watermark (S-CMP-8)."""
    GONE = 4
