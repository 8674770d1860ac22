"""The arguments of `pykafkalog transactions`, and the dispatch to its parts."""

import argparse
import time
from collections.abc import Callable
from typing import Any

from tools.connection import add_command
from tools.errors import CommandError
from tools.log_ends import Place
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog transactions                          every transactional id
  pykafkalog transactions --state Ongoing --longer-than 1min
  pykafkalog transactions --describe billing
  pykafkalog transactions --producers orders       who writes there
  pykafkalog transactions --why orders:0           why read_committed consumers
                                                   get no further
  pykafkalog transactions --find-hanging
  pykafkalog transactions --abort orders:0 --start-offset 1200
  pykafkalog transactions --fence billing          abort what goes on

--abort is for a transaction that hangs: it writes the marker that nobody else
will write. Where the coordinator knows the transaction, --fence aborts it in
all of its partitions, and its producer cannot go on.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "transactions",
        text="List, explain and abort transactions.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="every id (the default)")
    action.add_argument("--describe", nargs="+", metavar="ID")
    action.add_argument("--producers", nargs="+", metavar="TOPIC[:0,1]")
    action.add_argument("--why", metavar="TOPIC:N", help="why the last stable offset stands still")
    action.add_argument(
        "--find-hanging",
        nargs="*",
        metavar="TOPIC[:0,1]",
        help="open ones that nobody will end, in these or all partitions",
    )
    action.add_argument("--abort", metavar="TOPIC:N", help="one that hangs, in one partition")
    action.add_argument("--fence", metavar="ID", help="abort its transaction, refuse its producer")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    listing = parser.add_argument_group("with --list")
    listing.add_argument("--state", action="append", default=[], metavar="STATE")
    listing.add_argument("--longer-than", metavar="SPAN", help="open for longer: 90s, 15min, PT1H")
    parser.add_argument_group("with --find-hanging").add_argument(
        "--longest",
        default="15min",
        metavar="SPAN",
        help="the longest that a transaction may last, as transaction.max.timeout.ms of the"
        " brokers says (default: 15min)",
    )
    abort = parser.add_argument_group("with --abort")
    abort.add_argument("--start-offset", type=whole(64), metavar="N", help="where it begins")
    abort.add_argument("--force", action="store_true", help="even one that does not hang")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the command. Raises CommandError."""
    from tools.wire.brokers import brokers

    _require_sense(args)
    act: Callable[[Any, argparse.Namespace], None] = _list
    for action, given in (
        (_describe, args.describe),
        (_producers, args.producers),
        (_why, args.why),
        (_abort, args.abort),
        (_fence, args.fence),
    ):
        if given:
            act = action
    if args.find_hanging is not None:
        act = _find_hanging
    with brokers(args) as cluster:
        act(cluster, args)


def _require_sense(args: argparse.Namespace) -> None:
    if (args.abort is None) != (args.start_offset is None):
        raise CommandError(
            "--abort TOPIC:N and --start-offset go together; --why TOPIC:N and --find-hanging"
            " say where transactions begin"
        )
    if args.force and args.abort is None:
        raise CommandError("--force goes with --abort")
    others = (args.describe, args.producers, args.why, args.abort, args.fence)
    if (args.state or args.longer_than) and (any(others) or args.find_hanging is not None):
        raise CommandError("--state and --longer-than go with --list")


def _list(cluster: Any, args: argparse.Namespace) -> None:
    from tools.moments import parse_span
    from tools.transactions import listing, survey

    longer_than = -1 if args.longer_than is None else parse_span(args.longer_than)
    found = survey.list_all(cluster, states=args.state, longer_than_ms=longer_than)
    running = {f.transactional_id: f.coordinator for f in found if f.state in survey.RUNNING}
    described = survey.describe(cluster, running)
    listing.show_list(found, described, _now_ms(), as_json=args.json)


def _describe(cluster: Any, args: argparse.Namespace) -> None:
    from tools.transactions import listing, survey

    found = survey.require_transactions(cluster, args.describe)
    listing.show_transactions(found, _now_ms(), as_json=args.json)


def _producers(cluster: Any, args: argparse.Namespace) -> None:
    from tools.transactions import listing, survey

    topics = cluster.topics()
    found = survey.producers(cluster, topics, _places(topics, args.producers))
    listing.show_producers(found, as_json=args.json)


def _why(cluster: Any, args: argparse.Namespace) -> None:
    from tools.transactions import listing
    from tools.transactions.explanation import Stability, explain
    from tools.wire.offsets import list_offsets

    topics = cluster.topics()
    place = _one_place(topics, args.why)
    # Ask for the end first, so that a commit between the requests cannot give a negative lag.
    end = list_offsets(cluster, topics, [place])[place]
    stable = list_offsets(cluster, topics, [place], read_committed=True)[place]
    stability = Stability(place=place, stable=stable, end=end)
    opened = _opened(cluster, topics, [place]) if stability.held_back else []
    listing.show_why(stability, explain(stability, opened, _now_ms()), as_json=args.json)


def _find_hanging(cluster: Any, args: argparse.Namespace) -> None:
    from tools.moments import parse_span
    from tools.transactions import listing

    topics = cluster.topics()
    places = _places(topics, args.find_hanging or sorted(topics))
    opened = _opened(cluster, topics, places, silent_for_ms=parse_span(args.longest))
    hanging = [each for each in opened if each.hangs]
    listing.show_hanging(hanging, len(places), _now_ms(), as_json=args.json)


def _abort(cluster: Any, args: argparse.Namespace) -> None:
    from tools.json_output import print_document
    from tools.log_ends import place_name
    from tools.transactions.ending import marker_for, write_abort

    topics = cluster.topics()
    place = _one_place(topics, args.abort)
    opened = _opened(cluster, topics, [place])
    marker = marker_for(opened, place, args.start_offset, force=args.force)
    write_abort(cluster, topics, marker)
    if args.json:
        print_document(
            {
                "aborted": {"topic": place[0], "partition": place[1]},
                "start_offset": args.start_offset,
                "producer_id": marker.producer_id,
                "producer_epoch": marker.producer_epoch,
            }
        )
        return
    print(
        f"Aborted the transaction of producer {marker.producer_id} at offset {args.start_offset}"
        f" of {place_name(place)}."
    )


def _fence(cluster: Any, args: argparse.Namespace) -> None:
    from tools.json_output import print_document
    from tools.transactions.ending import fence
    from tools.transactions.survey import require_transactions

    (transaction,) = require_transactions(cluster, [args.fence])
    producer_id, epoch = fence(cluster, transaction)
    if args.json:
        print_document(
            {
                "fenced": args.fence,
                "was": transaction.state,
                "producer_id": producer_id,
                "producer_epoch": epoch,
            }
        )
        return
    ended = "its transaction is aborted, and " if transaction.state == "Ongoing" else ""
    print(f"Fenced {args.fence}: {ended}its producer is refused from now on.")


def _opened(
    cluster: Any, topics: Any, places: list[Place], *, silent_for_ms: int | None = None
) -> list[Any]:
    """Return the open transactions of partitions, with their coordinators' answers."""
    from tools.transactions.hanging import open_transactions, silent_for
    from tools.transactions.survey import describe, list_all, producers

    found = [p for p in producers(cluster, topics, places) if p.start_offset is not None]
    if silent_for_ms is not None:
        found = silent_for(found, silent_for_ms, _now_ms())
    if not found:
        return []
    listed = list_all(cluster, producer_ids={each.producer_id for each in found})
    names = {each.producer_id: each.transactional_id for each in listed}
    known = describe(cluster, {each.transactional_id: each.coordinator for each in listed})
    return open_transactions(found, names, known)


def _places(topics: Any, words: list[str]) -> list[Place]:
    from tools.chosen import chosen_places
    from tools.wire.brokers import partitions_of

    return chosen_places(words, partitions_of(topics))


def _one_place(topics: Any, word: str) -> Place:
    places = _places(topics, [word])
    if len(places) != 1:
        raise CommandError(f"{word}: name one partition, as {places[0][0]}:{places[0][1]}")
    return places[0]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
