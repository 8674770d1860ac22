"""One run of `consume`: resolves topics and bounds, opens a client, reads records, closes it."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tools.connection import READ_ON
from tools.consume.bounds import Bound, Kind, Range, parse_offset, parse_until, resolve
from tools.consume.filters import Filter
from tools.consume.last import last_records
from tools.consume.member import Member
from tools.consume.partitions import read_ranges
from tools.consume.polling import Polling
from tools.consume.topics import chosen_partitions, chosen_topics, parse_numbers
from tools.log_ends import LogEnds, Place, known_partitions
from tools.moments import parse_moment
from tools.presence import Presence
from tools.records.record import Record

READ_COMMITTED: Final = "read_committed"


class Reading:
    """Owns the client; for a group, `close` commits the offsets of printed records."""

    def __init__(
        self, admin: Any, args: argparse.Namespace, settings: dict[str, Any], now_ms: int
    ) -> None:
        from confluent_kafka import Consumer

        known = known_partitions(admin)
        topics = chosen_topics(args.topic, known)
        numbers = None if args.partition is None else parse_numbers(args.partition)
        places = chosen_partitions(topics, numbers, known)
        isolation = _isolation(args, settings)
        ends = LogEnds(admin, read_committed=isolation == READ_COMMITTED)
        until = _until(args, now_ms)
        self._ranges: Final[Mapping[Place, Range]] = (
            {} if args.group else resolve(ends, places, _start(args, now_ms), until)
        )
        presence = Presence(settings)
        self._consumer: Final = Consumer(
            {
                **READ_ON,
                "auto.offset.reset": _reset(args),
                **settings,
                "group.id": args.group or "pykafkalog-consume",
                "enable.auto.commit": bool(args.group),
                "enable.auto.offset.store": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "error_cb": presence.on_error,
            }
        )
        self._polling: Final = Polling(self._consumer, topics, presence)
        self._member: Member | None = None
        if args.group:
            lasts = {} if until is None else ends.ends(places)
            there = {place: end for place, end in lasts.items() if end is not None}
            stops = None if until is None else there
            self._member = Member(self._consumer, topics, self._polling, stops)

    @property
    def total(self) -> int | None:
        """The number of offsets in all ranges; None if one has no end, or for a group."""
        if self._member is not None:
            return None
        total = 0
        for each in self._ranges.values():
            if each.stop is None:
                return None
            total += max(each.stop - each.start, 0)
        return total

    def batches(self) -> Iterator[list[Any]]:
        """Return an iterator over batches of messages, which may be empty. Raises CommandError."""
        if self._member is not None:
            return self._member.read()
        return read_ranges(self._consumer, self._ranges, self._polling)

    def last(self, count: int, chosen: Filter | None) -> list[Record]:
        """Return the last `count` records that `chosen` accepts. Raises CommandError."""
        return last_records(
            lambda ranges: read_ranges(self._consumer, ranges, self._polling),
            self._ranges,
            count,
            chosen,
        )

    def printed(self, messages: Iterable[Any]) -> None:
        """Note that these messages were printed, or filtered out."""
        if self._member is not None:
            self._member.printed(messages)

    def close(self) -> None:
        """Close the client, which leaves the group."""
        self._consumer.close()


def _start(args: argparse.Namespace, now_ms: int) -> Bound:
    if args.offset is not None:
        return parse_offset(args.offset)
    if args.from_timestamp is not None:
        return Bound(Kind.TIME, parse_moment(args.from_timestamp, now_ms))
    return Bound(Kind.FIRST if args.from_beginning or args.last is not None else Kind.END)


def _until(args: argparse.Namespace, now_ms: int) -> Bound | None:
    if args.until is not None:
        return parse_until(args.until, now_ms)
    return Bound(Kind.END) if args.exit or args.last is not None else None


def _isolation(args: argparse.Namespace, settings: Mapping[str, Any]) -> str:
    return str(args.isolation_level or settings.get("isolation.level", READ_COMMITTED))


def _reset(args: argparse.Namespace) -> str:
    """Return `auto.offset.reset`: where a new group begins, or where to go on after retention has
    deleted the next record."""
    return "latest" if args.group and not args.from_beginning else "earliest"
