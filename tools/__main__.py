"""`pykafkalog`: the command line. Each command is a module or package with `add_parser` and `run`.

Commands that speak to a broker use confluent-kafka, or `tools.wire` for requests that it has no
function for, and take `--bootstrap-server` as Kafka's own tools do. Others, such as `dump-log`,
read files and need no broker. The public face hands in commands of rooms that `tools` does not know
(`FurtherCommand`).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from config.form import form_that_runs
from config.terminal import terminals_made_safe
from tools.errors import CommandError
from tools.usage import CommandParser

COMMANDS = (
    "cluster",
    "topics",
    "groups",
    "configs",
    "users",
    "acls",
    "quotas",
    "transactions",
    "log_dirs",
    "get_offsets",
    "produce",
    "consume",
    "perf",
    "dump_log",
    "fsck",
    "adopt",
    "certificates",
    "explain_cleaner",
    "explain_retention",
    "sql",
    "completion",
)


@dataclass(frozen=True, slots=True)
class FurtherCommand:
    """A command of another room: always listed, imported only when it is called."""

    name: str
    text: str
    """Its help text in the list of commands."""
    load: Callable[[], Any]
    """Import and return its module, which has `add_parser(commands)`."""


class _Version(argparse.Action):
    """Prints the version. Looks it up on demand, because that takes longer than parsing."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from importlib.metadata import version

        print("pykafkalog", version("pykafkalog"), f"({form_that_runs()})")
        parser.exit()


def build_parser(
    further: Sequence[FurtherCommand] = (), meant: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of all commands; only the further command `meant` has its arguments."""
    parser = CommandParser(
        prog="pykafkalog",
        description="Look at and work with a Kafka broker and its files.",
        epilog=(
            "`pykafkalog COMMAND --help` shows examples of each command. On a terminal, control"
            " characters of names, records, errors are shown as ^[; a pipe gets them as they are."
        ),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        import_module(f".{name}", __package__).add_parser(commands)
    for command in further:
        if meant in (command.name, "completion"):  # completion needs every command's arguments
            command.load().add_parser(commands)
        else:
            commands.add_parser(command.name, help=command.text)
    parser.set_defaults(whole=parser)
    return parser


def main(argv: Sequence[str] | None = None, further: Sequence[FurtherCommand] = ()) -> int:
    """Run one command; return its exit code: 0, or 1 with one line on standard error."""
    with terminals_made_safe():
        return _run(argv, further)


def _run(argv: Sequence[str] | None, further: Sequence[FurtherCommand]) -> int:
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser(further, words[0] if words else None)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return int(args.run(args) or 0)
    except CommandError as error:
        print(f"pykafkalog {args.command}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
