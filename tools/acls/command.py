"""The arguments of `pykafkalog acls`, and the dispatch to its parts."""

import argparse
import sys
from typing import Any

from tools.connection import add_command
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog acls                              every rule
  pykafkalog acls --topic orders               the rules that cover a topic
  pykafkalog acls --principal alice            the rules about a principal
  pykafkalog acls --add --allow alice --operation read describe --topic orders
  pykafkalog acls --add --allow alice --producer --topic web- --prefixed
  pykafkalog acls --add --allow bob --consumer --topic orders --group billing
  pykafkalog acls --add --deny bob --operation all --topic pay --host 10.0.0.7
  pykafkalog acls --explain --principal alice --operation write --topic orders
  pykafkalog acls --remove --principal alice --topic orders --dry-run
  pykafkalog acls --remove --principal alice --topic orders

A principal without a type is a user: `alice` is User:alice, and `*` everybody.
`--topic '*'` stands for every topic. The list and --remove take the rules that
fit all options. By a name the list has all rules that cover it, also those of
prefixes and of '*'; --remove those of this very name; both with --prefixed
those of this prefix, and with --literal of this very name.

exit code: 0 done, and --explain: allowed; 1 refused or failed, standard error
says why, and --explain: denied; 2 wrong arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "acls",
        text="List, change and explain rules of access.",
        examples=EXAMPLES,
    )
    parser.usage = (
        "pykafkalog acls [--list | --add | --remove | --explain]\n"
        "         [RESOURCES] [--operation OP ...] [options]"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="the rules (the default)")
    action.add_argument("--add", action="store_true", help="rules for all that is named")
    action.add_argument("--remove", action="store_true", help="the rules that fit")
    action.add_argument(
        "--explain", action="store_true", help="may this principal do that, and by which rule"
    )
    resources = parser.add_argument_group("resources")
    for option, of in (
        ("--topic", "TOPIC"),
        ("--group", "GROUP"),
        ("--transactional-id", "ID"),
        ("--delegation-token", "TOKEN"),
        ("--user-principal", "USER"),
    ):
        resources.add_argument(option, nargs="+", default=[], metavar=of)
    resources.add_argument("--cluster", action="store_true", help="the cluster itself")
    pattern = resources.add_mutually_exclusive_group()
    pattern.add_argument("--prefixed", action="store_true", help="names are prefixes")
    pattern.add_argument("--literal", action="store_true", help="names are names, to list, remove")
    who = parser.add_argument_group("who, from where, what")
    who.add_argument("--allow", "--allow-principal", nargs="+", default=[], metavar="PRINCIPAL")
    who.add_argument("--deny", "--deny-principal", nargs="+", default=[], metavar="PRINCIPAL")
    who.add_argument("--principal", metavar="PRINCIPAL", help="to list, remove and explain")
    who.add_argument(
        "--host", metavar="ADDRESS", help="or a range of them, 10.0.0.0/8 (default: all)"
    )
    who.add_argument(
        "--operation", nargs="+", default=[], metavar="OP", help="read, write, describe, …, all"
    )
    who.add_argument("--producer", action="store_true", help="what it needs of its topics and id")
    who.add_argument("--consumer", action="store_true", help="what it needs of topics and group")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises CommandError."""
    from tools.wire.brokers import brokers

    _require_sense(args)
    act = _list
    for chosen, given in ((_add, args.add), (_remove, args.remove), (_explain, args.explain)):
        if given:
            act = chosen
    with brokers(args) as cluster:
        return act(cluster, args)


def _require_sense(args: argparse.Namespace) -> None:
    if (args.allow or args.deny) and not args.add:
        raise CommandError("--allow and --deny go with --add; --principal chooses among rules")
    if args.dry_run and not (args.add or args.remove):
        raise CommandError("--dry-run goes with --add or --remove")
    if (args.producer or args.consumer) and not args.add:
        raise CommandError("--producer and --consumer go with --add")
    if args.add and args.principal is not None:
        raise CommandError("--add takes --allow or --deny with the principal")


def _list(cluster: Any, args: argparse.Namespace) -> int:
    from tools.acls import listing, rules, words

    found = {rule for chosen in words.filters(args) for rule in rules.select(cluster, chosen)}
    listing.show_rules(sorted(found), as_json=args.json, nothing="There are no such rules.")
    return 0


def _add(cluster: Any, args: argparse.Namespace) -> int:
    from tools.acls import listing, rules, words

    wanted = words.rules(args)
    if args.dry_run:
        print("These rules would be there; nothing was changed.", file=sys.stderr)
    else:
        rules.create(cluster, wanted)
    listing.show_rules(wanted, as_json=args.json, nothing="")
    return 0


def _remove(cluster: Any, args: argparse.Namespace) -> int:
    from protocol.acls.filters import RuleFilter
    from tools.acls import listing, rules, words

    filters = words.filters(args)
    if filters == [RuleFilter()]:
        raise CommandError("--remove needs to be told what: a resource, a principal, an operation")
    if args.dry_run:
        found = {rule for chosen in filters for rule in rules.select(cluster, chosen)}
        print("These rules would go; nothing was changed.", file=sys.stderr)
    else:
        found = set(rules.delete(cluster, filters))
    listing.show_rules(sorted(found), as_json=args.json, nothing="There are no such rules.")
    return 0


def _explain(cluster: Any, args: argparse.Namespace) -> int:
    from tools.acls import listing, rules, words
    from tools.acls.explanation import explain

    action = words.action(args)
    found = rules.select(cluster, words.covering(action))
    told = explain(found, action, rules.defaults(cluster))
    listing.show_explanation(action, told, as_json=args.json)
    return 0 if told.decision.allowed else 1
