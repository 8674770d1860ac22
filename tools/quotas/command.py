"""The arguments of `pykafkalog quotas`, and the dispatch to its parts."""

import argparse
import sys

from tools.connection import add_command, parse_settings
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog quotas                      every quota that is set
  pykafkalog quotas --client importer    those that name a client id
  pykafkalog quotas --client importer --add producer_byte_rate=1048576
  pykafkalog quotas --client importer --delete producer_byte_rate
  pykafkalog quotas --user alice --client importer --add request_percentage=50
  pykafkalog quotas --client-defaults --add consumer_byte_rate=4194304
  pykafkalog quotas --ip 192.0.2.7 --add connection_creation_rate=10
  pykafkalog quotas --throttled          who is throttled at this moment
  pykafkalog quotas --throttled --all    what everyone with a quota takes
  pykafkalog quotas --throttled --metrics broker-1:9404

quotas: producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage,
controller_mutation_rate (partitions/s) of users and client ids;
connection_creation_rate (connections/s) of addresses. Each holds per broker.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "quotas",
        text="Show and change quotas of users, client ids and addresses.",
        examples=EXAMPLES,
    )
    for kind, metavar in (("user", "NAME"), ("client", "ID"), ("ip", "ADDRESS")):
        either = parser.add_mutually_exclusive_group()
        either.add_argument(f"--{kind}", metavar=metavar)
        either.add_argument(
            f"--{kind}-defaults", action="store_true", help="of all that have none of their own"
        )
    parser.add_argument(
        "--add", "--add-config", nargs="+", default=[], metavar="K=V", help="set these"
    )
    parser.add_argument(
        "--delete", "--delete-config", nargs="+", default=[], metavar="K", help="remove these"
    )
    for option in ("--describe", "--alter"):  # of kafka-configs.sh; what is done is clear without
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--dry-run", action="store_true", help="ask whether the change would be taken"
    )
    parser.add_argument(
        "--throttled", action="store_true", help="who is throttled now, by the brokers' metrics"
    )
    parser.add_argument(
        "--all", action="store_true", help="with --throttled: also who is within its quota"
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=[],
        metavar="HOST:PORT",
        help="where brokers serve them, instead of metrics.http.listener",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Show or change quotas. Raises CommandError."""
    add = _values([pair for word in args.add for pair in word.split(",")])
    delete = [key for word in args.delete for key in word.split(",")]
    entity = _entity(args)
    if args.throttled:
        if add or delete or args.dry_run or entity:
            raise CommandError("--throttled goes with --all, --metrics and --json only")
        _show_throttled(args)
    elif args.all or args.metrics:
        raise CommandError("--all and --metrics go with --throttled")
    elif add or delete:
        if not entity:
            raise CommandError("say whose quota it is: --user, --client, --ip or …-defaults")
        _change(args, entity, add, delete)
    elif args.dry_run:
        raise CommandError("--dry-run goes with --add or --delete")
    else:
        _show(args, entity)


def _values(pairs: list[str]) -> dict[str, float]:
    values = {}
    for key, text in parse_settings(pairs).items():
        try:
            values[key] = float(text)
        except ValueError:
            raise CommandError(f"{key}={text}: not a number") from None
    return values


def _entity(args: argparse.Namespace) -> dict[str, str | None]:
    """Return the named parts by Kafka's types, None for the default of a type."""
    named = (
        ("user", args.user, args.user_defaults),
        ("client-id", args.client, args.client_defaults),
        ("ip", args.ip, args.ip_defaults),
    )
    return {kind: name for kind, name, default in named if name is not None or default}


def _show(args: argparse.Namespace, entity: dict[str, str | None]) -> None:
    from tools.quotas.entities import describe
    from tools.quotas.listing import show_quotas
    from tools.wire.brokers import brokers

    with brokers(args) as cluster:
        found = describe(cluster, entity)
    show_quotas(found, as_json=args.json)


def _change(
    args: argparse.Namespace,
    entity: dict[str, str | None],
    add: dict[str, float],
    delete: list[str],
) -> None:
    from tools.quotas.entities import alter, describe_settled
    from tools.quotas.listing import show_quotas
    from tools.wire.brokers import brokers

    with brokers(args) as cluster:
        alter(cluster, entity, add, delete, validate_only=args.dry_run)
        if args.dry_run:
            print("The change would be taken; nothing was changed.", file=sys.stderr)
            return
        found = describe_settled(cluster, entity, add, delete)
    show_quotas(found, as_json=args.json)


def _show_throttled(args: argparse.Namespace) -> None:
    from tools.quotas.listing import show_takers
    from tools.quotas.throttled import metrics_addresses, takers
    from tools.wire.brokers import brokers

    if args.metrics:
        addresses = dict(zip(args.metrics, args.metrics, strict=True))
    else:
        with brokers(args) as cluster:
            addresses = metrics_addresses(cluster)
    found = [
        taker
        for broker, address in addresses.items()
        for taker in takers(broker, address)
        if args.all or taker.throttled_ms > 0
    ]
    show_takers(found, as_json=args.json, everyone=args.all)
