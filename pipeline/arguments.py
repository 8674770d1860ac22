"""Arguments that several subcommands share, and the Spark session that they describe."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from config.environment import bootstrap_help, default_bootstrap
from pipeline.errors import PipelineError


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    text: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Add and return a subcommand's parser."""
    return commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_broker_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--bootstrap-server` and `--kafka-option`."""
    group = parser.add_argument_group("broker")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        default=default_bootstrap(os.environ),
        metavar="HOST:PORT",
        help=bootstrap_help(os.environ),
    )
    group.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the client (Java's; restore: librdkafka's); may be repeated",
    )


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments about where and how Spark runs."""
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", default="local[*]", help="default: local[*]")
    group.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated",
    )
    group.add_argument(
        "--log-file", type=Path, help="what Spark says (default: a file for temporary files)"
    )


def pairs(words: Iterable[str]) -> dict[str, str]:
    """Parse `k=v` words. Raises PipelineError."""
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise PipelineError(f"{word!r} is not of the form KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


@contextmanager
def session_of(
    args: argparse.Namespace,
    app: str,
    packages: Sequence[str],
    conf: Mapping[str, str] | None = None,
    inherited: Sequence[int] = (),
) -> Iterator[Any]:
    """Start the session that the arguments describe and stop it at the end; `--conf` beats `conf`.

    Errors within become PipelineError (`pipeline.failures`). After an interrupt, which may have cut
    a call to the JVM in two, the JVM is killed without another call.
    """
    from pipeline.failures import as_sentence
    from pipeline.session import abandon_jvm, log_of, start_session, stop_session

    session = start_session(
        app,
        master=args.master,
        packages=packages,
        conf={**(conf or {}), **pairs(args.conf)},
        log_file=args.log_file,
        inherited=inherited,
    )
    try:
        yield session
    except KeyboardInterrupt:
        abandon_jvm()
        raise
    except Exception as error:
        raise as_sentence(error, log_of(session)) from error
    finally:
        stop_session(session)
