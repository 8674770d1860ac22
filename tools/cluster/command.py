"""The arguments of `pykafkalog cluster`, and the dispatch to its parts."""

import argparse
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tools.connection import add_command
from tools.errors import NoSuchTopic
from tools.whole_numbers import whole

if TYPE_CHECKING:
    from tools.cluster.lagging import PartitionView

EXAMPLES = """\
  pykafkalog cluster                  brokers, counts, features, health
  pykafkalog cluster --health         what is wrong; the exit code says so, too
  pykafkalog cluster --partitions     leaders, replicas, who is not in sync
  pykafkalog cluster --partitions orders payments
  pykafkalog cluster --watch          every two seconds; --interval, --count
  pykafkalog cluster --api-versions   which APIs in which versions
  pykafkalog cluster --json

The controller is the one that brokers name to clients; on a KRaft cluster with
controllers of their own that is a broker which hands requests on to it.

Of a replica that is not in sync is told how many records it lacks, by asking
its broker and the leader's.

exit code: 0 done, with --health: healthy; 1 failed, standard error says why,
with --health: something is wrong; 2 wrong arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "cluster", text="Brokers, health, features and API versions.", examples=EXAMPLES
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--health", action="store_true", help="only what is wrong; exit code 1 if anything is"
    )
    action.add_argument("--api-versions", action="store_true", help="APIs and their versions")
    action.add_argument(
        "--partitions", nargs="*", metavar="TOPIC", help="partitions of these or all topics"
    )
    parser.add_argument(
        "--watch", action="store_true", help="show it again and again, until Ctrl-C"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="S", help="with --watch (default: 2)"
    )
    parser.add_argument(
        "--count", type=whole(32), metavar="N", help="with --watch: end after N times"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document; with --watch, one each time"
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


def run(args: argparse.Namespace) -> int:
    """Run the command; return 1 if `--health` finds a problem. Raises CommandError."""
    if not args.watch:
        return _look(args)
    from tools.cluster.watching import watch

    watch(lambda: _look(args), args.interval, args.count)
    return 0


def _look(args: argparse.Namespace) -> int:
    """Ask all brokers once and show what they tell."""
    from tools.cluster import listing
    from tools.cluster.survey import survey
    from tools.wire.brokers import brokers

    with brokers(args) as cluster:
        if args.api_versions:
            versions = {number: link.versions for number, link in cluster.every()}
            listing.show_versions(versions, as_json=args.json)
            return 0
        view = survey(cluster)
    if args.health:
        listing.show_health(view.findings, view.reassigned, as_json=args.json)
        return 1 if view.findings else 0
    if args.partitions is not None:
        listing.show_partitions(_chosen(view.partition_views, args.partitions), as_json=args.json)
        return 0
    listing.show_cluster(view, as_json=args.json)
    return 0


def _chosen(views: "Sequence[PartitionView]", topics: Collection[str]) -> "Sequence[PartitionView]":
    """Those of these topics, or all. Raises NoSuchTopic."""
    known = {each.topic for each in views}
    for topic in topics:
        if topic not in known:
            raise NoSuchTopic(topic)
    return [each for each in views if not topics or each.topic in topics]
