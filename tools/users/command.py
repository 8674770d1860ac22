"""The arguments of `pykafkalog users`, and the dispatch to its parts."""

import argparse
from pathlib import Path

from tools.connection import add_command
from tools.errors import CommandError
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog users                               who there is
  pykafkalog users --add alice                   asks for the password
  pykafkalog users --add alice --password-file secret.txt
  pykafkalog users --add alice --mechanism SCRAM-SHA-512 --iterations 8192
  pykafkalog users --remove alice
  pykafkalog users --add admin --offline server.properties

The last is for the first user: it changes the files of a broker that does not
run, or ZooKeeper if the broker is a member of a cluster. Users have passwords
for SCRAM-SHA-256 and SCRAM-SHA-512, unless one is named; the broker keeps what
verifies a password, not the password. Users of PLAIN are in server.properties.

exit code: 0 done; 1 refused or failed, standard error says why; 2 wrong
arguments"""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS = 4096
"""The default of Kafka's tools, and the least."""
MOST_ITERATIONS = 16384


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "users", text="List, add and remove users with passwords.", examples=EXAMPLES
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="every user (the default)")
    action.add_argument("--add", metavar="USER", help="or set a user's password anew")
    action.add_argument("--remove", metavar="USER")
    parser.add_argument(
        "--mechanism",
        action="append",
        default=[],
        choices=MECHANISMS,
        metavar="M",
        help=f"only this one ({' or '.join(MECHANISMS)}; default: both)",
    )
    adding = parser.add_argument_group("with --add")
    adding.add_argument(
        "--iterations",
        type=whole(32),
        default=ITERATIONS,
        metavar="N",
        help="how often a password is hashed, 4096 (the default) to 16384",
    )
    adding.add_argument(
        "--password-file", type=Path, metavar="FILE", help="its first line; - is standard input"
    )
    offline = parser.add_argument_group("without a broker that runs")
    offline.add_argument(
        "--offline",
        metavar="FILE",
        help="the broker's server.properties; it must be stopped if it is alone",
    )
    offline.add_argument("--override", action="append", default=[], metavar="K=V")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the command. Raises CommandError."""
    if args.override and args.offline is None:
        raise CommandError("--override goes with --offline")
    if args.password_file is not None and args.add is None:
        raise CommandError("--password-file goes with --add")
    if args.add == "" or args.remove == "":
        raise CommandError("a user has a name")
    if args.add is not None and (not args.add.isascii() or "\0" in args.add):
        raise CommandError(f"--add {args.add}: names are ASCII, because SCRAM carries no others")
    if not ITERATIONS <= args.iterations <= MOST_ITERATIONS:
        raise CommandError(f"--iterations: from {ITERATIONS} to {MOST_ITERATIONS}")
    from tools.users import listing, offline, online, passwords

    password = None if args.add is None else passwords.read(args.password_file, args.add)
    mechanisms = args.mechanism or list(MECHANISMS)
    if args.offline is not None:
        users = offline.change(args, password, mechanisms)
    else:
        users = online.change(args, password, mechanisms)
    listing.show(users, args.add, args.remove, as_json=args.json)
