"""The target of a reset, parsed from arguments."""

import argparse
from dataclasses import dataclass
from enum import Enum

from tools.errors import CommandError
from tools.moments import parse_moment, parse_span


class Kind(Enum):
    """How the new offset of a partition is found."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    TIME = "time"
    SHIFT = "shift"
    FILE = "file"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Target:
    """A kind and its number: an offset, a time in milliseconds since the epoch, or a shift."""

    kind: Kind
    number: int = 0


OPTIONS = ("to", "by_duration", "shift_by", "from_file", "from_group")


def parse_target(args: argparse.Namespace, now_ms: int) -> Target:
    """Return the target. Raises CommandError unless the arguments give exactly one."""
    given = [name for name in OPTIONS if getattr(args, name) is not None]
    if len(given) != 1:
        raise CommandError(
            "--reset needs to know where to: one of --to, --shift-by, --by-duration, --from-file,"
            " --from-group"
        )
    if args.from_file is not None:
        return Target(Kind.FILE)
    if args.from_group is not None:
        return Target(Kind.GROUP)
    if args.shift_by is not None:
        return Target(Kind.SHIFT, args.shift_by)
    if args.by_duration is not None:
        return Target(Kind.TIME, now_ms - parse_span(args.by_duration))
    return parse_to(args.to)


def parse_to(text: str) -> Target:
    """Parse `earliest`, `latest`, `current`, an offset, or a time. Raises CommandError."""
    if text in (Kind.EARLIEST.value, Kind.LATEST.value, Kind.CURRENT.value):
        return Target(Kind(text))
    if text.isdecimal():
        return Target(Kind.OFFSET, int(text))
    if text[:1].isdecimal() or text.startswith("@"):
        return Target(Kind.TIME, parse_moment(text))
    raise CommandError(
        f"--to {text}: earliest, latest, current, an offset, or a time as 2026-03-01T12:00:00 (UTC)"
        " or @N in milliseconds"
    )
