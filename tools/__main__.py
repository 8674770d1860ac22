"""`pykafkalog`: the command line. One module per command; each brings its arguments and its `run`.

Commands that speak to a broker go through confluent-kafka and take `--bootstrap-server`, as
Kafka's own tools do; `dump-log` reads files and needs no broker. Commands of rooms that this one
does not know are handed in by the face (`FurtherCommand`).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tools.errors import CommandError
from tools.usage import CommandParser

COMMANDS = (
    "cluster",
    "topics",
    "groups",
    "configs",
    "transactions",
    "log_dirs",
    "get_offsets",
    "produce",
    "consume",
    "perf",
    "dump_log",
    "fsck",
    "adopt",
    "explain_cleaner",
    "explain_retention",
    "sql",
    "completion",
)


@dataclass(frozen=True, slots=True)
class FurtherCommand:
    """A command of another room: listed always, imported only when it is the one that is meant."""

    name: str
    text: str
    """What the list of commands says of it."""
    load: Callable[[], Any]
    """Its module, which has `add_parser(commands)`."""


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes longer than parsing."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from importlib.metadata import version

        print("pykafkalog", version("pykafkalog"))
        parser.exit()


def build_parser(
    further: Sequence[FurtherCommand] = (), meant: str | None = None
) -> argparse.ArgumentParser:
    """The whole command line; of the further commands, the one that is meant has its arguments."""
    parser = CommandParser(
        prog="pykafkalog",
        description="Look at and work with a Kafka broker and its files.",
        epilog="`pykafkalog COMMAND --help` shows examples of each command.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f".{name}", __package__).add_parser(commands)
    for command in further:
        if meant in (command.name, "completion"):  # which is about all of them
            command.load().add_parser(commands)
        else:
            commands.add_parser(command.name, help=command.text)
    parser.set_defaults(whole=parser)
    return parser


def main(argv: Sequence[str] | None = None, further: Sequence[FurtherCommand] = ()) -> int:
    """Run one command; 0 when it did what was asked, 1 with one line on standard error if not."""
    words = sys.argv[1:] if argv is None else argv
    args = build_parser(further, words[0] if words else None).parse_args(words)
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
