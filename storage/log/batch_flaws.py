"""Whether a batch may be where it is in the log: the rule by which recovery cuts it (S-REC-3).

A log ends before its first batch with a flaw. `storage.recovery` cuts there; `storage.check` shows
where a restart would cut, and why. An offset too far from the segment's base for an index entry is
no flaw (S-IDX-4): such segments of old logs (KAFKA-6264) are split (`storage.splitting`).
"""

from enum import StrEnum

from protocol.records.batch import BatchHeader, verify_crc


class BatchFlaw(StrEnum):
    """Why a batch of plausible size is not part of the log."""

    OFFSET = "its offsets do not follow those before it"
    CHECKSUM = "its checksum is wrong"


def flaw_of(
    header: BatchHeader, chunk: memoryview, at: int, *, base_offset: int, last_offset: int
) -> BatchFlaw | None:
    """The flaw of the batch at `at` of `chunk`; None if it has none.

    `base_offset` is its segment's; `last_offset` that of the batch before it, or base offset - 1.
    """
    if header.last_offset <= last_offset:
        return BatchFlaw.OFFSET
    # Formats 0 and 1: the wrapper of a compacted set may keep the offset of a removed message.
    if header.magic >= 2 and header.base_offset <= last_offset:
        return BatchFlaw.OFFSET
    if header.base_offset < 0 or header.last_offset < base_offset:
        return BatchFlaw.OFFSET
    if not verify_crc(chunk, at, header):
        return BatchFlaw.CHECKSUM
    return None
