"""`pykafkalog configs`: what a topic or broker is set to, where it comes from, and changing it."""

import argparse
from typing import Any

from tools.connection import (
    TIMEOUT_S,
    add_command,
    admin_client,
    parse_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog configs --topic orders                     what is set on the topic itself
  pykafkalog configs --topic orders --all               every setting and where it comes from
  pykafkalog configs --topic orders --add retention.ms=60000 cleanup.policy=compact,delete
  pykafkalog configs --topic orders --delete retention.ms
  pykafkalog configs --broker 0 --all
  pykafkalog configs --broker 0 --add log.retention.ms=3600000        while it runs"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "configs",
        text="Show and change the settings of topics and brokers.",
        examples=EXAMPLES,
    )
    entity = parser.add_mutually_exclusive_group(required=True)
    entity.add_argument("--topic", metavar="TOPIC")
    entity.add_argument("--broker", metavar="ID")
    parser.add_argument("--all", action="store_true", help="also what is at its default")
    parser.add_argument("--add", nargs="+", default=[], metavar="K=V", help="set these")
    parser.add_argument("--delete", nargs="+", default=[], metavar="K", help="back to the default")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Do what the arguments ask for."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = admin_client(args)
    kind = ResourceType.TOPIC if args.topic else ResourceType.BROKER
    name = args.topic or args.broker
    with refusals_as_sentences():
        if args.broker:
            _require_broker_id(admin, args.broker)
        if args.add or args.delete:
            _change(admin, kind, name, parse_settings(args.add), args.delete)
        resource = ConfigResource(kind, name)
        _show(admin.describe_configs([resource])[resource].result(TIMEOUT_S), everything=args.all)


def _require_broker_id(admin: Any, name: str) -> None:
    """Without this the client would look for a broker of that id until its time is up."""
    known = sorted(admin.list_topics(timeout=TIMEOUT_S).brokers)
    if not name.isdigit() or int(name) not in known:
        raise CommandError(f"there is no broker {name}; known: {', '.join(map(str, known))}")


def _change(admin: Any, kind: Any, name: str, add: dict[str, str], delete: list[str]) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in add.items()
    ] + [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in delete]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def _show(entries: dict[str, Any], *, everything: bool) -> None:
    from confluent_kafka.admin import ConfigSource
    from rich.console import Console
    from rich.table import Table

    table = Table("setting", "value", "from")
    for key, entry in sorted(entries.items()):
        source = ConfigSource(entry.source)
        if everything or source not in (
            ConfigSource.DEFAULT_CONFIG,
            ConfigSource.STATIC_BROKER_CONFIG,
        ):
            value = "(hidden)" if entry.is_sensitive else entry.value
            table.add_row(key, str(value), source.name.lower().replace("_", " "))
    console = Console(highlight=False)
    if table.row_count:
        console.print(table)
    else:
        console.print(
            "Nothing is set here: every value is the broker's default (--all shows them)."
        )
