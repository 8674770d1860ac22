"""Plans and deletes records from the beginning of partitions (DeleteRecords)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tools.errors import CommandError
from tools.log_ends import Place, place_name
from tools.moments import parse_moment
from tools.wire.brokers import Brokers, Topics, leaders_of
from tools.wire.offsets import EARLIEST, list_offsets
from tools.wire.refusals import sentence

TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The bound of a deletion: an offset, a time in ms since the epoch, or (both None) the end."""

    offset: int | None = None
    moment: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """The deletion in one partition, in offsets."""

    place: Place
    start: int
    new_start: int
    end: int

    @property
    def deleted(self) -> int:
        """Number of offsets that are deleted."""
        return self.new_start - self.start


def parse_before(text: str, now_ms: int) -> Before:
    """Parse `end`, an offset, a time, `@` with milliseconds, or a span before now.

    Raises CommandError.
    """
    if text in ("end", "latest"):
        return Before()
    if text.isdecimal():
        return Before(offset=int(text))
    moment = parse_moment(text, now_ms)
    if moment > now_ms:
        raise CommandError(f"--before {text} lies ahead: `end` deletes all that is there")
    return Before(moment=moment)


def plan(
    starts: Mapping[Place, int],
    ends: Mapping[Place, int],
    before: Before,
    at_time: Mapping[Place, int],
) -> list[Trim]:
    """Plan the deletions by partition; one that begins after the offset stays as it is.

    `at_time` has the first offset at or after the time, or -1 if all records are older. Raises
    CommandError for an offset beyond the end.
    """
    trims = []
    for place, start in sorted(starts.items()):
        end = ends[place]
        wanted = end
        if before.offset is not None:
            wanted = before.offset
        elif before.moment is not None and at_time[place] >= 0:
            wanted = at_time[place]
        if wanted > end:
            raise CommandError(
                f"{place_name(place)} has offsets {start} to {end}, not {wanted}; nothing was"
                " deleted"
            )
        trims.append(Trim(place=place, start=start, new_start=max(wanted, start), end=end))
    return trims


def look(cluster: Brokers, topics: Topics, places: Sequence[Place], before: Before) -> list[Trim]:
    """Ask the brokers for offsets and return the plan. Raises CommandError."""
    starts = list_offsets(cluster, topics, places, EARLIEST)
    ends = list_offsets(cluster, topics, places)
    at_time = {}
    if before.moment is not None:
        at_time = list_offsets(cluster, topics, places, before.moment)
    return plan(starts, ends, before, at_time)


def trim(cluster: Brokers, topics: Topics, trims: Sequence[Trim]) -> list[Trim]:
    """Delete records; return the result by partition. Raises CommandError for the first refusal."""
    offsets = {each.place: each.new_start for each in trims if each.deleted}
    reached: dict[Place, int] = {}
    for leader, led in leaders_of(topics, sorted(offsets)).items():
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition_index=number, offset=offsets[name, number])
                        for _, number in of_topic
                    ],
                )
                for name, of_topic in groupby(sorted(led), key=lambda place: place[0])
            ],
            timeout_ms=TIMEOUT_MS,
        )
        answer = cluster.broker(leader).call(request, DeleteRecordsResponse)
        for topic in answer.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if partition.error_code:
                    raise CommandError(_refusal(place, partition.error_code, len(reached)))
                reached[place] = partition.low_watermark
    return [
        Trim(
            place=each.place,
            start=each.start,
            new_start=reached.get(each.place, each.new_start),
            end=each.end,
        )
        for each in trims
    ]


def _refusal(place: Place, code: int, done: int) -> str:
    reason = sentence(code)
    if code == ErrorCode.POLICY_VIOLATION:
        reason = "records can only be deleted where cleanup.policy has `delete`"
    return f"{place_name(place)}: {reason}" + (f"; {done} partitions are trimmed" if done else "")
