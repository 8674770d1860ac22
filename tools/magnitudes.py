"""Bytes and times as people read them."""

from datetime import datetime
from typing import Final

_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_STEP: Final = 1000
_SPANS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


def size_of(size: int) -> str:
    """Return bytes in a decimal unit: 1234567 -> 1.2 MB."""
    amount, unit = float(size), 0
    while abs(amount) >= _STEP and unit < len(_UNITS) - 1:
        amount /= _STEP
        unit += 1
    return f"{size:,} B" if unit == 0 else f"{amount:,.1f} {_UNITS[unit]}"


def duration(milliseconds: int) -> str:
    """Return its one or two largest units: 93784000 -> 1 d 2 h; milliseconds only below 1 s."""
    parts, left = [], abs(milliseconds)
    for span, name in _SPANS:
        count, left = divmod(left, span)
        if count:
            parts.append(f"{count} {name}")
        if len(parts) == 2 or (parts and (not count or name == "s")):
            break
    return " ".join(parts) or "0 ms"


def moment(timestamp_ms: int) -> str:
    """Return milliseconds since the epoch as local time; as a number if it is out of range."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return str(timestamp_ms)
