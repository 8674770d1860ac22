"""Why a cleaning could not be finished. All of these pickle: a child process raises them.

* `UncleanableLog`: the log itself is the obstacle, and will be the next time as well.
* `SegmentOverflow`: one segment has to be split first (S-CMP-15); then a new cleaning may begin.
* `CleaningAborted`: the log has changed during the cleaning, which may be tried again.

An `OSError` of the disk is passed on unchanged.
"""

from enum import StrEnum


class UncleanableReason(StrEnum):
    """The reason why a log cannot be cleaned."""

    CORRUPT_BATCH = "corrupt batch"
    """Bytes that are no batch, a batch that reaches beyond its segment, a wrong checksum."""
    CORRUPT_RECORDS = "corrupt records"
    """A batch whose records do not fill it, or do not inflate."""
    UNSUPPORTED_CODEC = "unsupported codec"
    MESSAGE_TOO_LARGE = "message too large"
    """A batch that cannot be rewritten: its size would not fit a batch header."""


class UncleanableLog(Exception):
    """The partition cannot be cleaned until a person has repaired it (S-CMP-11, S-CMP-12)."""

    def __init__(self, reason: UncleanableReason, text: str) -> None:
        super().__init__(reason, text)
        self.reason = reason
        self.text = text

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


class SegmentOverflow(Exception):
    """The segment at `base_offset` holds an offset that its indexes cannot hold (KAFKA-6264)."""

    def __init__(self, base_offset: int, offset: int) -> None:
        super().__init__(base_offset, offset)
        self.base_offset = base_offset
        self.offset = offset

    def __str__(self) -> str:
        return f"offset {self.offset} does not fit a segment based at {self.base_offset}"


class CleaningAborted(Exception):
    """The cleaning ended early; nothing has to be undone."""
