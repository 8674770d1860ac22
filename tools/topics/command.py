"""The arguments of `pykafkalog topics`, and the dispatch to its parts."""

import argparse
import time
from collections.abc import Sequence
from typing import Any

from tools.connection import (
    add_command,
    add_topic_option,
    admin_client,
    refusals_as_sentences,
)
from tools.errors import CommandError
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog topics                             every topic, a line each
  pykafkalog topics --create orders --partitions 6 --config retention.ms=864000
  pykafkalog topics --describe orders           partitions, offsets, bytes
  pykafkalog topics --sizes                     the biggest first
  pykafkalog topics --watch orders --count 3    rates and growth
  pykafkalog topics --trim orders:0 --before end --dry-run
  pykafkalog topics --trim orders --before 7d   delete what is older
  pykafkalog topics --alter orders --partitions 12    they can only be added
  pykafkalog topics --delete orders

--trim deletes at once and for good; look first with --dry-run. --before takes
an offset, a date and time (UTC), @ and milliseconds, how long ago (7d, 90min)
or `end`. Records are counted by their offsets: markers of transactions and
what compaction took count, too.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments; 130 Ctrl-C"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "topics",
        text="List, describe, watch, create, alter, trim and delete topics.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="names only (the default)")
    action.add_argument(
        "--describe", nargs="*", metavar="TOPIC", help="these topics, or all but the internal ones"
    )
    action.add_argument(
        "--sizes", nargs="*", metavar="TOPIC", help="records and bytes, of these or all topics"
    )
    action.add_argument(
        "--watch", nargs="*", metavar="TOPIC", help="rates and growth of these or all topics"
    )
    action.add_argument("--create", nargs="*", metavar="TOPIC")
    action.add_argument("--alter", nargs="*", metavar="TOPIC")
    action.add_argument("--delete", nargs="*", metavar="TOPIC")
    action.add_argument(
        "--trim", nargs="*", metavar="TOPIC[:0,1]", help="delete old records, with --before"
    )
    add_topic_option(parser)
    parser.add_argument(
        "--partitions", type=whole(32), help="with --create (default: the broker's) or --alter"
    )
    parser.add_argument("--replication-factor", type=whole(16), default=-1, help="with --create")
    parser.add_argument(
        "--config", action="append", default=[], metavar="K=V", help="with --create"
    )
    parser.add_argument(
        "--if-exists", action="store_true", help="with --delete: a missing topic is fine"
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="with --create: a topic that stands is fine"
    )
    parser.add_argument("--before", metavar="WHERE", help="with --trim: what to delete")
    parser.add_argument("--dry-run", action="store_true", help="with --trim: change nothing")
    parser.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="S", help="with --watch (default: 2)"
    )
    parser.add_argument(
        "--count",
        type=whole(32),
        metavar="N",
        help="with --watch: end after N times (default: Ctrl-C)",
    )
    parser.add_argument(
        "--json", action="store_true", help="JSON; --watch writes lines of it into a pipe anyway"
    )
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 on")
    return seconds


def run(args: argparse.Namespace) -> None:
    """Run the command. Raises CommandError."""
    from tools.wire.brokers import brokers

    _take_named(args)
    if (args.trim is None) != (args.before is None):
        raise CommandError("--trim TOPIC and --before WHERE go together")
    if args.dry_run and args.trim is None:
        raise CommandError("--dry-run goes with --trim")
    if args.create or args.alter or args.delete:
        _change(args)
        return
    with brokers(args) as cluster:
        if args.trim:
            _trim(cluster, args)
        elif args.watch is not None:
            _watch(cluster, args)
        else:
            _show(cluster, args)


def _take_named(args: argparse.Namespace) -> None:
    """Give the topics of `--topic` to the action, as in `--create --topic orders`."""
    for action in ("create", "alter", "delete", "trim", "describe", "sizes", "watch"):
        topics = getattr(args, action)
        if topics is not None:
            topics += args.named
            if not topics and action in ("create", "alter", "delete", "trim"):
                raise CommandError(f"--{action}: which topic?")
            return
    if args.named:
        raise CommandError("--topic goes with --create, --describe and the like")


def _change(args: argparse.Namespace) -> None:
    from tools.topics import changes

    admin = admin_client(args)
    with refusals_as_sentences():
        if args.create:
            changes.create(admin, args)
        elif args.alter:
            changes.alter(admin, args)
        else:
            changes.delete(admin, args)


def _show(cluster: Any, args: argparse.Namespace) -> None:
    from tools.topics import listing
    from tools.topics.survey import chosen_topics, survey

    topics = cluster.topics()
    if args.describe is not None:
        names = chosen_topics(topics, args.describe)
        found = survey(cluster, topics, names)
        listing.show_described(found, _own_configs(cluster, names), as_json=args.json)
    elif args.sizes is not None:
        names = chosen_topics(topics, args.sizes or sorted(topics))
        listing.show_sizes(survey(cluster, topics, names), as_json=args.json)
    else:
        listing.show_names(topics, as_json=args.json)


def _own_configs(cluster: Any, names: Sequence[str]) -> dict[str, dict[str, str]]:
    from tools.configs.settings import Entity, Kind, Source, describe

    return {
        name: {
            setting.name: setting.value or ""
            for setting in describe(cluster, Entity(kind=Kind.TOPIC, name=name))
            if setting.source is Source.TOPIC
        }
        for name in names
    }


def _watch(cluster: Any, args: argparse.Namespace) -> None:
    from tools.topics.survey import chosen_topics, survey
    from tools.topics.watching import looks, watch

    chosen_topics(cluster.topics(), args.watch)

    def take() -> Any:
        topics = cluster.topics()
        names = [name for name in args.watch if name in topics] if args.watch else ()
        if args.watch and not names:
            raise CommandError(f"there is no topic {args.watch[0]} any more")
        return survey(cluster, topics, chosen_topics(topics, names))

    watch(looks(take, args.interval, args.count), as_json=args.json)


def _trim(cluster: Any, args: argparse.Namespace) -> None:
    from tools.chosen import chosen_places
    from tools.topics import listing
    from tools.topics.trimming import look, parse_before, trim
    from tools.wire.brokers import partitions_of

    before = parse_before(args.before, time.time_ns() // 1_000_000)
    topics = cluster.topics()
    trims = look(cluster, topics, chosen_places(args.trim, partitions_of(topics)), before)
    if not args.dry_run:
        trims = trim(cluster, topics, trims)
    listing.show_trims(trims, done=not args.dry_run, as_json=args.json)
