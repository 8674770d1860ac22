"""What a reset would commit: decided for all partitions before anything is changed.

An offset that lies outside of the log is an error that names the range, and so is a shift of a
partition in which nothing is committed. Kafka's tool takes the nearest offset in the range instead
and says so in a line among others: a typing error would then commit what nobody asked for.
"""

from collections.abc import Mapping, Sequence

from tools.errors import CommandError
from tools.groups.reset_target import Kind, Target
from tools.log_ends import Place, place_name


def plan_reset(
    target: Target,
    places: Sequence[Place],
    *,
    committed: Mapping[Place, int],
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    at_time: Mapping[Place, int],
    from_file: Mapping[Place, int],
) -> dict[Place, int]:
    """The new offset of each partition. Raises CommandError with everything that cannot be.

    `at_time`: for `Kind.TIME`; `from_file`: for `Kind.FILE`. A current offset is not held against
    the log, which may have moved on since.
    """
    if target.kind is Kind.SHIFT:
        lost = [place_name(place) for place in places if place not in committed]
        if lost:
            raise CommandError(f"nothing is committed to shift in {_some(lost)}")
    wanted = {
        place: _wanted(target, place, committed, firsts, ends, at_time, from_file)
        for place in places
    }
    if target.kind is Kind.CURRENT:
        return wanted
    outside = [
        f"{place_name(place)} has offsets {firsts[place]} to {ends[place]}, not {offset}"
        for place, offset in wanted.items()
        if not firsts[place] <= offset <= ends[place]
    ]
    if outside:
        raise CommandError(f"{_some(outside, '; ')}. Nothing was changed")
    return wanted


def _wanted(
    target: Target,
    place: Place,
    committed: Mapping[Place, int],
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    at_time: Mapping[Place, int],
    from_file: Mapping[Place, int],
) -> int:
    match target.kind:
        case Kind.EARLIEST:
            return firsts[place]
        case Kind.LATEST:
            return ends[place]
        case Kind.CURRENT:
            return committed.get(place, ends[place])
        case Kind.OFFSET:
            return target.number
        case Kind.TIME:
            return at_time[place]
        case Kind.SHIFT:
            return committed[place] + target.number
        case Kind.FILE:
            return from_file[place]


def _some(texts: Sequence[str], between: str = ", ", limit: int = 5) -> str:
    shown = between.join(texts[:limit])
    return shown + (f"{between}{len(texts) - limit} more" if len(texts) > limit else "")
