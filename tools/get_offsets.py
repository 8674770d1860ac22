"""`pykafkalog get-offsets`: first, last or time-based offsets of partitions."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Final

from tools.chosen import chosen_places
from tools.connection import add_command, admin_client, refusals_as_sentences
from tools.errors import CommandError
from tools.json_output import print_line
from tools.log_ends import LogEnds, Place, known_partitions, place_name
from tools.moments import parse_moment

EXAMPLES = """\
  pykafkalog get-offsets orders                       the ends of partitions
  pykafkalog get-offsets orders:0,2 payments          of some
  pykafkalog get-offsets orders --time earliest
  pykafkalog get-offsets orders --time max-timestamp  the newest record
  pykafkalog get-offsets orders --time 1700000000000  the first one from then on
  pykafkalog get-offsets --topic 'log-.*' --partitions 0
  pykafkalog get-offsets --topic-partitions orders:0-3,payments,:7

A line is topic:partition:offset, as kafka-get-offsets.sh prints it, without an
offset where there is no such record. Its options have its meaning: topics are
regular expressions, and without any every partition is listed.

exit code: 0 done; 1 failed, standard error says why; 2 wrong arguments"""

_MOMENTS: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
"""Kafka's names of the special timestamps of ListOffsets."""
_MAX_TIMESTAMP: Final = _MOMENTS["max-timestamp"]


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(commands, "get-offsets", text="Offsets of partitions.", examples=EXAMPLES)
    parser.add_argument("topic", nargs="*", metavar="TOPIC[:0,1]")
    parser.add_argument(
        "--time",
        default="latest",
        metavar="T",
        help="latest (-1, the default), earliest (-2), max-timestamp (-3), earliest-local (-4),"
        " latest-tiered (-5), earliest-pending-upload (-6), milliseconds since the epoch, or a"
        " date and time (UTC)",
    )
    kafkas = parser.add_argument_group("as kafka-get-offsets.sh")
    kafkas.add_argument("--topic", dest="pattern", metavar="REGEX")
    kafkas.add_argument("--partitions", metavar="0,1", help="of the topics of --topic, or of all")
    kafkas.add_argument("--topic-partitions", metavar="REGEX:0-3,…", help="topics and partitions")
    kafkas.add_argument("--exclude-internal-topics", action="store_true")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print `topic:partition:offset` lines, as kafka-get-offsets does. Raises CommandError."""
    moment = _moment(args.time)
    _require_sense(args)
    admin = admin_client(args)
    with refusals_as_sentences():
        known = known_partitions(admin)
        if args.exclude_internal_topics:
            known = {name: numbers for name, numbers in known.items() if not name.startswith("__")}
        places = _places(args, known)
        if moment < _MAX_TIMESTAMP:
            found: Mapping[Place, int | None] = _asked_of_leaders(args, places, moment)
        else:
            found = LogEnds(admin).at(places, moment)
    _print(args, places, found)


def _moment(text: str) -> int:
    if text in _MOMENTS:
        return _MOMENTS[text]
    if text in map(str, _MOMENTS.values()):
        return int(text)
    try:
        return parse_moment(text)
    except CommandError:
        known = ", ".join(f"{name} ({number})" for name, number in _MOMENTS.items())
        raise CommandError(
            f"--time {text}: {known}, milliseconds since the epoch, or a date and time"
        ) from None


def _require_sense(args: argparse.Namespace) -> None:
    by_pattern = args.pattern is not None or args.partitions is not None
    given = [bool(args.topic), by_pattern, args.topic_partitions is not None]
    if sum(given) > 1:
        raise CommandError(
            "name topics, or use --topic and --partitions, or --topic-partitions: one of the three"
        )


def _places(args: argparse.Namespace, known: dict[str, list[int]]) -> list[Place]:
    from tools.topic_partitions import matching, parse_rules, rule_of

    if args.topic:
        return chosen_places(args.topic, known)
    if args.topic_partitions is not None:
        return matching(parse_rules(args.topic_partitions), known)
    return matching([rule_of(args.pattern, args.partitions)], known)


def _asked_of_leaders(
    args: argparse.Namespace, places: list[Place], moment: int
) -> dict[Place, int]:
    """Ask for a timestamp that the client library does not know."""
    from tools.wire.brokers import brokers
    from tools.wire.offsets import list_offsets

    with brokers(args) as cluster:
        return list_offsets(cluster, cluster.topics(), places, moment)


def _print(
    args: argparse.Namespace, places: Iterable[Place], found: Mapping[Place, int | None]
) -> None:
    for place in places:
        offset = found.get(place)
        there = offset is not None and offset >= 0
        if args.json:
            print_line(
                {"topic": place[0], "partition": place[1], "offset": offset if there else None}
            )
        else:
            print(f"{place_name(place)}:{offset if there else ''}")
