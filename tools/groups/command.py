"""The arguments of `pykafkalog groups`, and the dispatch to its parts."""

import argparse

from tools.connection import add_command, admin_client, refusals_as_sentences
from tools.errors import CommandError
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog groups                            every group, its state, its lag
  pykafkalog groups --describe billing         members, offsets, lag
  pykafkalog groups --describe billing --json | jq .lag
  pykafkalog groups --reset billing --topic orders --to earliest --dry-run
  pykafkalog groups --reset billing --topic orders:0,2 --to 1200
  pykafkalog groups --reset billing --all-topics --to 2026-03-01T12:00:00
  pykafkalog groups --reset billing --all-topics --by-duration 2h
  pykafkalog groups --reset billing --topic orders --shift-by -10
  pykafkalog groups --reset billing --all-topics --to current --dry-run --export
  pykafkalog groups --reset billing --from-file exported.csv
  pykafkalog groups --reset billing2 --from-group billing
  pykafkalog groups --delete billing
  pykafkalog groups --delete-offsets billing --topic orders

A reset commits at once; look first with --dry-run. It is refused while the
group has members, and where an offset lies outside of the log. Times without a
zone are UTC.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "groups",
        text="List, describe, reset and delete consumer groups.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="every group (the default)")
    action.add_argument("--describe", nargs="*", metavar="GROUP", help="these groups, or all")
    action.add_argument(
        "--reset", metavar="GROUP", help="set committed offsets; the group must be empty"
    )
    action.add_argument(
        "--reset-offsets",
        action="store_true",
        help="as in kafka-consumer-groups.sh: of --group, and only shown without --execute",
    )
    action.add_argument("--delete", nargs="*", metavar="GROUP")
    action.add_argument(
        "--delete-offsets",
        nargs="?",
        const="",
        metavar="GROUP",
        help="forget what is committed for --topic",
    )
    parser.add_argument(
        "-g",
        "--group",
        dest="named",
        action="append",
        default=[],
        metavar="GROUP",
        help="the group of one of these, as in Kafka's tools",
    )
    parser.add_argument("--all-groups", action="store_true", help="with --describe: the default")
    parser.add_argument(
        "--topic",
        action="append",
        metavar="TOPIC[:0,1]",
        help="with --reset and --delete-offsets; several times for several topics",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    _add_reset_arguments(parser.add_argument_group("with --reset"))
    parser.set_defaults(run=run)


def _add_reset_arguments(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument(
        "--all-topics", action="store_true", help="every topic that the group has offsets of"
    )
    parser.add_argument(
        "--to", metavar="WHERE", help="earliest, latest, current, an offset, or a date and time"
    )
    for word in ("earliest", "latest", "current"):
        parser.add_argument(
            f"--to-{word}", dest="to", action="store_const", const=word, help=argparse.SUPPRESS
        )
    for name in ("--to-offset", "--to-datetime"):
        parser.add_argument(name, dest="to", help=argparse.SUPPRESS)
    parser.add_argument("--shift-by", type=whole(64), metavar="N", help="so many on, or back (-N)")
    parser.add_argument("--by-duration", metavar="SPAN", help="to so long ago: 90min, 2h, P1D")
    parser.add_argument(
        "--from-file", metavar="FILE", help="CSV as kafka-consumer-groups.sh exports it, or -"
    )
    parser.add_argument(
        "--from-group",
        "--to-group",
        metavar="OTHER",
        help="the offsets that another group has committed",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be, change nothing")
    parser.add_argument("--execute", action="store_true", help="with --reset-offsets: do it")
    parser.add_argument("--export", action="store_true", help="print the offsets as that CSV")


def run(args: argparse.Namespace) -> None:
    """Run the command. Raises CommandError."""
    from tools.groups import deletion, listing, reset
    from tools.groups.survey import all_groups, require_group, survey

    _take_named(args)
    if not args.reset and (args.all_topics or args.export or _targets(args)):
        raise CommandError("--all-topics, --export, --to and the like go with --reset GROUP")
    admin = admin_client(args)
    with refusals_as_sentences():
        if args.describe is not None:
            names = args.describe or all_groups(admin)
            for group in [require_group(admin, name) for name in names]:
                listing.show_one(group, as_json=args.json)
        elif args.reset:
            reset.reset(admin, args)
        elif args.delete:
            deletion.delete_groups(admin, args)
        elif args.delete_offsets:
            deletion.delete_offsets(admin, args)
        else:
            listing.show_all(survey(admin, all_groups(admin)), as_json=args.json)


def _take_named(args: argparse.Namespace) -> None:
    """Give the groups of `--group` to the action. Raises CommandError without one that needs it."""
    if args.reset_offsets:
        if args.execute and args.dry_run:
            raise CommandError("--execute and --dry-run: only one of them")
        args.reset, args.dry_run = _only(args.named, "--reset-offsets"), not args.execute
    elif args.describe is not None:
        args.describe += args.named
    elif args.delete is not None:
        args.delete += args.named
        if not args.delete:
            raise CommandError("--delete: which group?")
    elif args.delete_offsets == "":
        args.delete_offsets = _only(args.named, "--delete-offsets")
    elif args.named:
        raise CommandError("--group goes with --describe, --reset-offsets, --delete and the like")


def _only(groups: list[str], option: str) -> str:
    if len(groups) != 1:
        raise CommandError(f"{option}: which --group?")
    return groups[0]


def _targets(args: argparse.Namespace) -> bool:
    return any(
        value is not None
        for value in (args.to, args.shift_by, args.by_duration, args.from_file, args.from_group)
    )
