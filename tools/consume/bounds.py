"""The beginning and the end of reading in each partition.

`--offset` and `--until` give one bound for all partitions; with the broker's offsets of each
partition it becomes a range. A start offset outside of a log is an error that names the range.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tools.errors import CommandError
from tools.log_ends import LogEnds, Place, place_name
from tools.moments import parse_moment


class Kind(Enum):
    """The kind of a bound."""

    FIRST = "first"
    END = "end"
    OFFSET = "offset"
    BACK = "back"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound. `number`: an offset, a count back from the end, or milliseconds since the epoch."""

    kind: Kind
    number: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from `start` to before `stop`; without an end if `stop` is None."""

    start: int
    stop: int | None

    @property
    def is_empty(self) -> bool:
        """Whether the range holds no offset."""
        return self.stop is not None and self.stop <= self.start


_WORDS = {
    "earliest": Kind.FIRST,
    "beginning": Kind.FIRST,
    "latest": Kind.END,
    "end": Kind.END,
}


def parse_offset(text: str) -> Bound:
    """Parse `1200`, `-5` (5 before the end), `earliest` or `latest`. Raises CommandError."""
    if text in _WORDS:
        return Bound(_WORDS[text])
    if text.isdecimal():
        return Bound(Kind.OFFSET, int(text))
    if text.startswith("-") and text[1:].isdecimal():
        return Bound(Kind.BACK, int(text[1:]))
    raise CommandError(f"--offset {text}: an offset, -N for N before the end, earliest or latest")


def parse_until(text: str, now_ms: int) -> Bound:
    """Parse `end`, an offset, a time, `@` with milliseconds, or a span before now.

    Raises CommandError, also for a time in the future.
    """
    if text == "end":
        return Bound(Kind.END)
    if text.isdecimal():
        return Bound(Kind.OFFSET, int(text))
    moment = parse_moment(text, now_ms)
    if moment > now_ms:
        raise CommandError(f"--until {text} lies ahead: end it yourself (Ctrl-C, `timeout 60 …`)")
    return Bound(Kind.TIME, moment)


def resolve(
    ends: LogEnds, places: Sequence[Place], start: Bound, until: Bound | None
) -> dict[Place, Range]:
    """Return a range for each partition. Raises CommandError for a start outside of a log.

    Writes to standard error if `until` is an offset that no log has.
    """
    firsts, lasts = _there(ends.firsts(places)), _there(ends.ends(places))
    starts = _resolved(start, places, ends, firsts, lasts)
    for place, offset in starts.items():
        if not firsts[place] <= offset <= lasts[place]:
            raise CommandError(
                f"{place_name(place)} has offsets {firsts[place]} to {lasts[place]}, not {offset}"
            )
    if until is None:
        return {place: Range(starts[place], None) for place in places}
    if until.kind is Kind.OFFSET and until.number > max(lasts.values(), default=until.number):
        place = max(lasts, key=lasts.__getitem__)
        print(
            f"--until {until.number} is an offset beyond the end of every log ({place_name(place)}"
            f" ends at {lasts[place]}); a time in milliseconds is --until @{until.number}",
            file=sys.stderr,
        )
    # Never beyond the end as it is now: nobody knows when records will come to an idle partition.
    stops = _resolved(until, places, ends, firsts, lasts)
    return {place: Range(starts[place], min(stops[place], lasts[place])) for place in places}


def _resolved(
    bound: Bound,
    places: Sequence[Place],
    ends: LogEnds,
    firsts: Mapping[Place, int],
    lasts: Mapping[Place, int],
) -> dict[Place, int]:
    match bound.kind:
        case Kind.FIRST:
            return dict(firsts)
        case Kind.END:
            return dict(lasts)
        case Kind.OFFSET:
            return dict.fromkeys(places, bound.number)
        case Kind.BACK:
            return {place: max(lasts[place] - bound.number, firsts[place]) for place in places}
        case Kind.TIME:
            return _there(ends.at_time(places, bound.number))


def _there(offsets: Mapping[Place, int | None]) -> dict[Place, int]:
    for place, offset in offsets.items():
        if offset is None:
            raise CommandError(f"there is no partition {place_name(place)} any more")
    return {place: offset for place, offset in offsets.items() if offset is not None}
