"""How commands reach a broker: shared arguments, clients, and errors as CommandError."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from config.environment import bootstrap_help, default_bootstrap, is_it_right
from tools.client_properties import for_librdkafka, require_known
from tools.errors import CommandError
from tools.reachability import require_broker
from tools.usage import command_parser

TIMEOUT_S = 15.0
AS_KAFKA: Final = {"partitioner": "murmur2_random"}
"""Settings of every producer: a key goes to the partition that Kafka's own clients choose for it.
librdkafka's default hashes keys with CRC32."""

READ_ON: Final = {"fetch.queue.backoff.ms": 10}
"""Settings of every consumer that reads much: librdkafka's default postpones the next fetch by a
second whenever 100,000 records wait to be handed out, and these are gone within half of it."""


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    text: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Add a command's parser, with the arguments that all commands to a broker share."""
    parser = command_parser(commands, name, text=text, examples=examples)
    add_connection_arguments(parser)
    return parser


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the broker and the client's settings, named as in Kafka's tools; `-X` is kcat's."""
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        default=default_bootstrap(os.environ),
        metavar="HOST:PORT",
        help=bootstrap_help(os.environ),
    )
    parser.add_argument(
        "-F",
        "--command-config",
        type=Path,
        metavar="FILE",
        help="client settings, key=value a line: the file of Kafka's tools, or librdkafka's",
    )
    parser.add_argument(
        "-X",
        "--command-property",
        action="append",
        default=[],
        metavar="K=V",
        help="one such setting, which goes before the file's",
    )


def add_topic_option(parser: argparse.ArgumentParser) -> None:
    """Add `--topic`, as Kafka's tools and kcat take what is written without it here."""
    parser.add_argument(
        "-t",
        "--topic",
        dest="named",
        action="append",
        default=[],
        metavar="TOPIC",
        help="the same, as in Kafka's tools",
    )


def client_settings(args: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """Return a confluent-kafka client's settings.

    Raises CommandError if the file is unreadable or a setting is unknown.
    """
    settings: dict[str, Any] = {"bootstrap.servers": args.bootstrap_server, "log_level": 2}
    if args.command_config is not None:
        from config.properties import load_properties

        try:
            settings |= load_properties(args.command_config.read_text())
        except OSError as error:
            raise CommandError(f"cannot read {args.command_config}: {error.strerror}") from None
    for pair in args.command_property:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"-X {pair}: not of the form key=value")
        settings[name] = value
    settings = for_librdkafka(settings)
    if args.command_property or args.command_config is not None:
        require_known(settings)
    return settings | more


def admin_client(args: argparse.Namespace) -> Any:
    """Return an admin client that has reached a broker. Raises CommandError if none answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings = client_settings(args)
    require_broker(settings)
    with refusals_as_sentences():  # of a setting that the client does not know
        admin = AdminClient(settings)
    try:
        admin.list_topics(timeout=TIMEOUT_S)
    except KafkaException as error:
        raise CommandError(
            f"no broker answers at {args.bootstrap_server} ({error.args[0].str()}). "
            f"{is_it_right(os.environ, args.bootstrap_server)}"
        ) from None
    return admin


@contextmanager
def refusals_as_sentences() -> Iterator[None]:
    """Turn errors of the broker or the client into CommandError."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise CommandError(str(error.args[0].str())) from None
    except TimeoutError:
        raise CommandError(f"the broker did not answer within {TIMEOUT_S:.0f} seconds") from None
    except ValueError as error:
        raise CommandError(str(error)) from None


def parse_settings(pairs: list[str]) -> dict[str, str]:
    """Parse `k=v` words; square brackets around a list are dropped. Raises CommandError."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise CommandError(f"{pair!r} is not of the form key=value")
        settings[key.strip()] = value.strip().removeprefix("[").removesuffix("]")
    return settings
