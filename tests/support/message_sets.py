"""Sets of formats 0 and 1, read and converted as a leader does it, in one call."""

from protocol.records.batch import iter_batches
from protocol.records.message_stream import codec_of_set, up_convert_set
from protocol.records.record import Record, iter_records

MOST = 64 << 20


def records_in(data: bytes) -> list[Record]:
    """The records of all whole batches or messages, wrappers opened."""
    return [record for pos, _ in iter_batches(data) for record in iter_records(data, pos)]


def up_converted(data: bytes, **how: object) -> bytes:
    """One batch of format 2, offsets from 0; a partial message at the end is left out."""
    codec, size = codec_of_set(data, "t-0", most=MOST)
    options = {"codec": codec, "level": None, "most": MOST, **how}
    return up_convert_set(data[:size], **options)  # type: ignore[arg-type]
