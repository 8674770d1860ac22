"""`pykafkalog pipeline …`: each subcommand is a package with `add_parser` and `run` in `command`.

At their top these modules import only what parses arguments; `run` imports Spark. A failure is one
line on standard error, and exit code 1.
"""

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from pipeline.errors import PipelineError

COMMANDS: Final[tuple[str, ...]] = ("archive", "compact", "restore", "stats")
"""Packages beside this module; the subcommand's module in each is `command`."""
NEEDED: Final = ("pyspark", "pyarrow", "confluent_kafka", "rich")
"""Modules that the extra `spark` installs."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pipeline` and its subcommands."""
    text = "Topics to a lake and back, by Spark."
    parser = commands.add_parser(
        "pipeline",
        help=text,
        description=text,
        epilog="`pykafkalog pipeline COMMAND --help` shows examples of each command.",
    )
    subcommands = parser.add_subparsers(dest="pipeline_command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f".{name}.command", __package__).add_parser(subcommands)
    for subcommand in subcommands.choices.values():
        subcommand.set_defaults(work=subcommand.get_default("run"))
        subcommand.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand; return its exit code: 0, or 1 with one line on standard error."""
    try:
        require_extra()
        return int(args.work(args) or 0)
    except PipelineError as error:
        print(f"pykafkalog pipeline {args.pipeline_command}: {error}", file=sys.stderr)
        return 1


def require_extra() -> None:
    """Raise PipelineError with the command that installs missing modules."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise PipelineError(
            f"{', '.join(missing)} not installed; the pipeline is an extra:"
            " python -m pip install 'pykafkalog[spark]' (and Java 17)"
        )
