"""Points in time and spans as people type them.

A point in time is milliseconds since the epoch (`1700000000000`, or `@1700000000000` where a plain
number is an offset), a date (`2026-03-01`) or a date and time (`2026-03-01T12:00:00.5`), in UTC
unless a zone follows, as in kafka-consumer-groups.sh. It lies after 1970 and has 64 bits. A span is
ISO 8601's (`PT1H30M`, `P2D`), as Kafka's tools take it, or `90s`, `15min`, `2h`, `7d`.
"""

import re
from datetime import UTC, datetime
from typing import Final

from tools.errors import CommandError

_END_OF_TIME: Final = 2**63
"""Timestamps of records have 64 bits, one for the sign."""
_UNITS_MS: Final = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)")
_ISO: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_ISO_UNITS: Final = ("d", "h", "min", "s")


def parse_moment(text: str, now_ms: int | None = None) -> int:
    """Return milliseconds since the epoch. With `now_ms`, a span is accepted: that long before it.

    Raises CommandError.
    """
    moment = _moment(text, now_ms)
    if moment is None or not 0 <= moment < _END_OF_TIME:
        raise CommandError(
            f"{text!r} is no time; write 2026-03-01T12:00:00 (UTC), milliseconds since the epoch"
            + (" or how long ago, as in 90min, 2h, 7d" if now_ms is not None else "")
        )
    return moment


def _moment(text: str, now_ms: int | None) -> int | None:
    digits = text.removeprefix("@")
    if digits.isdecimal():
        return int(digits)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        span = None if now_ms is None else _span(text)
        return None if now_ms is None or span is None else now_ms - span
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1000)


def parse_span(text: str) -> int:
    """Parse a span; return milliseconds. Raises CommandError."""
    span = _span(text)
    if span is None:
        raise CommandError(f"{text!r} is no duration; write PT1H30M, P2D, 90s, 15min, 2h or 7d")
    return span


def iso_time(timestamp_ms: int) -> str:
    """Return UTC with milliseconds, which `parse_moment` takes; a number if it is out of range."""
    try:
        seconds, milliseconds = divmod(timestamp_ms, 1000)
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return str(timestamp_ms)
    return f"{text}.{milliseconds:03}Z"


def _span(text: str) -> int | None:
    short = _SHORT.fullmatch(text)
    iso = _ISO.fullmatch(text)
    if short:
        length = float(short[1]) * _UNITS_MS[short[2]]
    elif iso is not None and any(iso.groups()):
        length = sum(
            float(amount) * _UNITS_MS[unit]
            for amount, unit in zip(iso.groups(), _ISO_UNITS, strict=True)
            if amount
        )
    else:
        return None
    return round(length) if length < _END_OF_TIME else None
