"""What becomes of records and batches in a cleaning, and by which rule: names for numbers.

The rules themselves: `storage.cleaner.retained`.
"""

from enum import IntEnum
from typing import Final


class RecordFate(IntEnum):
    """What becomes of a record, and why. Those below `DROPPED_OLDER` stay."""

    KEPT_LATEST = 0
    KEPT_ABOVE_MAP = 1
    KEPT_TOMBSTONE = 2
    """The latest of its key, and too young to go."""
    KEPT_MARKER = 3
    """End of a transaction: data of it is left, or the marker is too young to go."""
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
    """Data of an aborted transaction: none stays."""
    MARKER_STAYS = 2
    MARKER_GOES = 3
    CONTROL_STAYS = 4


FATE_OF_RULE: Final = {
    BatchRule.ABORTED: RecordFate.DROPPED_ABORTED,
    BatchRule.MARKER_STAYS: RecordFate.KEPT_MARKER,
    BatchRule.MARKER_GOES: RecordFate.DROPPED_MARKER,
    BatchRule.CONTROL_STAYS: RecordFate.KEPT_CONTROL,
}
"""What becomes of the records of a batch that is judged as a whole."""

UNOPENED: Final = (BatchRule.ABORTED, BatchRule.MARKER_GOES)
"""No record of such a batch stays, so none has to be read."""


class BatchFate(IntEnum):
    """What becomes of a batch."""

    KEPT_WHOLE = 0
    REWRITTEN = 1
    """Some of its records go, or its delete horizon is set."""
    EMPTIED_FOR_PRODUCER = 2
    """Only its header stays: it is the last one of an active producer."""
    EMPTIED_FOR_OFFSET = 3
    """Only its header stays: it is the last one of what is cleaned (S-CMP-8)."""
    GONE = 4
