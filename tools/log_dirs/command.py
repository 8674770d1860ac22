"""The arguments of `pykafkalog log-dirs`, and the dispatch to its parts."""

import argparse
from collections.abc import Sequence
from typing import Any

from tools.connection import add_command
from tools.errors import CommandError
from tools.log_ends import Place
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog log-dirs                          directories, their volumes, logs
  pykafkalog log-dirs --topics                 by topic, the biggest first
  pykafkalog log-dirs --partitions orders      by partition
  pykafkalog log-dirs --moving                 which logs are on the way
  pykafkalog log-dirs --move orders:0 --to /tmp/kafka-logs --dry-run
  pykafkalog log-dirs --move orders --to /tmp/kafka-logs --wait

--to is a directory in the broker's log.dirs. The partition is served all the
while. Without --wait the move goes on after the command.

exit code: 0 done; 1 refused, failed or given up, standard error says why; 2
wrong arguments; 130 Ctrl-C, and a move goes on"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "log-dirs",
        text="Sizes in log directories, and moves between them.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--topics", action="store_true", help="a line for each topic")
    action.add_argument(
        "--partitions",
        nargs="*",
        metavar="TOPIC[:0,1]",
        help="a line for each log, of all or these",
    )
    action.add_argument("--moving", action="store_true", help="logs that are being moved")
    action.add_argument("--move", nargs="+", metavar="TOPIC[:0,1]", help="move these, with --to")
    parser.add_argument("--broker", type=whole(32), metavar="ID", help="only this one's")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    move = parser.add_argument_group("with --move")
    move.add_argument("--to", metavar="DIR", help="the log directory")
    move.add_argument("--wait", action="store_true", help="until everything has arrived")
    move.add_argument("--dry-run", action="store_true", help="show it, change nothing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the command. Raises CommandError."""
    from tools.log_dirs import listing
    from tools.log_dirs.survey import directories
    from tools.wire.brokers import brokers

    if (args.move is None) != (args.to is None):
        raise CommandError("--move TOPIC and --to DIR go together")
    if (args.wait or args.dry_run) and args.move is None:
        raise CommandError("--wait and --dry-run go with --move")
    with brokers(args) as cluster:
        ids = sorted(cluster.addresses) if args.broker is None else [args.broker]
        if args.move is not None:
            _move(cluster, ids, args)
            return
        places = _places(cluster, args.partitions) if args.partitions else None
        found = directories(cluster, ids, places)
    if args.topics:
        listing.show_topics(found, as_json=args.json)
    elif args.moving:
        listing.show_moving(found, as_json=args.json)
    elif args.partitions is not None:
        copies = [copy for each in found for copy in each.copies]
        copies.sort(key=lambda copy: (copy.place, copy.broker, copy.is_future))
        listing.show_copies(copies, as_json=args.json)
    else:
        listing.show_directories(found, as_json=args.json)


def _move(cluster: Any, ids: Sequence[int], args: argparse.Namespace) -> None:
    from tools.log_dirs import listing
    from tools.log_dirs.moves import Progress, begin, follow, planned, progress
    from tools.log_dirs.survey import directories
    from tools.progress import progress_bar

    places = _places(cluster, args.move)
    moves = planned(directories(cluster, ids, places), places, args.to.rstrip("/") or "/")
    if args.dry_run:
        listing.show_moves(moves, "would be moved", as_json=args.json)
        return
    begin(cluster, moves)
    if not args.wait:
        listing.show_moves(moves, "being moved", as_json=args.json)
        return
    total = sum(move.copy.size for move in moves)
    with progress_bar("moving", total, bytes_=True) as advance:

        def tell(now: Progress) -> None:
            advance(now.bytes_done, absolute=True)

        follow(lambda: progress(moves, directories(cluster, ids, places)), tell)
    listing.show_moves(moves, "moved", as_json=args.json)


def _places(cluster: Any, words: list[str]) -> list[Place]:
    from tools.chosen import chosen_places
    from tools.wire.brokers import partitions_of

    return chosen_places(words, partitions_of(cluster.topics()))
