"""A record of the command line, independent of the client library."""

from typing import Any, Final, NamedTuple

from tools.errors import CommandError

TIMESTAMP_TYPES: Final = (None, "create", "append")
"""Names by the client library's number; None if the record has no timestamp."""


class Record(NamedTuple):
    """A record that was read or is to be written; the client chooses fields that are None.

    A tuple, as there is one for each line: a frozen dataclass takes four times as long to make.
    """

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
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else None,
        TIMESTAMP_TYPES[kind],
        message.key(),
        message.value(),
        tuple(headers),
    )
