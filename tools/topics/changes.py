"""Creates, alters and deletes topics."""

import argparse
import json
from typing import Any

from tools.connection import TIMEOUT_S, parse_settings
from tools.errors import CommandError, NoSuchTopic


def create(admin: Any, args: argparse.Namespace) -> None:
    """Create a topic. Raises CommandError, KafkaException."""
    from confluent_kafka.admin import NewTopic

    known = admin.list_topics(timeout=TIMEOUT_S).topics
    if args.if_not_exists and args.create in known:
        _say(args, {"stands": args.create}, f"Topic {args.create} stands already.")
        return
    topic = NewTopic(
        args.create,
        args.partitions if args.partitions is not None else -1,
        args.replication_factor,
        config=parse_settings(args.config),
    )
    admin.create_topics([topic])[args.create].result(TIMEOUT_S)
    _say(args, {"created": args.create}, f"Created topic {args.create}.")


def alter(admin: Any, args: argparse.Namespace) -> None:
    """Add partitions to a topic. Raises CommandError, KafkaException."""
    from confluent_kafka.admin import NewPartitions

    if args.partitions is None:
        raise CommandError(
            "--alter needs --partitions; settings are changed by `pykafkalog configs`"
        )
    if args.alter not in admin.list_topics(timeout=TIMEOUT_S).topics:
        raise NoSuchTopic(args.alter)
    admin.create_partitions([NewPartitions(args.alter, args.partitions)])[args.alter].result(
        TIMEOUT_S
    )
    _say(
        args,
        {"altered": args.alter, "partitions": args.partitions},
        f"Topic {args.alter} has {args.partitions} partitions now.",
    )


def delete(admin: Any, args: argparse.Namespace) -> None:
    """Delete the named topics, up to the first that cannot be. Raises CommandError."""
    known = admin.list_topics(timeout=TIMEOUT_S).topics
    for name in args.delete:
        if name not in known:
            if args.if_exists:
                continue
            raise NoSuchTopic(name)
        admin.delete_topics([name])[name].result(TIMEOUT_S)
        _say(args, {"deleted": name}, f"Deleted topic {name}.")


def _say(args: argparse.Namespace, value: dict[str, Any], text: str) -> None:
    print(json.dumps(value) if args.json else text)
