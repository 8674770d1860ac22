"""Plans the offsets that a reset commits, for all partitions before anything is changed.

An offset outside of the log is an error that names the range; so is a shift of a partition without
a committed offset. Kafka's tool takes the nearest offset in the range and prints one line about it,
so a typing error would commit an offset that nobody asked for (decision 68).
"""

from collections.abc import Mapping, Sequence

from tools.errors import CommandError
from tools.groups.reset_target import Kind, Target
from tools.groups.survey import name_some
from tools.log_ends import Place, place_name


def plan_reset(
    target: Target,
    places: Sequence[Place],
    *,
    committed: Mapping[Place, int],
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    at_time: Mapping[Place, int],
    given: Mapping[Place, int],
) -> dict[Place, int]:
    """Return the new offset of each partition. Raises CommandError with the impossible ones.

    `at_time` is for `Kind.TIME`, `given` for `Kind.FILE` and `Kind.GROUP`. Offsets that a group has
    committed are not compared with the log, which may have moved on since.
    """
    if target.kind is Kind.SHIFT:
        lost = [place_name(place) for place in places if place not in committed]
        if lost:
            raise CommandError(f"nothing is committed to shift in {name_some(lost)}")
    wanted = {
        place: _wanted(target, place, committed, firsts, ends, at_time, given) for place in places
    }
    if target.kind in (Kind.CURRENT, Kind.GROUP):
        return wanted
    outside = [
        f"{place_name(place)} has offsets {firsts[place]} to {ends[place]}, not {offset}"
        for place, offset in wanted.items()
        if not firsts[place] <= offset <= ends[place]
    ]
    if outside:
        raise CommandError(f"{name_some(outside, '; ')}. Nothing was changed")
    return wanted


def _wanted(
    target: Target,
    place: Place,
    committed: Mapping[Place, int],
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    at_time: Mapping[Place, int],
    given: Mapping[Place, int],
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
        case Kind.FILE | Kind.GROUP:
            return given[place]
