"""Reads message sets of formats 0 and 1, and converts them as a leader does, in one call."""

from protocol.records.batch import iter_batches
from protocol.records.message_stream import codec_of_set, up_convert_set
from protocol.records.record import Record, iter_records

MOST = 64 << 20


def records_in(data: bytes) -> list[Record]:
    """Return the records of all whole batches or messages, also those in wrappers."""
    return [record for pos, _ in iter_batches(data) for record in iter_records(data, pos)]


def up_converted(data: bytes, **how: object) -> bytes:
    """Convert to one batch of format 2 from offset 0, without a partial message at the end."""
    codec, size = codec_of_set(data, "t-0", most=MOST)
    options = {"codec": codec, "level": None, "most": MOST, **how}
    return up_convert_set(data[:size], **options)  # type: ignore[arg-type]
