"""`pykafkalog certificates DIRECTORY`: a throw-away authority, and what it signs.

Run again it adds to what is there: the authority stays, and what exists is not replaced.
"""

import argparse
import socket
import time
from pathlib import Path

from tools.errors import CommandError
from tools.usage import command_parser
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog certificates /tmp/tls                      for this machine, and client "client"
  pykafkalog certificates /tmp/tls --client alice --client bob
  pykafkalog certificates /tmp/tls-of-kafka --host kafka.example.org --host 10.0.0.5

Files: ca.pem (all trust it), ca.key, broker.pem, and NAME.pem for each client; the
last hold a private key and its certificate. They are for trying, not for keeping:
whoever reads ca.key can be anybody."""
DAYS = 365
MOST_DAYS = 36_525
"""A century: certificates end before the year 10000."""
_NAME = "-_.@"
_HOST = "-_.:*"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = command_parser(
        commands,
        "certificates",
        text="Make certificates for trying TLS.",
        description=(
            "Make an authority, a broker's certificate and clients' certificates as PEM files,\n"
            "and print the lines for server.properties and for clients."
        ),
        examples=EXAMPLES,
    )
    parser.add_argument("directory", metavar="DIRECTORY", type=Path)
    parser.add_argument(
        "--host",
        action="append",
        metavar="NAME",
        help="a host name or address of the broker (repeatable; default: this machine's)",
    )
    parser.add_argument(
        "--client",
        action="append",
        metavar="NAME",
        help='a client (repeatable; default: "client")',
    )
    parser.add_argument(
        "--days",
        type=whole(32),
        default=DAYS,
        metavar="N",
        help=f"how long they are valid ({DAYS})",
    )
    parser.add_argument(
        "--port", type=whole(17, least=0), default=9093, metavar="PORT", help="in the lines (9093)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make what is missing, and print how to use it."""
    clients = args.client or ["client"]
    for name in clients:
        if not name or not all(sign.isalnum() or sign in _NAME for sign in name):
            raise CommandError(f"--client {name!r}: a name has letters, digits and {_NAME}")
    if not 1 <= args.days <= MOST_DAYS:
        raise CommandError(f"--days {args.days}: at least one, at most {MOST_DAYS}")
    for host in args.host or ():
        if not all(sign.isalnum() or sign in _HOST for sign in host) or not host:
            raise CommandError(f"--host {host!r}: a name or address, without a port")
    from tools.certificates.files import TrialFiles
    from tools.certificates.lines import shown_lines

    files = TrialFiles(args.directory.absolute(), time.time(), args.days)
    hosts = args.host or files.hosts() or _names_of_this_machine()
    files.make(hosts, clients)
    for line in shown_lines(args.directory.absolute(), hosts[0], args.port, clients[0]):
        print(line)
    return 0


def _names_of_this_machine() -> list[str]:
    """Return localhost, its addresses, and the machine's own name."""
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", socket.gethostname()]))
