"""The arguments of `pykafkalog configs`, and the dispatch to its parts."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from tools.connection import add_command, parse_settings
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog configs --topic orders              what is set on the topic itself
  pykafkalog configs --topic orders --all        everything, and where from
  pykafkalog configs --topic orders --add retention.ms=60000
  pykafkalog configs --topic orders --delete retention.ms
  pykafkalog configs --broker 0 --changed        what is not at its default
  pykafkalog configs --broker 0 --no-effect      what is set and does nothing
  pykafkalog configs --broker 0 --explain log.retention.ms
  pykafkalog configs --broker 0 --add log.retention.ms=3600000
  pykafkalog configs --cluster-default           what is set for all brokers
  pykafkalog configs --loggers 0                 levels of a broker's loggers
  pykafkalog configs --loggers 0 --add broker.server=DEBUG

effect: `none` where the broker says that it does not follow the setting. Those
of Apache Kafka do not tell.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "configs",
        text="Show and change settings of topics, brokers and loggers.",
        examples=EXAMPLES,
    )
    parser.usage = (
        "pykafkalog configs\n"
        "         (--topic TOPIC | --broker ID | --cluster-default | --loggers ID)\n"
        "         [options]"
    )
    entity = parser.add_mutually_exclusive_group(required=True)
    entity.add_argument("--topic", metavar="TOPIC")
    entity.add_argument("--broker", metavar="ID")
    entity.add_argument(
        "--cluster-default", action="store_true", help="what was set for all brokers"
    )
    entity.add_argument("--loggers", metavar="ID", help="of this broker")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--all", action="store_true", help="also what is at its default")
    shown.add_argument(
        "--changed", action="store_true", help="what is not at its default, wherever it was set"
    )
    shown.add_argument(
        "--no-effect", action="store_true", help="what was set and changes nothing in this broker"
    )
    shown.add_argument("--explain", nargs="+", metavar="K", help="all there is to say of these")
    parser.add_argument(
        "--add", "--add-config", nargs="+", default=[], metavar="K=V", help="set these"
    )
    parser.add_argument(
        "--delete",
        "--delete-config",
        nargs="+",
        default=[],
        metavar="K",
        help="back to the default",
    )
    for option in ("--describe", "--alter"):  # of kafka-configs.sh; what is done is clear without
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--dry-run", action="store_true", help="ask whether the change would be taken"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Show or change settings. Raises CommandError."""
    from tools.configs.settings import change, describe, describe_settled
    from tools.wire.brokers import brokers

    args.add = [pair for word in args.add for pair in _split(word)]
    add = parse_settings(args.add)
    args.delete = [name for word in args.delete for name in word.split(",")]
    if args.dry_run and not (add or args.delete):
        raise CommandError("--dry-run goes with --add or --delete")
    with brokers(args) as cluster:
        entity = _entity(cluster, args)
        if not (add or args.delete):
            _show(describe(cluster, entity), entity, args)
            return
        change(cluster, entity, add, args.delete, validate_only=args.dry_run)
        if args.dry_run:
            print("The change would be taken; nothing was changed.", file=sys.stderr)
            return
        found = describe_settled(cluster, entity, add, args.delete)
    _warn([each for each in found if each.name in add])
    _show(found, entity, args)


def _split(word: str) -> list[str]:
    """Split `a=1,b=2`; a comma of a list stays, in brackets or not: `a=[x,y],b=x,y`."""
    return re.split(r",(?=[\w.-]+=)(?![^\[]*\])", word)


def _entity(cluster: Any, args: argparse.Namespace) -> Any:
    """Return the entity that the arguments name. Raises CommandError if it does not exist."""
    from tools.configs.settings import Entity, Kind
    from tools.log_ends import require_topic
    from tools.wire.brokers import partitions_of

    if args.topic is not None:
        require_topic(partitions_of(cluster.topics()), args.topic)
        return Entity(kind=Kind.TOPIC, name=args.topic)
    if args.cluster_default:
        return Entity(kind=Kind.BROKER, name="")
    name = args.broker if args.broker is not None else args.loggers
    if not name.isdecimal() or int(name) not in cluster.addresses:
        known = ", ".join(map(str, sorted(cluster.addresses)))
        raise CommandError(f"there is no broker {name}; known: {known}")
    return Entity(kind=Kind.BROKER if args.broker is not None else Kind.LOGGERS, name=name)


def _warn(added: Sequence[Any]) -> None:
    """Warn of settings that were just set and have no effect."""
    for each in added:
        if each.without_effect:
            print(f"{each.name} is set, and has no effect in this broker", file=sys.stderr)


def _show(found: Sequence[Any], entity: Any, args: argparse.Namespace) -> None:
    from tools.configs import listing
    from tools.configs.settings import OWN, Kind

    if args.explain:
        listing.explain(found, args.explain, as_json=args.json)
        return
    if entity.kind is Kind.LOGGERS:
        named = {*parse_settings(args.add), *args.delete}
        levels = [each for each in found if each.name in named or not named]
        listing.show_levels(levels, as_json=args.json)
        return
    chosen = [
        each
        for each in found
        if args.all
        or (args.changed and each.changed)
        or (args.no_effect and each.changed and each.without_effect)
        or (not (args.changed or args.no_effect) and each.source in OWN[entity.kind])
    ]
    nothing = "Nothing is set here: every value is the broker's default (--all shows them)."
    if args.changed:
        nothing = "Everything is at its default (--all shows it)."
    elif args.no_effect:
        nothing = "Nothing is set that has no effect."
    listing.show_settings(chosen, as_json=args.json, nothing=nothing)
