"""A record of the command line, independent of the client library."""

from dataclasses import dataclass
from typing import Any, Final

from tools.errors import CommandError

TIMESTAMP_TYPES: Final = (None, "create", "append")
"""Names by the client library's number; None if the record has no timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record that was read or is to be written; the client chooses fields that are None."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    """Milliseconds since the epoch."""
    timestamp_type: str | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def record_of(message: Any) -> Record:
    """Convert a message of confluent-kafka. Raises CommandError."""
    kind, timestamp = message.timestamp()
    try:
        headers = message.headers() or ()
    except UnicodeDecodeError:
        raise CommandError(
            f"the record at {message.topic()}:{message.partition()}, offset {message.offset()},"
            " has a header whose name is not UTF-8, which the client library cannot read"
        ) from None
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=timestamp if kind else None,
        timestamp_type=TIMESTAMP_TYPES[kind],
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )
